"""What holders of claims, cleaners and operators do in a history, each call noted before it and after it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, Final, Protocol

from components.account_pool.core.cleaning import Wiped
from components.account_pool.core.held_claims import Outcome
from components.account_pool.core.model import ClaimRequest, Member, Policy
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.records import Claimed
from components.errors import Exhausted, LostMember, NotAllowed, PoolError, Unreachable, Withheld

POLICIES: Final = (Policy.RELEASE, Policy.CLEAN, Policy.RETAIN)
PATIENCE_SECONDS: Final = 5.0
SETTLE_SECONDS: Final = 0.2
FORMER: Final = 4
"""Claims of before that a holder still releases: a replacement releases the old one after it has the new."""


class Notes(Protocol):
    """Where calls are noted: what was begun, by a number, and how it ended."""

    def begin(self, **told: Any) -> int: ...

    def end(self, number: int, end: str, member: str = "") -> None: ...


@dataclass
class Place:
    """A pool that is used for a while, with its name and what is in it."""

    pool: PoolOperator
    name: str
    accounts: tuple[str, ...]

    def of(self, name: str) -> str:
        return f"{self.name}/{name}"


def policy_of(slot: str) -> Policy:
    """Return what becomes of a slot's accounts: each slot is of one policy, by its number."""
    return POLICIES[int(slot.rpartition("-")[2]) % len(POLICIES)]


@contextmanager
def _ended(notes: Notes, number: int) -> Generator[None]:
    """Note how a call ended that did not end well."""
    try:
        yield
    except Exhausted:
        notes.end(number, "none")
    except (Withheld, NotAllowed):
        notes.end(number, "refused")
    except LostMember:
        notes.end(number, "lost")
    except Unreachable:
        notes.end(number, "unknown")
    except PoolError as error:
        notes.end(number, f"{error.code}: {error}")


@dataclass
class Holder:
    """A holder of one slot: claims, claims again, adopts, reads and releases, as a seed draws it."""

    slot: str
    name: str
    notes: Notes
    random: Random
    has: Claimed | None = None
    nr: int = 0
    had: list[tuple[int, Claimed]] = field(default_factory=list[tuple[int, Claimed]])
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def act(self, place: Place) -> None:
        drawn = self.random.random()
        if self.has is None or drawn < 0.1:
            self._claim(place, "" if drawn > 0.05 else self.random.choice(place.accounts))
        elif drawn < 0.4:
            self._release(place)
        else:
            self._read(place)

    def _claim(self, place: Place, only: str) -> None:
        policy = policy_of(self.slot)
        is_adopted = bool(only) and policy is Policy.RETAIN and self.has is None
        self.has, self.nr = None, next(self.numbers)
        request = ClaimRequest(self.slot, "aws", holder=self.name, policy=policy)
        number = self._begin(place, "claim")
        with _ended(self.notes, number):
            if is_adopted:
                claimed = place.pool.adopt(only, request)
            else:
                claimed = place.pool.claim(request, seconds=PATIENCE_SECONDS)
            self.notes.end(number, "ok", place.of(claimed.secret_name))
            self.has = claimed
            self.had = [*self.had[-FORMER:], (self.nr, claimed)]

    def _read(self, place: Place) -> None:
        assert self.has is not None
        number = self._begin(place, "read", member=place.of(self.has.secret_name))
        with _ended(self.notes, number):
            found = place.pool.read(self.has.record, self.name, member=self.has.secret_name)
            self.notes.end(number, "ok" if found else "none", place.of(found.secret_name) if found else "")

    def _release(self, place: Place) -> None:
        assert self.has is not None
        nr, has = self.random.choice([*self.had[:-1], (self.nr, self.has), (self.nr, self.has)])
        self.has = None if nr == self.nr else self.has
        number = self._begin(place, "release", nr=nr, member=place.of(has.secret_name))
        with _ended(self.notes, number):
            released = place.pool.release(has.record, self.name, fence=has.fence)
            end = "overtaken" if released.outcome is Outcome.OVERTAKEN else "ok"
            self.notes.end(number, end, place.of(released.member or has.secret_name))

    def _begin(self, place: Place, kind: str, **about: Any) -> int:
        told = {"slot": place.of(self.slot), "holder": self.name, "nr": self.nr, **about}
        return self.notes.begin(kind=kind, policy=str(policy_of(self.slot)), **told)


@dataclass
class Keeper:
    """Whoever looks after a pool: cleans, sweeps, quarantines, lets back, takes back."""

    name: str
    notes: Notes
    random: Random

    def act(self, place: Place) -> None:
        drawn = self.random.random()
        account = self.random.choice(place.accounts)
        if drawn < 0.5:
            self._clean(place)
        elif drawn < 0.65:
            self._sweep(place)
        elif drawn < 0.75:
            self._decide(place, "quarantine", account, lambda: place.pool.quarantine(account, "tried"))
        elif drawn < 0.9:
            self._decide(place, "unquarantine", account, lambda: place.pool.unquarantine(account))
        else:
            self._decide(place, "return", account, lambda: place.pool.take_back(account))

    def _decide(self, place: Place, kind: str, account: str, decide: Callable[[], object]) -> None:
        number = self.notes.begin(kind=kind, member=place.of(account))
        with _ended(self.notes, number):
            decide()
            self.notes.end(number, "ok", place.of(account))

    def _sweep(self, place: Place) -> None:
        number = self.notes.begin(kind="sweep")
        with _ended(self.notes, number):
            place.pool.sweep(most=100, settle_seconds=SETTLE_SECONDS)
            self.notes.end(number, "ok")

    def _clean(self, place: Place) -> None:
        number = self.notes.begin(kind="clean")
        wiping: dict[str, int] = {}

        def wipe(member: Member) -> str | None:
            account = place.of(member.name)
            wiping[member.name] = self.notes.begin(kind="wipe", member=account)
            touch = self.notes.begin(kind="touch", member=account)
            self.notes.end(touch, "ok", account)
            return None if self.random.random() < 0.95 else "it could not"

        with _ended(self.notes, number):
            ends = {Wiped.CLEANED: "ok", Wiped.QUARANTINED: "failed"}
            for each in place.pool.clean(self.name, wipe):
                if each.member in wiping:
                    end = ends.get(each.outcome, "unknown")
                    self.notes.end(wiping[each.member], end, place.of(each.member))
            self.notes.end(number, "ok")
