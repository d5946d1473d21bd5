"""Forecasts of claims on a pool, with reasons, before any claim is made.

A forecast uses one read of the pool and is no guarantee: others claim and release concurrently. It follows
the protocol's order: the account of the tenant's slot, one that the tenant brought, any free one. What the
protocol does before it chooses (finish a release, remove dead claims from an account) is simulated on the
members that were read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from components import errors
from components.account_pool.core import changes
from components.account_pool.core.choosing import tokens_to_look_behind
from components.account_pool.core.consumers import consumer_of, refusal, stack_of
from components.account_pool.core.holds import describe_hold
from components.account_pool.core.judgement import (
    BY_TIME,
    NONE_OF_TYPE,
    Verdict,
    describe_time,
    is_restored,
    judge,
    may_take,
    unusable,
)
from components.account_pool.core.model import ClaimRequest, Member, Partition, Phase, State
from components.account_pool.core.records import Record
from components.account_pool.core.selection import find_place, in_order
from components.account_pool.core.snapshot import PoolSnapshot, list_displaced
from components.account_pool.core.tokens import Token

NONE_FREE: Final = "expected to find none free"
"""Start of the forecast of a claim for which no account will be free."""


class ForecastKind(StrEnum):
    """Expected result of a claim.

    HELD: its holder already has it. REUSE: its tenant has the account, and the holder joins. OWN: an account
    that its tenant brought. FREE: any free one. EXHAUSTED: none. REFUSED: an error that requires a change.
    """

    HELD = "held"
    REUSE = "reuse"
    OWN = "own"
    FREE = "free"
    EXHAUSTED = "exhausted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ClaimForecast:
    """Forecast of one claim, with text; `member`: the expected account, if known.

    `refusal`: the expected error, if it gets no account.
    """

    tenant: str
    slot: str
    type: str
    kind: ForecastKind
    text: str
    member: str | None = None
    refusal: type[errors.PoolError] | None = None


@dataclass(frozen=True, slots=True)
class Vacancy:
    """Number of claims that a partition's free accounts can serve: now, and after an update.

    `accounts`: the partition as text, such as `aws with eu-access=true`.
    """

    accounts: str
    before: int
    after: int


def forecast_claims(
    snapshot: PoolSnapshot,
    requests: Sequence[ClaimRequest],
    partition_keys: Sequence[str],
    leaving: Iterable[Record] = (),
) -> tuple[ClaimForecast, ...]:
    """Allot the pool to all requests together; return one forecast per request, in their order.

    `leaving`: claims that the update releases, which happens after all its claims.
    """
    return Allotment(snapshot, partition_keys, tuple(leaving)).allot(requests)


def leaving(records: Iterable[Record], claims: Sequence[ClaimRequest]) -> Iterator[Record]:
    """Yield what the stack of these claims holds but no longer claims: it is released after its claims."""
    kept = {claim.holder for claim in claims}
    stacks = {stack_of(holder) for holder in kept} - {None}
    for record in records:
        for holder in record.holders:
            if stack_of(holder) in stacks and holder not in kept and record.phase is not Phase.RELEASING:
                yield record


def vacancies(
    snapshot: PoolSnapshot, requests: Sequence[ClaimRequest], partition_keys: Sequence[str]
) -> tuple[Vacancy, ...]:
    """Count the free accounts of each partition with members, before and after all requests."""
    allotment = Allotment(snapshot, partition_keys, ())
    allotment.allot(requests)
    return tuple(allotment.vacancies())


class Allotment:
    """Allots a pool. `members`: in the state in which the claims choose."""

    def __init__(
        self, snapshot: PoolSnapshot, partition_keys: Sequence[str], leaving: Sequence[Record]
    ) -> None:
        self._census = snapshot
        self._keys = partition_keys
        self._leaving = leaving
        self.members = {member.name: member for member in snapshot.members}
        self._records = {record.name: record for record in snapshot.records}
        self._given: set[str] = set()
        self._asked: Counter[Partition] = Counter()
        self._places: dict[Partition, int] = {}
        self._handed: Counter[Partition] = Counter()
        self._counted: dict[tuple[str, str], set[str]] = {}
        self._owned: dict[str, list[str]] = defaultdict(list)
        for member in snapshot.members:
            self._owned["" if member.shared else member.tenant or ""].append(member.name)

    def allot(self, requests: Sequence[ClaimRequest]) -> tuple[ClaimForecast, ...]:
        """Return the forecast of each of these claims, in their order."""
        expected: dict[int, ClaimForecast] = {}
        waiting: dict[int, ClaimRequest] = {}
        for position, request in enumerate(requests):
            try:
                waiting[position] = in_series(request.placed("", self._keys), self._census)
            except errors.Misconfigured as error:
                expected[position] = _refusal(request, type(error), f"{error.place}: {error.problem}")
        for allot in (self._unserved, self._present, self._refused, self._own, self._free):
            self._asked = Counter(wanted.place for wanted in waiting.values())
            for position, wanted in list(waiting.items()):
                try:
                    forecast = allot(wanted)
                except errors.PoolError as error:
                    forecast = _refusal(wanted, type(error), f"{error.place}: {error.problem}")
                if forecast is not None:
                    expected[position] = forecast
                    del waiting[position]
        return tuple(expected[position] for position in range(len(requests)))

    def vacancies(self) -> Iterator[Vacancy]:
        """Count the free accounts of each partition before and after."""
        places: dict[Partition, list[int]] = defaultdict(lambda: [0, 0])
        for member in self._census.members:
            partition = member.place(self._keys)
            if member.type and judge(member, partition, "").verdict is not Verdict.MISCONFIGURED:
                before, left = places[partition]
                now = 0 if member.name in self._given else _places(self.members[member.name], partition)
                places[partition] = [before + _places(member, partition), left + now]
        for partition, (before, left) in sorted(places.items(), key=lambda each: str(each[0])):
            yield Vacancy(_described(partition), before, left - self._handed[partition])

    def _settle(self, wanted: ClaimRequest) -> None:
        """Apply to the members what the claim does before it chooses."""
        record = self._records.get(wanted.record)
        if record is not None:
            member = self.members.get(record.member)
            if record.phase is Phase.RELEASING:
                if member is not None and member.bears(record.token):
                    self._remove(member, record.token, record)
                del self._records[record.name]
            elif member is not None and _may_be_set_right(member, record):
                self._remove_dead(member, member.tokens)
        for name in self._owned["" if wanted.place.shared else wanted.owner]:
            member = self.members[name]
            self._remove_dead(member, tokens_to_look_behind(wanted, member))

    def _remove_dead(self, member: Member, tokens: Iterable[Token]) -> None:
        for token in tokens:
            record = self._records.get(token.record)
            if is_restored(member, token, record):
                raise errors.Restored(namespace="", member=member.name)
            if token.record not in self._census.unreadable and (record is None or record.token != token):
                self._remove(self.members[member.name], token, record)

    def _remove(self, member: Member, token: Token, record: Record | None) -> None:
        policy = record.policy if record is not None and record.token == token else None
        left = changes.apply(member, changes.remove(member, token, record, policy))
        self.members[member.name] = left
        if not left.shared and left.tenant != member.tenant:
            self._owned[left.tenant or ""].append(left.name)

    def _present(self, wanted: ClaimRequest) -> ClaimForecast | None:
        """Return the forecast of a claim that has a record."""
        if wanted.record in self._census.unreadable:
            raise errors.Misconfigured(
                place=f"ConfigMap {wanted.record}", problem="the record of this claim cannot be read", fix=""
            )
        self._settle(wanted)
        record = self._records.get(wanted.record)
        if record is None:
            return None
        member = self.members.get(record.member)
        if member is not None and _stays_with(member, record):
            return self._counted_out(wanted) or _joined(wanted, record, member)
        if record.phase is Phase.BOUND:
            text = f"account {record.member} was deleted or relabelled manually; release the claim first"
            return _refusal(wanted, errors.LostMember, text, record.member)
        if member is None or member.name in self._given or not may_take(member, record):
            return None
        self._given.add(member.name)
        text = f"expected to get {member.name}, which was chosen for it already"
        return self._limited(wanted, _expect(wanted, ForecastKind.REUSE, text, member.name))

    def _unserved(self, wanted: ClaimRequest) -> ClaimForecast | None:
        """Return why the pool does not serve this consumer; present holders keep their account."""
        refused = None if self._is_held(wanted) else refusal(self._census.consumers, wanted)
        return refused and _refusal(wanted, errors.NotAllowed, f"{refused.place}: {refused.problem}")

    def _is_held(self, wanted: ClaimRequest) -> bool:
        record = self._records.get(wanted.record)
        return record is not None and wanted.holder in record.holders

    def _counted_out(self, wanted: ClaimRequest) -> ClaimForecast | None:
        """Return that the consumer's quota is reached; otherwise count the claim in it."""
        consumer = consumer_of(self._census.consumers, wanted.holder)
        most = None if consumer is None else consumer.quota_on(wanted.place)
        if consumer is None or most is None or self._is_held(wanted):
            return None
        account_type = wanted.place.type
        having = self._counted.setdefault(
            (consumer.name, account_type),
            {
                record.name
                for record in self._census.records
                if record.partition.type == account_type and consumer.has(record)
            },
        )
        if wanted.record not in having and len(having) >= most:
            places = errors.how_many(most, f"{account_type} account")
            text = f"consumer {consumer.name} may have {places} at most, and has them"
            return _refusal(wanted, errors.QuotaReached, f"expected to be refused: {text}")
        having.add(wanted.record)
        return None

    def _refused(self, wanted: ClaimRequest) -> ClaimForecast | None:
        """Return why this pool accepts no new claim, or None."""
        hold = self._census.holds.on(wanted.place)
        if hold is not None and wanted.record not in self._records:
            return _refusal(wanted, errors.Withheld, describe_hold(*hold))
        for problem in list_displaced(self._census.records, self._keys):
            return _refusal(wanted, errors.Misconfigured, f"{problem.place}: {problem.problem}")
        return None

    def _own(self, wanted: ClaimRequest) -> ClaimForecast | None:
        """Return an account that its tenant brought, if one is left."""
        if wanted.place.shared:
            return None
        mine = (self.members[name] for name in self._owned[wanted.owner] if name not in self._given)
        own = next((m for m in in_order(wanted, mine) if m.tenant == wanted.owner), None)
        if own is None:
            return None
        if (refused := self._counted_out(wanted)) is not None:
            return refused
        self._given.add(own.name)
        text = f"expected to get {own.name}, its tenant's own"
        return self._limited(wanted, _expect(wanted, ForecastKind.OWN, text, own.name))

    def _free(self, wanted: ClaimRequest) -> ClaimForecast:
        """Allot accounts without owner to as many claims of a partition as there are places."""
        partition = wanted.place
        if partition not in self._places:
            free = (member for name, member in self.members.items() if name not in self._given)
            self._places[partition] = sum(_places(member, partition) for member in free)
        places = self._places[partition]
        if self._handed[partition] >= places:
            return _refusal(wanted, errors.Exhausted, self._shortage(partition, places))
        if (refused := self._counted_out(wanted)) is not None:
            return refused
        self._handed[partition] += 1
        which = "the only" if places == 1 else f"any of {places}"
        text = f"expected to get {which} free {_accounts(partition, places)}"
        return self._limited(wanted, _expect(wanted, ForecastKind.FREE, text))

    def _limited(self, wanted: ClaimRequest, forecast: ClaimForecast) -> ClaimForecast:
        """Return the forecast of a claim that might complete another's claim but exceed its limit."""
        record = self._records.get(wanted.record)
        return forecast if record is None or record.has_room_for(wanted.holder) else _full(wanted, record)

    def _shortage(self, partition: Partition, places: int) -> str:
        here = [m for m in self.members.values() if m.place(self._keys) == partition]
        judged = ((m.state or "owned", judge(m, partition, "").verdict) for m in here)
        states = Counter(state for state, one in judged if one not in (Verdict.FREE, *BY_TIME))
        counted = ", ".join(f"{states[name]} {name}" for name in ("owned", *State)) + describe_time(here)
        asked = errors.how_many(self._asked[partition], "claim")
        text = f"{NONE_FREE}: {asked} for {places} free {_accounts(partition, places)}; besides {counted}"
        if not any(member.type == partition.type for member in self.members.values()):
            text = f"{NONE_FREE}: {NONE_OF_TYPE}"
        gone = [f"{one.tenant}/{one.slot}" for one in self._leaving if one.partition == partition]
        if gone:
            text += (
                f"; this update releases {', '.join(gone)} after its claims: run it again once they are free"
            )
        return text


