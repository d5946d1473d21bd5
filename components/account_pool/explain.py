"""Why a claim gets the account it gets, or none: every account of the type, judged in the claim's own order.

Told over one look at the pool, as the outlook is, and in the protocol's order: the account the claim has, the
tenant's own, the free ones by hash (claim protocol section 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from components.account_pool.keys import STATE_REASON, TENANT_ID
from components.account_pool.model import (
    ClaimRequest,
    Member,
    Partition,
    Record,
    State,
    record_name,
    tenant_label,
)
from components.account_pool.outlook import Census, Expectation, Prospect, outlook
from components.account_pool.selection import by_hash, least_used, misconfiguration


@dataclass(frozen=True, slots=True)
class Candidate:
    """One account of the type: whether the claim takes it, and why or why not."""

    member: str
    taken: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a claim comes to. record: the name of its record; claim: the record, if there is one.

    others: what the tenant has of the type under other slots or in other partitions.
    candidates: every account of the type, first those the claim would try, in its order.
    """

    expected: Expectation
    record: str
    claim: Record | None
    others: tuple[Record, ...]
    candidates: tuple[Candidate, ...]


_SERVED: Final = frozenset({Prospect.HELD, Prospect.REUSE, Prospect.OWN, Prospect.FREE})


def explain(census: Census, request: ClaimRequest, partition_keys: Sequence[str]) -> Explanation:
    """Tell what a claim comes to and why; raises Misconfigured for a request that makes no sense."""
    partition = Partition.of(request.type, request.partition, partition_keys, shared=request.shared)
    owner = tenant_label(request.tenant)
    record = record_name(partition, request.tenant, request.slot)
    records = {each.name: each for each in census.records}
    claim = records.get(record)
    expected = outlook(census, [request], partition_keys)[0]

    of_type = {member.name: member for member in census.members if member.type == request.type}
    named = [of_type[claim.member]] if claim is not None and claim.member in of_type else []
    sound = [m for m in of_type.values() if misconfiguration(m, partition_keys) is None]
    usable = [m for m in _in_order(sound, partition, owner, record) if m not in named]
    rest = [m for m in of_type.values() if m not in named and m not in usable]
    taken = expected.member or (usable[0].name if usable else None)
    if expected.prospect not in _SERVED:
        taken = None

    reasons = {
        **{m.name: _why_named(m, claim) for m in named if claim is not None},
        **{m.name: _why_usable(m, owner, place) for place, m in enumerate(usable, start=1)},
        **{m.name: next(_why_not(m, partition, records, partition_keys)) for m in _nearest(rest, partition)},
    }
    candidates = (Candidate(name, name == taken, reason) for name, reason in reasons.items())
    others = (
        each
        for each in census.records
        if (each.tenant, each.partition.type) == (request.tenant, request.type) and each.name != record
    )
    return Explanation(expected, record, claim, tuple(others), tuple(candidates))


def _in_order(members: Sequence[Member], partition: Partition, owner: str, record: str) -> list[Member]:
    """Order what the claim could take as it tries them: the tenant's own, then what is free or has room."""
    inside = [member for member in members if member.in_partition(partition)]
    if partition.shared:
        return least_used(record, inside)
    hashed = by_hash(record, inside)
    return [*(m for m in hashed if m.is_own_unused(owner)), *(m for m in hashed if m.is_free)]


def _nearest(members: Iterable[Member], partition: Partition) -> list[Member]:
    return sorted(members, key=lambda member: (not member.in_partition(partition), member.name))


def _why_named(member: Member, claim: Record) -> str:
    if member.carries(claim):
        state = f", and {_state(member)}" if member.state else ""
        return f"the account of this claim ({claim.phase}){state}"
    if member.is_usable_by(claim):
        return f"chosen for this claim already ({claim.phase})"
    return f"named by this claim ({claim.phase}), but does not carry it"


def _why_usable(member: Member, owner: str, place: int) -> str:
    order = f"number {place} in the order of this claim"
    if member.shared:
        return f"{len(member.shared_claims)} of {member.shared_capacity} claims on it, {order}"
    return f"{'its own tenant asks' if member.is_own_unused(owner) else 'free'}, {order}"


def _why_not(
    member: Member, partition: Partition, records: Mapping[str, Record], keys: Iterable[str]
) -> Iterator[str]:
    if wrong := misconfiguration(member, keys):
        yield f"misconfigured: {wrong}"
    if not member.in_partition(partition):
        yield f"in another part of the pool: {_place(member, partition)}"
    if member.state is not None:
        yield _state(member)
    if member.shared:
        yield f"full: {len(member.shared_claims)} of {member.shared_capacity} claims on it"
    if member.token is not None:
        holder = records.get(member.token.record)
        if holder is not None and holder.token == member.token:
            yield f"claimed by tenant {holder.tenant}, slot {holder.slot}"
        yield "carries a claim that is gone; `credfleet pool sweep` takes it off"
    if member.tenant is not None:
        yield f"belongs to tenant {member.annotations.get(TENANT_ID, member.tenant)}"
    yield "internal: kept out of the pool"


def _state(member: Member) -> str:
    words: Mapping[str, str] = {State.DIRTY: "dirty, waits to be cleaned", State.CLEANING: "being cleaned"}
    state = words.get(str(member.state), str(member.state))
    reason = member.annotations.get(STATE_REASON)
    return f"{state}: {reason}" if reason else state


def _place(member: Member, partition: Partition) -> str:
    values = tuple((key, member.labels.get(key)) for key, _ in partition.values)
    return str(Partition(member.type, values, member.shared))
