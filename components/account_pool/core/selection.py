"""Label selectors for the API server, and the order in which a claim tries members.

Selectors contain only validated values, and select every member that `judge` accepts. Among free members, the
half that has rested longest comes first. Within it, requests are spread by a hash of record and member:
claimers of different tenants rarely try the same member, and helpers of one tenant do. Members that other
claims of the process are about to take come last. A slot that spills is a series of claims, `main`, `main+1`,
`main+2` and so on, each an ordinary record with its own account and limit. The write that adds the holder
checks the limit, so a late claim lists again. If all are full, it creates the next record, and concurrent
claims collide on its name (docs/design/claim-protocol.md, spilling).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from threading import Lock
from typing import TypeAlias

from components.account_pool.core.judgement import Judgement, Verdict, judge
from components.account_pool.core.keys import FREED, INTERNAL, POOL_RECORD, POOL_STATE
from components.account_pool.core.model import ClaimRequest, JsonObject, Member, Partition, written_at
from components.account_pool.core.records import Record
from components.labels import HYPERSCALER_TYPE, SHARED, TENANT_NAME

Choose: TypeAlias = Callable[[ClaimRequest, list[JsonObject]], Member | None]
"""Returns the member to try next; removes it, and those before it in the order of a claim, from the list."""

RECORDS = f"{POOL_RECORD}=true"
MEMBERS = HYPERSCALER_TYPE


def members_of_type(account_type: str) -> str:
    """Return the selector of all members of a type, in any partition and state."""
    return f"{HYPERSCALER_TYPE}={account_type}"


def records_of_type(account_type: str) -> str:
    """Return the selector of all records of a type."""
    return f"{RECORDS},{HYPERSCALER_TYPE}={account_type}"


def records_of(account_type: str, tenant_label: str) -> str:
    """Return the selector of a tenant's records of a type, in any partition."""
    return f"{records_of_type(account_type)},{TENANT_NAME}={tenant_label}"


def _members_in(partition: Partition) -> list[str]:
    terms = [f"!{key}" if value is None else f"{key}={value}" for key, value in partition.values]
    return [members_of_type(partition.type), *terms]


def members_owned(partition: Partition, tenant_label: str) -> str:
    """Return the selector of the tenant's own dedicated members of a partition."""
    return ",".join([*_members_in(partition), f"!{SHARED}", f"{TENANT_NAME}={tenant_label}"])


def members_free(partition: Partition) -> str:
    """Return the selector of members without owner in a partition; some might still carry a token."""
    absent = [f"!{key}" for key in (TENANT_NAME, POOL_STATE, SHARED, INTERNAL)]
    return ",".join([*_members_in(partition), *absent])


def members_shared(partition: Partition) -> str:
    """Return the selector of the shared members of a partition."""
    return ",".join([*_members_in(partition), f"{SHARED}=true"])


def turn(record_name: str) -> Callable[[str], bytes]:
    """Return the hash by which the claim of this record orders members, as a function of their name."""
    return lambda member: hashlib.sha256((record_name + member).encode()).digest()


