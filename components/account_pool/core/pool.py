"""One pool in one cluster: the interface that the dynamic provider and the command line use.

Every method runs a protocol operation to its end within a timeout in seconds. Stopping at any point is safe;
the next run completes the operation. All methods raise the errors of `components.errors`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Final, Self, TypeAlias, TypeVar

from components import errors
from components.account_pool.core import held_claims, moving, protocol, quotas
from components.account_pool.core.audit import Journal
from components.account_pool.core.calls import Get, Kind, PoolApi, Steps
from components.account_pool.core.clock import Clock
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap, consumers_of, shown
from components.account_pool.core.consumers import Consumer, consumer_of, refusal
from components.account_pool.core.driver import Driver
from components.account_pool.core.held_claims import Amendment, Outcome, Released
from components.account_pool.core.holds import describe_hold
from components.account_pool.core.identity import find_twins
from components.account_pool.core.kubernetes_api import KubernetesApi
from components.account_pool.core.model import ClaimRequest, JsonObject, Member, Partition, Phase, Policy
from components.account_pool.core.pool_settings import read_holds, see, sign_settings
from components.account_pool.core.protocol import Begin
from components.account_pool.core.receipts import give_receipt
from components.account_pool.core.records import Claimed, Fence, Record
from components.account_pool.core.selection import MEMBERS, RECORDS, Choose, RunningClaims, find_place
from components.account_pool.core.snapshot import PoolSnapshot, list_displaced
from components.account_pool.core.steps import any_record, get_member, get_record, list_all, read, read_both
from components.connection import ClusterTarget, NoReply, connect
from components.http_answers import FIRST_ANSWER_SECONDS

CLAIMS: Final = "credfleet-claims"
CLEANER: Final = "credfleet-cleaner"
OPERATOR: Final = "credfleet-operator"
ROTATION: Final = "credfleet-rotation"
"""Field managers under which claims, cleaners, operators and rotations write."""

SECONDS: Final = 60.0
_OPENING_SECONDS: Final = 10.0
_LOOKING_SECONDS: Final = 30.0

_HOLD_SECONDS: Final = 1.0
"""How long a process caches the hold and the consumers of the pool."""
_TWINS_SECONDS: Final = 10.0
"""How long a process caches which Secrets belong to the same account."""

T = TypeVar("T")
Take: TypeAlias = Callable[[ClaimRequest, Begin, Choose], Steps[Claimed]]


class Pool:
    """Pool with its settings; thread-safe."""

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
    def open(cls, target: ClusterTarget, namespace: str, *, manager: str = CLAIMS) -> Self:
        """Open the pool of a namespace, once per process: check the cluster and read the settings.

        Raises ClusterError, Restored, Misconfigured, NotAllowed, Unreachable.
        """
        key = (target, namespace, manager)
        with _opening:
            pool = _pools.get(key)
            if not isinstance(pool, cls):
                api = _api(target, namespace, manager)
                settings = _run_first(api, namespace, sign_settings())
                _pools[key] = pool = cls(api, namespace, settings)
            return pool

    @staticmethod
    def snapshot(target: ClusterTarget, namespace: str, clock: Clock | None = None) -> PoolSnapshot:
        """Read the whole pool without writing, as a preview must; `open` adds the uid to a new pool.

        `clock`: overrides the durations in the ConfigMap. Raises ClusterError, NotAllowed, Misconfigured,
        Unreachable.
        """
        driver, settings = driver_of(target, namespace, CLAIMS, clock)
        return driver.run(see(settings), _LOOKING_SECONDS, patience=FIRST_ANSWER_SECONDS)

    @staticmethod
    def record(target: ClusterTarget, namespace: str, name: str) -> Record | None:
        """Read the record of a claim without writing; raises as `snapshot`."""
        return _run_first(_api(target, namespace, CLAIMS), namespace, get_record(name))

    @staticmethod
    def settings_of(target: ClusterTarget, namespace: str) -> PoolConfigMap | None:
        """Return the settings of a pool, None if there are none; read-only, raises as `snapshot`."""
        body = _run_first(_api(target, namespace, CLAIMS), namespace, read(Kind.RECORD, CONFIG_MAP))
        return None if body is None else PoolConfigMap.parse(body)

    def claim(self, request: ClaimRequest, *, seconds: float = SECONDS) -> Claimed:
        """Claim the account of a tenant's slot: its present account, its tenant's own, or a free one.

        Raises Exhausted, LimitReached, QuotaReached, LostMember, NotAllowed, Misconfigured, Unreachable.
        """
        wanted = self._placed(request)
        take = protocol.claim_with_spill if wanted.spill else protocol.claim
        return self._claimed(wanted, take, seconds)

    def record_of(self, request: ClaimRequest) -> str:
        """Return the record name of a request, existing or not; with spill, that of its holder's slot."""
        return self._in_series(request).record

    def _in_series(self, request: ClaimRequest) -> ClaimRequest:
        """Place a request in the pool; with spill, in the slot that has its holder."""
        wanted = self._placed(request)
        return find_place(wanted, self._run(protocol.series_of(wanted))) if wanted.spill else wanted

    def move(self, request: ClaimRequest, former: str, holder: str) -> Claimed | None:
        """Rename a claim; None if this holder has none under the former name.

        `former`: name of its former record. Raises NotAllowed, Withheld, LostMember.
        """
        moved = self._run(moving.move(self._in_series(request), former, holder))
        if moved is not None:
            message = f"moved to tenant {moved.tenant}, slot {moved.slot}, from {former} by {holder}"
            self._journal.note(moved.secret_name, "Claimed", message, uid=moved.member_uid)
        return moved

    def read(self, record: str, holder: str, *, member: str | None = None) -> Claimed | None:
        """Return what a holder has, without writing; None if it is gone. Raises LostMember.

        `member`: expected account; saves one round trip.
        """
        return self._run(held_claims.read_claim(record, holder, member))

    def update(
        self,
        record: str,
        holder: str,
        *,
        new_holder: str | None = None,
        policy: Policy | None = None,
        limit: int | None = None,
        state: str | None = None,
        takes_over: bool = False,
    ) -> Claimed | None:
        """Change the holder, policy and limit of a claim without releasing it; None if it is gone.

        `policy`, `limit`: None means the pool's default; a limit of 0 means no limit. Raises LimitReached if
        more holders exist than the new limit allows. `takes_over`: as in `ClaimRequest`.
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
                takes_over=takes_over,
            )
            return (yield from held_claims.update(record, holder, amended, self.namespace))

        return self._run(steps())

    def release(self, record: str, holder: str, *, fence: Fence | None = None) -> Released:
        """Remove a holder; after the last one, the account is handled by its release policy.

        `fence`: the claim to release (`Claimed.fence`); a holder that claimed again since then keeps the
        account (docs/design/claim-protocol.md, Sequence numbers).
        """
        released = self._run(held_claims.release(record, holder, self.namespace, fence))
        if released.outcome is Outcome.RELEASED and released.member:
            left = "the last one" if released.last else "others stay"
            self._journal.note(released.member, "Released", f"released by {holder} ({left}), {record}")
        return released

    def member(self, name: str) -> Member | None:
        """Read the metadata of one member."""
        return self._run(get_member(name))

    def records(self) -> tuple[Record, ...]:
        """Read all readable records."""
        return PoolSnapshot.of((), self._run(list_all(Kind.RECORD, RECORDS))).records

    def give_receipt(self, record: str, holder: str, operation: str) -> bool:
        """Record that all copies of a holder use the current key; False if the key has changed since."""
        return self._run(give_receipt(record, holder, operation, self.namespace))

    def flush(self, seconds: float = 2.0) -> bool:
        """Wait for the Events still being written; False if some might be missing."""
        return self._journal.flush(seconds)

    @contextmanager
    def flushed(self) -> Generator[None]:
        """Wait for the Events of the block when it exits, normally or by an exception."""
        try:
            yield
        finally:
            self.flush()

    def _begin(self, wanted: ClaimRequest) -> Steps[tuple[Record | None, Consumer | None]]:
        """C0: read the record of a claim; at most once a second also the pool's holds and consumers."""
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
            raise errors.Withheld(
                place=f"Secret {wanted.only}",
                problem=f"slot {record.slot} of tenant {record.tenant} has account {record.member} already",
                fix="name another slot for it, or release that claim first",
            )
        if record is None or record.phase is Phase.PENDING:  # which might still move to another account
            yield from self._look_for_twins()
        if record is None or wanted.holder not in record.holders:
            return record, self._served(wanted)
        return record, consumer_of(self._consumers, wanted.holder)

    def _served(self, wanted: ClaimRequest) -> Consumer | None:
        """Return the claiming consumer, None if the pool names none; raises NotAllowed."""
        refused = refusal(self._consumers, wanted)
        if refused is not None:
            raise refused
        return consumer_of(self._consumers, wanted.holder)

    def _may_begin(self, partition: Partition) -> Steps[None]:
        """C1: raise Withheld if this part of the pool was held at the last check.

        Raise Misconfigured if existing claims were made under partition keys other than the settings'. One
        record shows this; it is checked once, since later claims of this pool use these keys.
        """
        if (hold := self._holds.on(partition)) is not None:
            raise errors.Withheld(
                place=f"pool {self.namespace}",
                problem=describe_hold(*hold),
                fix="use an account that the tenant has, or wait for its holder:"
                f" {self._holds.fix(hold[0], self.namespace)}",
            )
        if self._takes_claims:
            return
        record = yield from any_record(RECORDS)
        for problem in list_displaced(() if record is None else (record,), self.settings.partition_keys):
            raise errors.Misconfigured(place=problem.place, problem=problem.problem, fix=problem.fix)
        self._takes_claims = True

    def _look_for_twins(self) -> Steps[None]:
        """C1: periodically find Secrets of the same account; claims do not choose them."""
        now = self._clock()
        if now - self._twins_seen > _TWINS_SECONDS:
            bodies = yield from list_all(Kind.MEMBER, MEMBERS)
            # In place: requests refer to this set before it is filled.
            self._twins |= (found := {*find_twins(map(Member.parse, bodies))})
            self._twins &= found
            self._twins_seen = now

    def _enter(self, record: Record, holder: str) -> Steps[None]:
        """Q2: enter a claim under another holder; raises NotAllowed, QuotaReached."""
        wanted = ClaimRequest.at(self.namespace, record.partition, record.tenant, record.slot, holder)
        consumer = self._served(wanted)
        if consumer is not None and consumer.quota_on(record.partition) is not None:
            yield from quotas.enter(wanted, consumer, record)

    def _run(self, steps: Steps[T], seconds: float = SECONDS) -> T:
        return self._driver.run(steps, seconds)

    def _claimed(self, wanted: ClaimRequest, take: Take, seconds: float = SECONDS) -> Claimed:
        """Run a claim concurrently with others of this process, and record its outcome as an Event."""
        try:
            with self._running.choosing() as choose:
                claimed = self._run(take(wanted, self._begin, choose), seconds)
        except errors.PoolError as refusal:
            self._note_refusal(wanted, refusal)
            raise
        verb = "claimed again" if claimed.reused else "claimed"
        message = f"{verb} for tenant {claimed.tenant}, slot {claimed.slot}, by {claimed.holder}"
        self._journal.note(claimed.secret_name, "Claimed", message, uid=claimed.member_uid)
        return claimed

    def _placed(self, request: ClaimRequest) -> ClaimRequest:
        limit = self.settings.limit_for(request.type)
        wanted = request.placed(self.namespace, self.settings.partition_keys, self.settings.policy, limit)
        return replace(wanted, avoid=self._twins)

    def _note_refusal(self, wanted: ClaimRequest, refusal: errors.PoolError) -> None:
        asked = f"tenant {wanted.tenant}, slot {wanted.slot}, by {wanted.holder}"
        message = f"claim refused for {asked}: {refusal.code}: {refusal.problem}"
        if isinstance(refusal, errors.LimitReached | errors.LostMember) or (
            isinstance(refusal, errors.NotAllowed) and refusal.place.startswith("Secret ")
        ):
            kind, name = "Secret", refusal.place.split()[-1]
        elif isinstance(refusal, errors.Unreachable):
            return
        else:
            kind, name = "ConfigMap", CONFIG_MAP
        self._journal.note(name, "ClaimRefused", message, kind=kind, warning=True)


_pools: dict[tuple[ClusterTarget, str, str], Pool] = {}
_opening = Lock()


def _api(target: ClusterTarget, namespace: str, manager: str) -> PoolApi:
    try:
        return KubernetesApi(connect(target), namespace, manager)
    except NoReply as silence:
        raise errors.Unreachable(place=f"pool {namespace}", last=str(silence)) from None


def _run_first(api: PoolApi, namespace: str, steps: Steps[T]) -> T:
    """Run the first steps on a pool, with short timeouts."""
    driver = Driver(api, f"pool {namespace}")
    return driver.run(steps, _OPENING_SECONDS, patience=FIRST_ANSWER_SECONDS)


def driver_of(
    target: ClusterTarget, namespace: str, manager: str, clock: Clock | None = None
) -> tuple[Driver, JsonObject | None]:
    """Return a driver for a pool under credfleet's keys, and the pool's ConfigMap."""
    api = _api(target, namespace, manager)
    settings = _run_first(api, namespace, read(Kind.RECORD, CONFIG_MAP))
    return Driver(shown(api, settings, clock), f"pool {namespace}"), settings
