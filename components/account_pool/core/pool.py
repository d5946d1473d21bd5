"""One pool in one cluster, as the dynamic provider and the command line use it.

Every method runs an operation of the protocol to its end within a time given in seconds; stopping one at any
point is safe, the next run finishes it. All raise the errors of `components.errors`.
"""

from __future__ import annotations

import math
import os
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final, TypeAlias, TypeVar

from components.account_pool.core import changes, cleaning, moving, protocol, quotas, rotation, sweeping
from components.account_pool.core.adoption import Adoption, SlotNames, adoptions
from components.account_pool.core.audit import AuditEvent, Journal
from components.account_pool.core.calls import (
    AskProgram,
    Get,
    Kind,
    PoolApi,
    Said,
    Steps,
    Told,
)
from components.account_pool.core.cleaning import Wiped
from components.account_pool.core.clock import Clock
from components.account_pool.core.config_map import (
    CONFIG_MAP,
    PoolConfigMap,
    consumers_of,
    shown,
)
from components.account_pool.core.consumers import Consumer, consumer_of, refusal
from components.account_pool.core.driver import Driver
from components.account_pool.core.holders import Holder, Look, cleaner_of, cleaning_token, is_running
from components.account_pool.core.holds import WHOLE, describe_hold
from components.account_pool.core.identity import find_twins
from components.account_pool.core.keys import KEY_ID
from components.account_pool.core.kubernetes_api import KubernetesApi
from components.account_pool.core.model import (
    Claimed,
    ClaimRequest,
    Fence,
    JsonObject,
    Member,
    Partition,
    Phase,
    Policy,
    Record,
)
from components.account_pool.core.pool_settings import (
    list_quarantines,
    note_hold,
    note_quarantine,
    read_holds,
    sign_settings,
)
from components.account_pool.core.protocol import Amendment, Begin, Outcome, Released
from components.account_pool.core.rotation import Lagging, Run, give_receipt, list_lagging
from components.account_pool.core.selection import MEMBERS, RECORDS, Choose, RunningClaims, members_of_type
from components.account_pool.core.snapshot import PoolSnapshot, list_displaced
from components.account_pool.core.spilling import find_place
from components.account_pool.core.status import PoolStatus, status_of
from components.account_pool.core.steps import (
    any_record,
    get_member,
    get_record,
    list_all,
    read,
    read_both,
)
from components.account_pool.core.sweeping import (
    FREED_UNASKED,
    RecoveryReport,
    SweepReport,
    pending_records,
    sweep,
)
from components.connection import ClusterTarget, NoReply, connect
from components.errors import (
    CredfleetError,
    LimitReached,
    LostMember,
    Misconfigured,
    NotAllowed,
    PoolError,
    Unreachable,
    Withheld,
)
from components.http_answers import FIRST_ANSWER_SECONDS

CLAIMS: Final = "credfleet-claims"
CLEANER: Final = "credfleet-cleaner"
OPERATOR: Final = "credfleet-operator"
ROTATION: Final = "credfleet-rotation"
"""Field managers: under which name the API server books what claimers, cleaners, … write."""

SECONDS: Final = 60.0
_LONG_SECONDS: Final = 600.0
_OPENING_SECONDS: Final = 10.0

_HOLD_SECONDS: Final = 1.0
"""How long a process goes by what the pool said of a hold and of its consumers."""
_TWINS_SECONDS: Final = 10.0
"""How long a process goes by which Secrets were one account."""
_WAKING_SECONDS: Final = 1.0
"""How long a wait in a thread lasts at most before a Ctrl-C is seen."""

