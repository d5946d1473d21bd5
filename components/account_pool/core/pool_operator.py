"""Operations of cleaners and operators, for the command line; timeouts and errors are those of `Pool`."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias, TypeVar

from components.account_pool.core import changes, cleaning, protocol, rotation, sweeping
from components.account_pool.core.adoption import Adoption, SlotNames, adoptions
from components.account_pool.core.calls import AskProgram, Kind, Said, Steps, Told
from components.account_pool.core.cleaning import Decision, Wiped, decide
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.holders import Holder, Look, cleaner_of, cleaning_token, is_running
from components.account_pool.core.holds import WHOLE, Holds, describe_hold
from components.account_pool.core.keys import KEY_ID
from components.account_pool.core.model import ClaimRequest, Member
from components.account_pool.core.pool import OPERATOR, SECONDS, Pool, driver_of
from components.account_pool.core.pool_settings import note_hold, note_quarantine, see
from components.account_pool.core.receipts import Lagging, list_lagging
from components.account_pool.core.records import Claimed
from components.account_pool.core.rotation import Run
from components.account_pool.core.selection import MEMBERS
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.status import PoolStatus, status_of
from components.account_pool.core.steps import list_all, read
from components.account_pool.core.sweeping import (
    FREED_UNASKED,
    RecoveryReport,
    SweepReport,
    pending_records,
    sweep,
)
from components.connection import ClusterTarget
from components.errors import CredfleetError
from components.http_answers import FIRST_ANSWER_SECONDS

_LONG_SECONDS: Final = 600.0
_WAKING_SECONDS: Final = 1.0
"""Interval at which a wait for a thread wakes to notice Ctrl-C."""

T = TypeVar("T")
Wipe: TypeAlias = Callable[[Member], str | None]
Hold: TypeAlias = Callable[[Member], AbstractContextManager[Holder | None]]
Ask: TypeAlias = Callable[[AskProgram], Told]


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Outcome for a dirty account. `reason`: why it was not cleaned."""

    member: str
    outcome: Wiped
    reason: str | None = None


@contextmanager
def hold_by_this_process(_member: Member) -> Generator[Holder | None]:
    """Yield this process as the holder of an account that it cleans."""
    yield Holder.of_process(os.getpid())


