"""Explanation of a claim: the account it gets or not, and the verdict on each account of its type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from components.account_pool.core.judgement import Verdict, judge, unusable
from components.account_pool.core.model import ClaimRequest, Member, Phase
from components.account_pool.core.records import Record
from components.account_pool.core.selection import in_order
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.forecast.claims import Allotment, ClaimForecast, in_series
from components.errors import Misconfigured


@dataclass(frozen=True, slots=True)
class Candidate:
    """Account of the type: whether the claim takes it, and why."""

    member: str
    taken: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Result of a claim. `record`: name of its record; `claim`: the record, if it exists.

    `others`: claims of the tenant on the type under other slots or partitions. `candidates`: all accounts of
    the type, first those that the claim would try, in order.
    """

    expected: ClaimForecast
    record: str
    claim: Record | None
    others: tuple[Record, ...]
    candidates: tuple[Candidate, ...]


def explain(snapshot: PoolSnapshot, request: ClaimRequest, partition_keys: Sequence[str]) -> Explanation:
    """Return the result of a claim with reasons; raises Misconfigured for an invalid request."""
    wanted = in_series(request.placed("", partition_keys), snapshot)
    records = {each.name: each for each in snapshot.records}
    claim = records.get(wanted.record)
    allotment = Allotment(snapshot, partition_keys, ())
    expected = allotment.allot([request])[0]

    of_type = {name: member for name, member in allotment.members.items() if member.type == request.type}
    named = None if claim is None or claim.phase is Phase.RELEASING else of_type.pop(claim.member, None)
    reasons = {} if named is None or claim is None else {named.name: _why_named(named, claim)}
    usable = in_order(wanted, of_type.values())
    taken = expected.member or (usable[0].name if usable else None)
    for place, member in enumerate(usable, start=1):
        judged = judge(member, wanted.place, wanted.owner, holds=snapshot.holds if claim is None else None)
        is_held = judged.verdict is Verdict.HELD
        reasons[member.name] = judged.why + (
            "" if is_held else f", number {place} in the order of this claim"
        )
    for member in sorted(of_type.values(), key=lambda m: (m.place(partition_keys) != wanted.place, m.name)):
        judged = judge(member, wanted.place, wanted.owner, records, unreadable=snapshot.unreadable)
        reasons.setdefault(member.name, judged.why)
    others = (
        each
        for each in snapshot.records
        if (each.tenant, each.partition.type) == (request.tenant, request.type) and each.name != wanted.record
    )
    candidates = (
        Candidate(name, expected.refusal is None and name == taken, reason)
        for name, reason in reasons.items()
    )
    return Explanation(expected, wanted.record, claim, tuple(others), tuple(candidates))


def _why_named(member: Member, claim: Record) -> str:
    judged = judge(member, claim.partition, claim.tenant_label)
    try:
        is_carried = claim.is_carried_by(member)
    except Misconfigured:
        is_carried = False
    if is_carried:
        why = f", and {judged.why}" if unusable(member, claim) else ""
        return f"the account of this claim ({claim.phase}){why}"
    if judged.takes:
        return f"chosen for this claim already ({claim.phase})"
    why = judged.why if judged.verdict is Verdict.MISCONFIGURED else "but does not carry it"
    return f"named by this claim ({claim.phase}), {why}"