T = TypeVar("T")
Take: TypeAlias = Callable[[ClaimRequest, Begin, Choose], Steps[Claimed]]
Wipe: TypeAlias = Callable[[Member], str | None]
Hold: TypeAlias = Callable[[Member], AbstractContextManager[Holder | None]]
Ask: TypeAlias = Callable[[AskProgram], Told]


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What became of an account that was dirty. reason: why it was not cleaned."""

    member: str
    outcome: Wiped
    reason: str | None = None


@contextmanager
def hold_by_this_process(_member: Member) -> Generator[Holder | None]:
    """Let this process be who holds an account that it cleans."""
    yield Holder.of_process(os.getpid())


class Pool:
    """A pool whose settings were read; safe for any number of threads."""

    def __init__(
        self,
        api: PoolApi,
        namespace: str,
        settings: PoolConfigMap,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.namespace = namespace
        self.settings = settings
        self._driver = Driver(shown(api, {"data": settings.render()}), f"pool {namespace}")
        self._journal = Journal(api, namespace)
        self._takes_claims = False
        self._twins, self._twins_seen = set[str](), -math.inf
        self._running = RunningClaims()
        self._clock = clock
        self._holds, self._hold_seen = settings.holds, clock()
        self._consumers = settings.consumers

    @classmethod
    def open(cls, target: ClusterTarget, namespace: str, *, manager: str = CLAIMS) -> Pool:
        """Open the pool of a namespace, once per process: the cluster is checked, the settings are read.

        Raises ClusterError, Restored, Misconfigured, NotAllowed, Unreachable.
        """
        key = (target, namespace, manager)
        with _opening:
            if key not in _pools:
                api = _api(target, namespace, manager)
                driver = Driver(api, f"pool {namespace}")
                settings = driver.run(sign_settings(), _OPENING_SECONDS, patience=FIRST_ANSWER_SECONDS)
                _pools[key] = cls(api, namespace, settings)
            return _pools[key]

    @staticmethod
    def snapshot(target: ClusterTarget, namespace: str, clock: Clock | None = None) -> PoolSnapshot:
        """See everything in a pool without a single write, as a preview must; `open` signs a new pool.

        clock: what the pool is to say of it, else what it says. Raises ClusterError, NotAllowed,
        Misconfigured, Unreachable.
        """
        driver, settings = _driver(target, namespace, CLAIMS, clock)
        members = driver.run(list_all(Kind.MEMBER, MEMBERS), _OPENING_SECONDS, patience=FIRST_ANSWER_SECONDS)
        records = driver.run(list_all(Kind.RECORD, RECORDS), _OPENING_SECONDS)
        holds = driver.run(read_holds(settings), _OPENING_SECONDS)
        seen = PoolSnapshot.of(members, records, holds, consumers_of(settings))
        return replace(seen, quarantines=driver.run(list_quarantines(), _OPENING_SECONDS))

    @staticmethod
    def record(target: ClusterTarget, namespace: str, name: str) -> Record | None:
        """Read the record of a claim; raises as `snapshot`, and writes nothing."""
        driver = Driver(_api(target, namespace, CLAIMS), f"pool {namespace}")
        return driver.run(get_record(name), _OPENING_SECONDS, patience=FIRST_ANSWER_SECONDS)

    @staticmethod
    def settings_of(target: ClusterTarget, namespace: str) -> PoolConfigMap | None:
        """Return what the pool of a namespace says, None without one; raises as `snapshot`, only reads."""
        driver = Driver(_api(target, namespace, CLAIMS), f"pool {namespace}")
        body = driver.run(read(Kind.RECORD, CONFIG_MAP), _OPENING_SECONDS, patience=FIRST_ANSWER_SECONDS)
        return None if body is None else PoolConfigMap.parse(body)

    @staticmethod
    def survey(target: ClusterTarget, namespace: str, settings: PoolConfigMap) -> SweepReport:
        """Return what a sweep would do and find, without a single write; raises as `snapshot`."""
        driver, _ = _driver(target, namespace, OPERATOR)
        steps = sweep(namespace, settings, most=0, write=False, pending={})
        return driver.run(steps, _LONG_SECONDS, patience=FIRST_ANSWER_SECONDS)

    def claim(self, request: ClaimRequest, *, seconds: float = SECONDS) -> Claimed:
        """Claim the account of a tenant's slot: the one it has, one of its own, or one from the pool.

        Raises Exhausted, LimitReached, QuotaReached, LostMember, NotAllowed, Misconfigured, Unreachable.
        """
        wanted = self._placed(request)
        take = protocol.claim_with_spill if wanted.spill else protocol.claim
        return self._claimed(wanted, take, seconds)

    def record_of(self, request: ClaimRequest) -> str:
        """Name the record of a request, whether or not it exists; one that spills, where its holder is."""
        return self._in_series(request).record

    def _in_series(self, request: ClaimRequest) -> ClaimRequest:
        """Place a request; one that spills, where its holder is."""
        wanted = self._placed(request)
        return find_place(wanted, self._run(protocol.series_of(wanted))) if wanted.spill else wanted

    def move(self, request: ClaimRequest, former: str, holder: str) -> Claimed | None:
        """Let a claim have another name; None where this holder has none under the former one.

        former: its record under that name. Raises NotAllowed, Withheld, LostMember.
        """
        moved = self._run(moving.move(self._in_series(request), former, holder))
        if moved is not None:
            message = f"moved to tenant {moved.tenant}, slot {moved.slot}, from {former} by {holder}"
            self._note_member(moved.secret_name, moved.member_uid, "Claimed", message)
        return moved

    def read(self, record: str, holder: str, *, member: str | None = None) -> Claimed | None:
        """Return what a holder has, without a write; None when it is gone. Raises LostMember.

        member: where the account is expected, which saves time.
        """
        return self._run(protocol.read_claim(record, holder, member))

    def update(
        self,
        record: str,
        holder: str,
        *,
        new_holder: str | None = None,
        policy: Policy | None = None,
        limit: int | None = None,
        state: str | None = None,
    ) -> Claimed | None:
        """Change who holds a claim, its policy and its limit, without giving it up; None when it is gone.

        policy, limit: None means the pool's, a limit of 0 none. Raises LimitReached when it is held by more
        than the new limit.
        """

        def steps() -> Steps[Claimed | None]:
            found = yield from get_record(record)
            if found is None:
                return None
            if new_holder is not None and new_holder not in found.holders:
                yield from self._enter(found, new_holder)
            amended = Amendment(
                holder=new_holder or holder,
                policy=policy or self.settings.policy,
                limit=(self.settings.limit_for(found.partition.type) if limit is None else limit) or None,
                state=state,
            )
            return (yield from protocol.update(record, holder, amended, self.namespace))

        return self._run(steps())

    def release(self, record: str, holder: str, *, fence: Fence | None = None) -> Released:
        """Let a holder go; with the last one the account goes where the policy says.

        fence: which claim is meant (`Claimed.fence`); a holder who claimed again since keeps it
        (docs/design/claim-protocol.md, Sequence numbers).
        """
        released = self._run(protocol.release(record, holder, self.namespace, fence))
        if released.outcome is Outcome.RELEASED and released.member:
            left = "the last one" if released.last else "others stay"
            self._note_member(released.member, "", "Released", f"released by {holder} ({left}), {record}")
        return released

    def member(self, name: str) -> Member | None:
        """Read the metadata of one member."""
        return self._run(get_member(name))

    def members(self, account_type: str | None = None) -> tuple[Member, ...]:
        """Read the metadata of every member, or of those of a type."""
        selector = MEMBERS if account_type is None else members_of_type(account_type)
        return tuple(Member.parse(body) for body in self._run(list_all(Kind.MEMBER, selector)))

    def look(self) -> PoolSnapshot:
        """Read every member, then every record, and whether the pool is held."""
        members = self._run(list_all(Kind.MEMBER, MEMBERS))
        records = self._run(list_all(Kind.RECORD, RECORDS))
        settings = self._run(read(Kind.RECORD, CONFIG_MAP))
        holds = self._run(read_holds(settings))
        return PoolSnapshot.of(members, records, holds, consumers_of(settings))

    def records(self) -> tuple[Record, ...]:
        """Read every claim's record that can be read."""
        return PoolSnapshot.of((), self._run(list_all(Kind.RECORD, RECORDS))).records

    def is_declared(self) -> bool:
        """Whether the namespace holds a pool's settings; without them it is a pool when it has accounts."""
        return self._run(read(Kind.RECORD, CONFIG_MAP)) is not None

    def status(self) -> PoolStatus:
        """Return how the pool stands: each account, and counts per type and partition."""
        return status_of(self.look(), self.settings)

    def sweep(
        self, *, dry_run: bool = False, most: int = FREED_UNASKED, settle_seconds: float = 2.0
    ) -> SweepReport:
        """Take dead claims off accounts and finish releases and claims that were given up.

        most: accounts freed at most; when more are found, none is. settle_seconds: how long a claim in
        progress must stand still to count as given up.
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
        """Clean every dirty account; one that fails is quarantined and stops no other.

        cleaner: a stable id. wipe: empties the account and answers None, or why it could not; an exception is
        a failure like any other. take_over: accounts of runs not seen here, whose credentials `wipe`
        must rotate. account_type: the only type to clean. at_once: how many `wipe` may empty in parallel.
        is_over: whether no more may be begun. stop: ends every `wipe` that runs, by an exception that is no
        Exception, so that its account stays this cleaner's; called on Ctrl-C. hold: around all that is done
        to an account; who holds it lives as long as anything wipes. look: whether a holder is alive. ask: the
        user's program for the keys of accounts.
        """
        listed, left = self._survey(cleaner, take_over, account_type, look)

        def clean(member: Member) -> Cleaned:
            if is_over():
                return Cleaned(member.name, Wiped.POSTPONED, "the time was over before its turn")
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
        return (
            *done,
            *(
                Cleaned(member.name, why, f"{problem.problem} → {problem.fix}")
                for member, why, problem in left
            ),
        )

    def cleanable(
        self,
        cleaner: str,
        *,
        take_over: frozenset[str] = frozenset(),
        account_type: str | None = None,
        look: Look = is_running,
    ) -> tuple[Member, ...]:
        """List what `clean` with the same arguments would clean."""
        listed, _ = self._survey(cleaner, take_over, account_type, look)
        return tuple(listed)

    def _survey(
        self, cleaner: str, take_over: frozenset[str], account_type: str | None, look: Look
    ) -> tuple[list[Member], list[cleaning.Left]]:
        """Part the accounts of a type into those to clean, and those left alone, each with why."""
        found, left = self._run(cleaning.survey(cleaner, take_over, look))
        of_type = [member for member in found if account_type in (None, member.type)]
        listed = [member for member in of_type if not self.settings.protects(member.account_id)]
        protected = [member for member in of_type if self.settings.protects(member.account_id)]
        left += [(member, Wiped.IN_USE, cleaning.protected(member)) for member in protected]
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
        self._note_member(member.name, member.uid, "Cleaned", message, warning=reason is not None)
        return Cleaned(member.name, outcome, reason)

    def quarantine(self, name: str, reason: str, *, cut: bool = False) -> Member:
        """Keep an account from new holders, and after its present ones from everybody.

        cut: its present ones may not read its credential either.
        """
        member = self._decided(cleaning.quarantine(self.namespace, name, reason, cut=cut))
        self._note_member(name, member.uid, "CutOff" if cut else "Quarantined", reason, warning=True)
        return member

    def evacuate(self, name: str, reason: str) -> Member:
        """Have an account left by its holders; no new one gets it."""
        member = self._decided(cleaning.evacuate(self.namespace, name, reason))
        self._note_member(name, member.uid, "Evacuated", reason, warning=True)
        return member

    def unquarantine(self, name: str, *, decommissioned: bool = False) -> Member:
        """Let a quarantined account back, to the cleaner if it was not clean.

        decommissioned: one that was given up as well, else NotAllowed.
        """
        member = self._decided(cleaning.unquarantine(self.namespace, name, decommissioned=decommissioned))
        self._note_member(name, member.uid, "Unquarantined", f"now {member.state or 'usable'}")
        return member

    def decommission(self, name: str) -> Member:
        """Give an account up without cleaning it; its declaration can then be removed."""
        member = self._decided(cleaning.decommission(self.namespace, name))
        self._note_member(name, member.uid, "Decommissioned", "given up without cleaning", warning=True)
        return member

    def adoptable(self, names: SlotNames) -> tuple[Adoption, ...]:
        """List the accounts that have an owner but no claim, with the claim each could be."""
        return tuple(adoptions(self.look(), self.settings.partition_keys, names))

    def rotate(self, steps: Steps[Member], ask: Ask) -> Member:
        """Run one of the steps of `rotation.py`, with the user's program."""
        member = self._driver.run(steps, SECONDS, ask=ask)
        key, phase = member.annotations.get(KEY_ID, ""), member.key_phase or "rotated"
        self._note_member(member.name, member.uid, "KeyRotated", f"{phase}, key {key} is in use")
        return member

    def give_receipt(self, record: str, holder: str, operation: str) -> bool:
        """Say that all that a holder made of its account has the key in use; False where another one is."""
        return self._run(give_receipt(record, holder, operation, self.namespace))

    def lagging(self, member: Member) -> Sequence[Lagging]:
        """Return who may still use the former key of an account."""
        return self._run(list_lagging(member))

    def credential(self, name: str) -> Mapping[str, str]:
        """Read the data of an account's Secret, which nothing else here does."""
        return dict((self._run(read(Kind.CREDENTIAL, name)) or {}).get("data") or {})

    def mark_dirty(self, name: str, reason: str) -> Member:
        """Have an account cleaned that is not claimed; a tenant who owns it keeps it."""
        member = self._decided(cleaning.mark_dirty(self.namespace, name, reason))
        self._note_member(name, member.uid, "MarkedDirty", reason, warning=True)
        return member

    def _decided(self, steps: Steps[Member]) -> Member:
        """Write what an operator decides, also where a lost account is created from."""
        member = self._run(steps)
        self._run(note_quarantine(self.namespace, member))
        return member

    def take_back(self, name: str) -> Member:
        """Let an account that its tenant retained go back to the pool, by way of the cleaner."""
        member = self._run(cleaning.take_back(self.namespace, name))
        self._note_member(name, member.uid, "Returned", f"retained by {member.tenant}, to be cleaned")
        return member

    def adopt(self, member: str, request: ClaimRequest) -> Claimed:
        """Claim this very account for the owner it has already.

        Raises as `claim`, and Withheld where the slot has another account: no claim on that one is made.
        """
        wanted = replace(self._placed(request), only=member)
        return self._claimed(wanted, protocol.claim)

    def hold(self, reason: str, scope: str = WHOLE) -> None:
        """Give no new accounts; those that tenants have are used and released as before.

        reason: why, empty to resume. scope: of what; of all, all that is held is resumed. A claim that runs
        already may still end well, and processes that run already notice within a second. Raises
        Misconfigured for a pool without settings, NotAllowed for a hold to end that the stack declares.
        """
        self._holds = self._run(note_hold(self.namespace, scope, reason))
        self._hold_seen = self._clock()
        done = "Held" if reason else "Resumed"
        message = (
            describe_hold(scope, reason) if reason else f"gives new accounts again{scope and f' of {scope}'}"
        )
        self._journal.note(AuditEvent("ConfigMap", CONFIG_MAP, "", done, message, warning=bool(reason)))

    @staticmethod
    def recover(target: ClusterTarget, namespace: str, *, dry_run: bool = False) -> RecoveryReport:
        """Bind the claims of a restored pool to their accounts again; `open` refuses such a pool."""
        driver, _ = _driver(target, namespace, OPERATOR)
        steps = sweeping.recover(namespace, dry_run=dry_run)
        return driver.run(steps, _LONG_SECONDS, patience=FIRST_ANSWER_SECONDS)

    def flush(self, seconds: float = 2.0) -> bool:
        """Wait for the Events still being written; False when some may be missing."""
        return self._journal.flush(seconds)

    def _begin(self, wanted: ClaimRequest) -> Steps[tuple[Record | None, Consumer | None]]:
        """C0: read the record of a claim, and beside it, once a second, whom the pool serves."""
        now = self._clock()
        if now - self._hold_seen <= _HOLD_SECONDS:
            record = yield from get_record(wanted.record)
        else:
            asked = Get(Kind.RECORD, wanted.record)
            body, settings = yield from read_both(asked, Get(Kind.RECORD, CONFIG_MAP))
            self._holds, self._hold_seen = (yield from read_holds(settings)), now
            self._consumers = consumers_of(settings)
            record = None if body is None else Record.parse(body)
        if record is None:
            yield from self._may_begin(wanted.place)
        elif wanted.only not in (None, record.member) and record.phase is not Phase.RELEASING:
            raise Withheld(
                place=f"Secret {wanted.only}",
                problem=f"slot {record.slot} of tenant {record.tenant} has account {record.member} already",
                fix="name another slot for it, or release that claim first",
            )
        if record is None or record.phase is Phase.PENDING:  # which may yet move to another account
            yield from self._look_for_twins()
        if record is None or wanted.holder not in record.holders:
            return record, self._served(wanted)
        return record, consumer_of(self._consumers, wanted.holder)

    def _served(self, wanted: ClaimRequest) -> Consumer | None:
        """Return which consumer claims, None where the pool names none; raises NotAllowed."""
        refused = refusal(self._consumers, wanted)
        if refused is not None:
            raise refused
        return consumer_of(self._consumers, wanted.holder)

    def _may_begin(self, partition: Partition) -> Steps[None]:
        """C1: raise NotAllowed where this part of the pool was held when that was last looked at.

        Raise Misconfigured where claims were made under other partition keys than the settings name: any
        record shows it, and it is looked at once, since later claims of this pool are made under these keys.
        """
        if (hold := self._holds.on(partition)) is not None:
            raise Withheld(
                place=f"pool {self.namespace}",
                problem=describe_hold(*hold),
                fix="use an account that the tenant has, or wait for its holder:"
                f" {self._holds.fix(hold[0], self.namespace)}",
            )
        if self._takes_claims:
            return
        record = yield from any_record(RECORDS)
        for problem in list_displaced(() if record is None else (record,), self.settings.partition_keys):
            raise Misconfigured(place=problem.place, problem=problem.problem, fix=problem.fix)
        self._takes_claims = True

    def _look_for_twins(self) -> Steps[None]:
        """C1: see now and then which Secrets are one account; one that a claim may not take is not chosen."""
        now = self._clock()
        if now - self._twins_seen > _TWINS_SECONDS:
            bodies = yield from list_all(Kind.MEMBER, MEMBERS)
            # In place: what is wanted refers to the set before it is filled.
            self._twins |= (found := {*find_twins(map(Member.parse, bodies))})
            self._twins &= found
            self._twins_seen = now

    def _enter(self, record: Record, holder: str) -> Steps[None]:
        """Q2: let a claim be held under another name; raises NotAllowed, QuotaReached."""
        wanted = ClaimRequest.at(self.namespace, record.partition, record.tenant, record.slot, holder)
        consumer = self._served(wanted)
        if consumer is not None and consumer.quota_on(record.partition) is not None:
            yield from quotas.enter(wanted, consumer, record)

    def _run(self, steps: Steps[T], seconds: float = SECONDS) -> T:
        return self._driver.run(steps, seconds)

    def _claimed(self, wanted: ClaimRequest, take: Take, seconds: float = SECONDS) -> Claimed:
        """Run a claim beside others of this process, and note how it ended."""
        try:
            with self._running.choosing() as choose:
                claimed = self._run(take(wanted, self._begin, choose), seconds)
        except PoolError as refusal:
            self._note_refusal(wanted, refusal)
            raise
        verb = "claimed again" if claimed.reused else "claimed"
        message = f"{verb} for tenant {claimed.tenant}, slot {claimed.slot}, by {claimed.holder}"
        self._note_member(claimed.secret_name, claimed.member_uid, "Claimed", message)
        return claimed

    def _placed(self, request: ClaimRequest) -> ClaimRequest:
        limit = self.settings.limit_for(request.type)
        wanted = request.placed(self.namespace, self.settings.partition_keys, self.settings.policy, limit)
        return replace(wanted, avoid=self._twins)

    def _note_refusal(self, wanted: ClaimRequest, refusal: PoolError) -> None:
        asked = f"tenant {wanted.tenant}, slot {wanted.slot}, by {wanted.holder}"
        message = f"claim refused for {asked}: {refusal.code}: {refusal.problem}"
        if isinstance(refusal, LimitReached | LostMember) or (
            isinstance(refusal, NotAllowed) and refusal.place.startswith("Secret ")
        ):
            kind, name = "Secret", refusal.place.split()[-1]
        elif isinstance(refusal, Unreachable):
            return
        else:
            kind, name = "ConfigMap", CONFIG_MAP
        self._journal.note(AuditEvent(kind, name, "", "ClaimRefused", message, warning=True))

    def _note_member(self, name: str, uid: str, reason: str, message: str, *, warning: bool = False) -> None:
        self._journal.note(AuditEvent("Secret", name, uid, reason, message, warning))