def _last_rested(freed: Iterable[str]) -> str:
    """Return when the last account of the half that has rested longest became free."""
    times = sorted(freed)
    return times[max(0, len(times) // 2 - 1)] if times else ""


def _is_kept(metadata: JsonObject) -> bool:
    return bool(metadata.get("restsUntil") or metadata.get("keyEndsSoon"))


def asked_for(wanted: ClaimRequest, bodies: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the listed members that this claim considers."""
    named = (
        (body["metadata"]["name"], body) for body in bodies if wanted.only in (None, body["metadata"]["name"])
    )
    return [body for name, body in named if name == wanted.former or name not in wanted.avoid]


def in_order(wanted: ClaimRequest, members: Iterable[Member]) -> list[Member]:
    """Return the members that this claim can take, in the order it tries them.

    First its tenant's own, then the half of the free ones that has rested longest, each by hash; shared
    members with the fewest claims first.
    """
    owner, partition, of = wanted.owner, wanted.place, turn(wanted.record)
    judged = ((judge(member, partition, owner), member) for member in members)
    takes = [each for each in judged if each[0].takes]
    rested = _last_rested(member.freed_at for found, member in takes if found.verdict is not Verdict.OWN)

    def place(each: tuple[Judgement, Member]) -> tuple[int, bool, bytes]:
        first = len(each[1].shared_claims) if partition.shared else each[0].verdict is not Verdict.OWN
        return first, each[1].freed_at > rested, of(each[1].name)

    return [member for _, member in sorted(takes, key=place)]


def in_turn(wanted: ClaimRequest, bodies: Iterable[JsonObject]) -> list[JsonObject]:
    """Return members without an owner in the order this claim tries them, without judging them."""
    of = turn(wanted.record)
    asked = [(body, written_at(body["metadata"], FREED, "annotations")) for body in asked_for(wanted, bodies)]
    rested = _last_rested(at for body, at in asked if not _is_kept(body["metadata"]))
    asked.sort(key=lambda each: (each[1] > rested, of(each[0]["metadata"]["name"])))
    return [body for body, _ in asked]


def next_to_take(wanted: ClaimRequest, untried: list[JsonObject]) -> Member | None:
    """Take the first member that this claim can take, and drop all before it.

    Most claims need only one of hundreds of listed members, so the rest is not parsed.
    """
    while untried:
        member = Member.parse(untried.pop(0))
        if judge(member, wanted.place, wanted.owner).takes:
            return member
    return None


class RunningClaims:
    """Tracks which member each claim of this process is about to take; thread-safe.

    Only an optimization, not a lock: the API server decides who gets an account.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._chosen: dict[str, str] = {}
        """Which member each claim is about to take, by the name of its record."""

    @contextmanager
    def choosing(self) -> Generator[Choose]:
        """Yield the chooser for the duration of a claim."""
        records = set[str]()

        def choose(wanted: ClaimRequest, untried: list[JsonObject]) -> Member | None:
            records.add(wanted.record)
            return self._choose(wanted, untried)

        try:
            yield choose
        finally:
            with self._lock:
                for record in records:
                    self._chosen.pop(record, None)

    def _choose(self, wanted: ClaimRequest, untried: list[JsonObject]) -> Member | None:
        """Choose a member, trying those that other claims are about to take last, unless shared."""
        if wanted.place.shared:
            return next_to_take(wanted, untried)
        with self._lock:
            self._chosen.pop(wanted.record, None)
            spoken_for = {*self._chosen.values()}
            untried.sort(key=lambda body: body["metadata"]["name"] in spoken_for)
            member = next_to_take(wanted, untried)
            if member is not None:
                self._chosen[wanted.record] = member.name
        return member


def find_place(wanted: ClaimRequest, records: Iterable[Record], closed: Container[str] = ()) -> ClaimRequest:
    """Return the request with the slot of its series that it uses.

    `records`: of the tenant, from one list. `closed`: slots of accounts that accept no new holders.
    """
    there = {record.slot: record for record in records if _is_in_series(record, wanted)}
    ordered = sorted(there, key=lambda slot: (len(slot), slot))
    held = next((slot for slot in ordered if wanted.holder in there[slot].holders), None)
    rooms = [slot for slot in ordered if slot not in closed and there[slot].has_room_for(wanted.holder)]
    fullest = max(rooms, key=lambda slot: len(there[slot].holders), default=None)
    one_more = next(slot for slot in _series(wanted.slot) if slot not in there)
    return replace(wanted, slot=held or fullest or one_more)


def _series(slot: str) -> Iterator[str]:
    yield slot
    yield from (f"{slot}+{number}" for number in count(1))


def _is_in_series(record: Record, wanted: ClaimRequest) -> bool:
    _, plus, number = record.slot.removeprefix(wanted.slot).rpartition("+")
    is_next = record.slot == f"{wanted.slot}+{number}" and number.isdecimal() and bool(plus)
    return (record.tenant, record.partition) == (wanted.tenant, wanted.place) and (
        record.slot == wanted.slot or is_next
    )