def in_series(wanted: ClaimRequest, snapshot: PoolSnapshot) -> ClaimRequest:
    """Return the request with its slot of a spilling series; accounts without new holders are full."""
    if not wanted.spill:
        return wanted
    members = {member.name: member for member in snapshot.members}
    closed = {
        record.slot
        for record in snapshot.records
        if record.phase is Phase.BOUND
        and record.member in members
        and unusable(members[record.member], record)
    }
    return find_place(wanted, snapshot.records, closed)


def _may_be_set_right(member: Member, record: Record) -> bool:
    """Return whether a Pending claim removes dead claims from the member it names (C4)."""
    is_in_reach = not member.shared and member.tenant in (None, record.tenant_label)
    return (
        record.phase is Phase.PENDING
        and is_in_reach
        and unusable(member, record) is None
        and not member.bears(record.token)
    )


def _stays_with(member: Member, record: Record) -> bool:
    """Return whether the member is this claim's, perhaps after its label is restored (C4, C8)."""
    if record.phase is Phase.PENDING and unusable(member, record):
        return False
    return record.is_carried_by(member) or record.is_stripped_from(member)


def _places(member: Member, partition: Partition) -> int:
    """Return how many claims, of unspecified tenants, the member can serve."""
    match judge(member, partition, "").verdict:
        case Verdict.ROOM:
            return member.shared_capacity - len(member.shared_claims)
        case Verdict.FREE:
            return 1
        case _:
            return 0