def _wiped(wipe: Wipe, member: Member) -> str | None:
    """Return why the account was not wiped. What an unforeseen exception says may quote a credential."""
    try:
        return wipe(member)
    except CredfleetError as error:
        return f"the cleaner failed: {error.problem}"
    except Exception as error:  # whatever it is, an account that was not wiped is not left as being cleaned
        return f"the cleaner failed with an unforeseen {type(error).__name__}"


_pools: dict[tuple[ClusterTarget, str, str], Pool] = {}
_opening = Lock()


def _api(target: ClusterTarget, namespace: str, manager: str) -> PoolApi:
    try:
        return KubernetesApi(connect(target), namespace, manager)
    except NoReply as silence:
        raise Unreachable(place=f"pool {namespace}", last=str(silence)) from None


def _driver(
    target: ClusterTarget, namespace: str, manager: str, clock: Clock | None = None
) -> tuple[Driver, JsonObject | None]:
    """Return what runs steps on a pool as it is, in its words, and the ConfigMap that says them."""
    api, name = _api(target, namespace, manager), f"pool {namespace}"
    read_settings = read(Kind.RECORD, CONFIG_MAP)
    settings = Driver(api, name).run(read_settings, _OPENING_SECONDS, patience=FIRST_ANSWER_SECONDS)
    return Driver(shown(api, settings, clock), name), settings


def _awaited(future: Future[Cleaned]) -> Cleaned:
    """Return what came of it. A Ctrl-C just before a wait is handled after it only, so each has an end."""
    while not future.done():
        wait([future], _WAKING_SECONDS)
    return future.result()