class PoolOperator(Pool):
    """Pool with the operations of cleaners and operators."""

    @staticmethod
    def survey(target: ClusterTarget, namespace: str, settings: PoolConfigMap) -> SweepReport:
        """Return what a sweep would do and find, without writing; raises as `snapshot`."""
        return _run_long(target, namespace, sweep(namespace, settings, most=0, write=False, pending={}))

    @staticmethod
    def recover(target: ClusterTarget, namespace: str, *, dry_run: bool = False) -> RecoveryReport:
        """Bind the claims of a restored pool to their accounts again; `open` rejects such a pool."""
        return _run_long(target, namespace, sweeping.recover(namespace, dry_run=dry_run))

    def members(self) -> tuple[Member, ...]:
        """Read the metadata of every member."""
        return tuple(Member.parse(body) for body in self._run(list_all(Kind.MEMBER, MEMBERS)))

    def look(self) -> PoolSnapshot:
        """Read every member, then every record, and the operators' holds and quarantines."""
        return self._run(see(self._run(read(Kind.RECORD, CONFIG_MAP))))

    def is_declared(self) -> bool:
        """Return whether the namespace has pool settings; without them, its accounts make it a pool."""
        return self._run(read(Kind.RECORD, CONFIG_MAP)) is not None

    def status(self) -> PoolStatus:
        """Return the status of each account, and the counts per type and partition."""
        return status_of(self.look(), self.settings)

    def sweep(
        self, *, dry_run: bool = False, most: int = FREED_UNASKED, settle_seconds: float = 2.0
    ) -> SweepReport:
        """Remove dead claims from accounts, and finish releases and abandoned claims.

        `most`: maximum number of accounts to free; if more are found, none is freed. `settle_seconds`: how
        long a pending claim must stay unchanged to count as abandoned.
        """
        pending = {} if dry_run else self._run(pending_records())
        if pending:
            time.sleep(settle_seconds)
        steps = sweep(self.namespace, self.settings, most=most, write=not dry_run, pending=pending)
        return self._run(steps, _LONG_SECONDS)

    def clean(
        self,
        cleaner: str,
        wipe: Wipe,
        *,
        take_over: frozenset[str] = frozenset(),
        account_type: str | None = None,
        at_once: int = 1,
        is_over: Callable[[], bool] = lambda: False,
        stop: Callable[[], None] = lambda: None,
        hold: Hold = hold_by_this_process,
        look: Look = is_running,
        ask: Ask = lambda _: Told(Said.UNKNOWN, "no program makes keys"),
    ) -> tuple[Cleaned, ...]:
        """Clean all dirty accounts; a failure quarantines the account and does not stop the others.

        `cleaner`: stable id. `wipe`: empties the account and returns None, or why it could not; an exception
        counts as a failure. `take_over`: accounts of runs that cannot be observed here; `wipe` must rotate
        their credentials. `account_type`: the only type to clean. `at_once`: maximum number of parallel
        `wipe` calls. `is_over`: whether to start no more. `stop`: called on Ctrl-C; ends running `wipe` calls
        with a BaseException that is not an Exception, so that their accounts stay this cleaner's. `hold`:
        context manager around the cleaning of an account; its holder lives as long as anything wipes. `look`:
        whether a holder is alive. `ask`: runs the operator's key program.
        """
        listed, left = self._survey(cleaner, take_over, account_type, look)

        def clean(member: Member) -> Cleaned:
            if is_over():
                return Cleaned(member.name, Wiped.POSTPONED, "time ran out before its turn")
            with hold(member) as holder:
                token = cleaning_token(cleaner, uuid.uuid4().hex, holder)
                run = Run(self.namespace, token, uuid.uuid4().hex, look, take_over)
                return self._clean(member, run, wipe, ask)

        with ThreadPoolExecutor(max_workers=at_once) as hands:
            begun: list[Future[Cleaned]] = []
            try:
                for each in listed:
                    begun.append(hands.submit(clean, each))
                done = [_awaited(each) for each in begun]
            except BaseException as error:
                for each in begun:
                    each.cancel()
                if isinstance(error, KeyboardInterrupt):
                    stop()
                raise
        skipped = (Cleaned(one.name, why, f"{problem.problem} → {problem.fix}") for one, why, problem in left)
        return (*done, *skipped)

    def cleanable(
        self,
        cleaner: str,
        *,
        take_over: frozenset[str] = frozenset(),
        account_type: str | None = None,
        look: Look = is_running,
    ) -> tuple[Member, ...]:
        """Return the accounts that `clean` with the same arguments would clean."""
        listed, _ = self._survey(cleaner, take_over, account_type, look)
        return tuple(listed)

    def _survey(
        self, cleaner: str, take_over: frozenset[str], account_type: str | None, look: Look
    ) -> tuple[list[Member], list[cleaning.Left]]:
        """Split the accounts of a type into those to clean, and those skipped, each with a reason."""
        found, left = self._run(cleaning.survey(cleaner, take_over, look))
        of_type = [member for member in found if account_type in (None, member.type)]
        listed = [member for member in of_type if not self.settings.protects(member.account_id)]
        left += [(one, Wiped.IN_USE, cleaning.protected(one)) for one in of_type if one not in listed]
        return listed, [each for each in left if account_type in (None, each[0].type)]

    def _clean(self, listed: Member, run: Run, wipe: Wipe, ask: Ask) -> Cleaned:
        token = run.token
        member = self._run(cleaning.begin(listed, token))
        if member is None:
            return Cleaned(listed.name, Wiped.RUNNING, "another run took it first")

        def renew(member: Member) -> None:
            self._driver.run(rotation.renew(run, member.name), SECONDS, ask=ask)

        reason = _wiped(wipe, member)
        if reason is None and changes.owes_new_key(member):
            reason = _wiped(renew, member)
        settle = cleaning.succeed(member, token) if reason is None else cleaning.fail(member, token, reason)
        outcome = self._run(settle)
        if outcome is Wiped.OVERTAKEN:
            reason = "it was taken away during its cleaning, and may have been wiped since then"
        message = f"{outcome} by {cleaner_of(token)}" + (f": {reason}" if reason else "")
        self._journal.note(member.name, "Cleaned", message, warning=reason is not None, uid=member.uid)
        return Cleaned(member.name, outcome, reason)

    def quarantine(self, name: str, reason: str, *, cut: bool = False) -> Member:
        """Keep an account from new holders; present holders keep it.

        `cut`: also stop its present holders from reading the credential.
        """
        decision = partial(changes.quarantine, reason=reason, cut=cut)
        return self._decide(name, decision, "CutOff" if cut else "Quarantined", reason, warning=True)

    def evacuate(self, name: str, reason: str) -> Member:
        """Have the holders of an account move to another one; it gets no new holders."""
        decision = partial(changes.evacuate, reason=reason)
        return self._decide(name, decision, "Evacuated", reason, warning=True)

    def unquarantine(self, name: str, *, decommissioned: bool = False) -> Member:
        """End the quarantine of an account; it becomes dirty if it was not clean.

        `decommissioned`: also accept a decommissioned account; otherwise raise NotAllowed for it.
        """
        decision = partial(changes.unquarantine, decommissioned=decommissioned)
        return self._decide(name, decision, "Unquarantined", lambda one: f"now {one.state or 'usable'}")

    def decommission(self, name: str) -> Member:
        """Decommission an account without cleaning it; its declaration can then be removed."""
        said = "given up without cleaning"
        return self._decide(name, changes.decommission, "Decommissioned", said, warning=True)

    def mark_dirty(self, name: str, reason: str) -> Member:
        """Mark an unclaimed account dirty; a tenant that owns it keeps it."""
        return self._decide(
            name, partial(changes.mark_dirty, reason=reason), "MarkedDirty", reason, warning=True
        )

    def take_back(self, name: str) -> Member:
        """Return an account that its tenant retained to the pool, through the cleaner."""
        return self._decide(
            name, changes.take_back, "Returned", lambda one: f"retained by {one.tenant}, to be cleaned"
        )

    def _decide(
        self,
        name: str,
        decision: Decision,
        done: str,
        said: str | Callable[[Member], str],
        *,
        warning: bool = False,
    ) -> Member:
        """Write a decision, also to the copy from which lost accounts are recreated, and record an Event."""
        member = self._run(decide(self.namespace, name, decision))
        self._run(note_quarantine(self.namespace, member))
        message = said if isinstance(said, str) else said(member)
        self._journal.note(member.name, done, message, warning=warning, uid=member.uid)
        return member

    def adoptable(self, names: SlotNames) -> tuple[Adoption, ...]:
        """List the accounts that have an owner but no claim, each with its proposed claim."""
        return tuple(adoptions(self.look(), self.settings.partition_keys, names))

    def adopt(self, member: str, request: ClaimRequest) -> Claimed:
        """Claim exactly this account for its present owner.

        Raises as `claim`, and Withheld if the slot already has another account.
        """
        wanted = replace(self._placed(request), only=member)
        return self._claimed(wanted, protocol.claim)

    def rotate(self, steps: Steps[Member], ask: Ask) -> Member:
        """Run one operation of `rotation.py` with the operator's key program."""
        member = self._driver.run(steps, SECONDS, ask=ask)
        key, phase = member.annotations.get(KEY_ID, ""), member.key_phase or "rotated"
        self._journal.note(member.name, "KeyRotated", f"{phase}, key {key} is in use", uid=member.uid)
        return member

    def lagging(self, member: Member) -> Sequence[Lagging]:
        """Return who might still use the former key of an account."""
        return self._run(list_lagging(member))

    def credential(self, name: str) -> Mapping[str, str]:
        """Read the data of an account's Secret; the only method here that does."""
        return dict((self._run(read(Kind.CREDENTIAL, name)) or {}).get("data") or {})

    def hold(self, reason: str, scope: str = WHOLE) -> Holds:
        """Give out no new accounts of a scope, and return all holds after that.

        Present accounts are used and released as before. `reason`: empty to resume. `scope`: WHOLE with an
        empty reason ends all holds. A claim in progress might still succeed; running processes notice a hold
        within one second. Raises Misconfigured for a pool without settings, and NotAllowed when ending a hold
        that the stack declares.
        """
        self._holds = self._run(note_hold(self.namespace, scope, reason))
        self._hold_seen = self._clock()
        done = "Held" if reason else "Resumed"
        message = (
            describe_hold(scope, reason) if reason else f"gives new accounts again{scope and f' of {scope}'}"
        )
        self._journal.note(CONFIG_MAP, done, message, kind="ConfigMap", warning=bool(reason))
        return self._holds


def _run_long(target: ClusterTarget, namespace: str, steps: Steps[T]) -> T:
    """Run steps on a pool without opening it."""
    driver, _ = driver_of(target, namespace, OPERATOR)
    return driver.run(steps, _LONG_SECONDS, patience=FIRST_ANSWER_SECONDS)


def _wiped(wipe: Callable[[Member], str | None], member: Member) -> str | None:
    """Return why the account was not wiped, without exception texts that might quote a credential."""
    try:
        return wipe(member)
    except CredfleetError as error:
        return f"the cleaner failed: {error.problem}"
    except Exception as error:  # in any case, an account that was not wiped must not stay in state cleaning
        return f"the cleaner failed with an unforeseen {type(error).__name__}"


def _awaited(future: Future[Cleaned]) -> Cleaned:
    """Return the result; the short waits let a Ctrl-C be handled in between."""
    while not future.done():
        wait([future], _WAKING_SECONDS)
    return future.result()