def _accounts(partition: Partition, count: int) -> str:
    """Return the accounts of a partition as text: `aws accounts with eu-access=true`."""
    return _described(partition, " account" if count == 1 else " accounts")


def _described(partition: Partition, noun: str = "") -> str:
    with_ = ", ".join(f"{key}={value}" for key, value in partition.given.items())
    kind = f"shared {partition.type}" if partition.shared else partition.type
    return f"{kind}{noun}" + (f" with {with_}" if with_ else "")


def _joined(request: ClaimRequest, record: Record, member: Member) -> ClaimForecast:
    """Return the forecast of a claim whose slot has an account."""
    if request.holder in record.holders and record.phase is Phase.BOUND:
        return _expect(request, ForecastKind.HELD, f"has {member.name}", member.name)
    if unusable(member, record):
        state = member.state or "misconfigured"
        text = f"account {member.name} is {state}, so no other tenant may use it"
        return _refusal(request, errors.Withheld, text, member.name)
    if not record.has_room_for(request.holder):
        return _full(request, record)
    text = f"expected to reuse {member.name}, which its tenant has"
    return _expect(request, ForecastKind.REUSE, text, member.name)


def _full(request: ClaimRequest, record: Record) -> ClaimForecast:
    text = f"account {record.member} has its {record.limit} consumers; raise the limit"
    return _refusal(request, errors.LimitReached, text, record.member)


def _refusal(
    request: ClaimRequest, refusal: type[errors.PoolError], text: str, member: str | None = None
) -> ClaimForecast:
    kind = ForecastKind.EXHAUSTED if refusal is errors.Exhausted else ForecastKind.REFUSED
    return replace(_expect(request, kind, text, member), refusal=refusal)


def _expect(request: ClaimRequest, kind: ForecastKind, text: str, member: str | None = None) -> ClaimForecast:
    return ClaimForecast(request.tenant, request.slot, request.type, kind, text, member)
