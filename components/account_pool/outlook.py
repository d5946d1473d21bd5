"""What the claims of one update can expect, told together and before any of them is made.

A forecast over one look at the pool, never a guarantee: others claim and release at the same time
(decision 21). It follows the protocol's order: the account a tenant's slot has, one the tenant brought
along, any free one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from components.account_pool.errors import Misconfigured
from components.account_pool.model import (
    ClaimRequest,
    Member,
    Partition,
    Phase,
    Record,
    State,
    record_name,
    tenant_label,
)
from components.account_pool.selection import by_hash, misconfiguration


@dataclass(frozen=True, slots=True)
class Census:
    """Every member and every record of a pool at one moment, members seen first."""

    members: tuple[Member, ...]
    records: tuple[Record, ...]


class Prospect(StrEnum):
    """What a claim can expect.

    HELD: its holder has it already. REUSE: its tenant has the account, the holder joins. OWN: an account its
    tenant brought along. FREE: any free one. EXHAUSTED: none. REFUSED: an error that only a change mends.
    """

    HELD = "held"
    REUSE = "reuse"
    OWN = "own"
    FREE = "free"
    EXHAUSTED = "exhausted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What one claim can expect, and in words; member: which account, where that is known."""

    tenant: str
    slot: str
    type: str
    prospect: Prospect
    text: str
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Vacancy:
    """How many claims the free accounts of one partition can take: now, and after those of an update.

    accounts: the partition as people say it, `aws with eu-access=true`.
    """

    accounts: str
    before: int
    after: int


def outlook(
    census: Census,
    requests: Sequence[ClaimRequest],
    partition_keys: Sequence[str],
    leaving: Iterable[ClaimRequest] = (),
) -> tuple[Expectation, ...]:
    """Hand out the pool to all requests together; one expectation per request, in their order.

    leaving: the claims this same update releases, which is after it has made all others (decision 18).
    """
    return _Allotment(census, partition_keys, tuple(leaving)).allot(requests)


def vacancies(
    census: Census, requests: Sequence[ClaimRequest], partition_keys: Sequence[str]
) -> tuple[Vacancy, ...]:
    """Count, for each partition that has members, what is free and what all requests together leave of it."""
    allotment = _Allotment(census, partition_keys, ())
    allotment.allot(requests)
    return tuple(allotment.vacancies())


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request placed in its partition."""

    request: ClaimRequest
    partition: Partition

    @property
    def record(self) -> str:
        return record_name(self.partition, self.request.tenant, self.request.slot)


class _Allotment:
    def __init__(
        self, census: Census, partition_keys: Sequence[str], leaving: Sequence[ClaimRequest]
    ) -> None:
        self._census = census
        self._keys = partition_keys
        self._leaving = leaving
        self._members = {member.name: member for member in census.members}
        self._records = {record.name: record for record in census.records}
        self._given: set[str] = set()
        self._handed: Counter[Partition] = Counter()

    def allot(self, requests: Sequence[ClaimRequest]) -> tuple[Expectation, ...]:
        expected: dict[int, Expectation] = {}
        waiting: dict[int, _Asked] = {}
        for position, request in enumerate(requests):
            try:
                waiting[position] = self._placed(request)
            except Misconfigured as error:
                expected[position] = _expect(request, Prospect.REFUSED, f"{error.place}: {error.cause}")
        for allot in (self._present, self._own):
            for position, asked in list(waiting.items()):
                expectation = allot(asked)
                if expectation is not None:
                    expected[position] = expectation
                    del waiting[position]
        for position, expectation in self._free(waiting):
            expected[position] = expectation
        return tuple(expected[position] for position in range(len(requests)))

    def vacancies(self) -> Iterator[Vacancy]:
        sound = [m for m in self._census.members if m.type and misconfiguration(m, self._keys) is None]
        for partition in sorted({self._partition(member) for member in sound}, key=str):
            here = [member for member in sound if member.in_partition(partition)]
            before = sum(map(self._places, here))
            left = sum(self._places(member) for member in here if member.name not in self._given)
            yield Vacancy(_described(partition), before, left - self._handed[partition])

    def _partition(self, member: Member) -> Partition:
        values = tuple((key, member.labels.get(key)) for key in sorted(self._keys))
        return Partition(member.type, values, member.shared)

    def _placed(self, request: ClaimRequest) -> _Asked:
        tenant_label(request.tenant)
        partition = Partition.of(request.type, request.partition, self._keys, shared=request.shared)
        return _Asked(request, partition)

    def _present(self, asked: _Asked) -> Expectation | None:
        """Tell what a claim that is there already, or begun, comes to."""
        record = self._records.get(asked.record)
        if record is None or record.phase is Phase.RELEASING:
            return None
        member = self._members.get(record.member)
        if member is not None and member.carries(record):
            return _joined(asked.request, record, member)
        if record.phase is Phase.BOUND:
            text = f"account {record.member} was deleted or relabelled by hand; release the claim first"
            return _expect(asked.request, Prospect.REFUSED, text, record.member)
        if member is None or member.name in self._given or not member.is_usable_by(record):
            return None
        self._given.add(member.name)
        text = f"expected to get {member.name}, which was chosen for it already"
        return _expect(asked.request, Prospect.REUSE, text, member.name)

    def _own(self, asked: _Asked) -> Expectation | None:
        """Tell which account its tenant brought along, if there is one left."""
        label = tenant_label(asked.request.tenant)
        own = (
            member
            for member in by_hash(asked.record, self._census.members)
            if member.is_own_unused(label) and self._can_serve(member, asked.partition)
        )
        member = next(own, None)
        if member is None:
            return None
        self._given.add(member.name)
        text = f"expected to get {member.name}, its tenant's own"
        return _expect(asked.request, Prospect.OWN, text, member.name)

    def _free(self, waiting: Mapping[int, _Asked]) -> Iterable[tuple[int, Expectation]]:
        """Hand out what nobody owns, partition by partition: as many claims as there are places."""
        queues: dict[Partition, list[int]] = defaultdict(list)
        for position, asked in waiting.items():
            queues[asked.partition].append(position)
        for partition, queue in queues.items():
            places = sum(self._places(m) for m in self._census.members if self._can_serve(m, partition))
            self._handed[partition] = min(places, len(queue))
            for turn, position in enumerate(queue):
                request = waiting[position].request
                if turn < places:
                    which = "the only" if places == 1 else f"any of {places}"
                    text = f"expected to get {which} free {_accounts(partition, places)}"
                    yield position, _expect(request, Prospect.FREE, text)
                else:
                    text = self._shortage(partition, places, len(queue))
                    yield position, _expect(request, Prospect.EXHAUSTED, text)

    def _can_serve(self, member: Member, partition: Partition) -> bool:
        return (
            member.name not in self._given
            and member.in_partition(partition)
            and misconfiguration(member, self._keys) is None
        )

    def _places(self, member: Member) -> int:
        if member.shared:
            usable = member.state is None
            return max(0, member.shared_capacity - len(member.shared_claims)) if usable else 0
        return int(member.is_free)

    def _shortage(self, partition: Partition, places: int, claims: int) -> str:
        members = [m for m in self._census.members if m.in_partition(partition)]
        states = Counter(m.state or "owned" for m in members if not m.is_free)
        counted = ", ".join(f"{states[name]} {name}" for name in ("owned", *State))
        asked = "1 claim" if claims == 1 else f"{claims} claims"
        text = (
            f"expected to find none free: {asked} for {places} free {_accounts(partition, places)};"
            f" besides {counted}"
        )
        gone = [f"{one.tenant}/{one.slot}" for one in self._leaving if self._leaves(one, partition)]
        if gone:
            text += f"; this update releases {', '.join(gone)} only after its claims, so run it again then"
        return text

    def _leaves(self, request: ClaimRequest, partition: Partition) -> bool:
        try:
            return self._placed(request).partition == partition
        except Misconfigured:
            return False


def _accounts(partition: Partition, count: int) -> str:
    """Name the accounts of a partition as people do: `aws accounts with eu-access=true`."""
    return _described(partition, " account" if count == 1 else " accounts")


def _described(partition: Partition, noun: str = "") -> str:
    with_ = ", ".join(f"{key}={value}" for key, value in partition.values if value is not None)
    kind = f"shared {partition.type}" if partition.shared else partition.type
    return f"{kind}{noun}" + (f" with {with_}" if with_ else "")


def _joined(request: ClaimRequest, record: Record, member: Member) -> Expectation:
    """Tell what a claim comes to whose tenant's slot has an account."""
    if request.holder in record.holders and record.phase is Phase.BOUND:
        return _expect(request, Prospect.HELD, f"has {member.name}", member.name)
    if member.state is not None:
        text = f"account {member.name} is {member.state}, so nobody else may use it"
        return _expect(request, Prospect.REFUSED, text, member.name)
    if not record.has_room_for(request.holder):
        text = f"account {member.name} has its {record.limit} consumers; raise the limit"
        return _expect(request, Prospect.REFUSED, text, member.name)
    text = f"expected to reuse {member.name}, which its tenant has"
    return _expect(request, Prospect.REUSE, text, member.name)


def _expect(request: ClaimRequest, prospect: Prospect, text: str, member: str | None = None) -> Expectation:
    return Expectation(request.tenant, request.slot, request.type, prospect, text, member)
