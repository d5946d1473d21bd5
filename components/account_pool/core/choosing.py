"""C1, C6: choose a member for a claim that has none, or return why none is available."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TypeAlias

from components.account_pool.core import changes, selection, steps
from components.account_pool.core.calls import Kind, Steps
from components.account_pool.core.held_claims import refuse_restored
from components.account_pool.core.identity import mark_twins
from components.account_pool.core.judgement import (
    NONE_OF_TYPE,
    Verdict,
    describe_time,
    is_kept_by_time,
    is_restored,
    judge,
    may_take_back,
    misconfiguration,
)
from components.account_pool.core.model import ClaimRequest, JsonObject, Member, State
from components.account_pool.core.tokens import Token
from components.errors import Exhausted, Misconfigured, PoolError


class Again(Enum):
    """Another process, perhaps an earlier run, works on the same claim: read its record again."""

    AGAIN = "again"


AGAIN = Again.AGAIN


Choice: TypeAlias = Member | Again | None


def choose_candidate(wanted: ClaimRequest, choose: selection.Choose) -> Steps[Member | None]:
    """C1: choose a member for a claim without a record; None: read its record again."""
    former = yield from _former(wanted)
    if former is not None:
        return former
    choice = yield from find(wanted, [], choose)
    if choice is None and (yield from _is_absent(wanted.record)):
        raise (yield from refusal(wanted))
    return None if isinstance(choice, Again) else choice


def _former(wanted: ClaimRequest) -> Steps[Member | None]:
    """C1: return the account that the claim had before its record was lost, unless another claim has it."""
    member = None if wanted.former is None else (yield from steps.get_member(wanted.former))
    if member is None:
        return None
    takes = judge(member, wanted.place, wanted.owner).takes
    return member if takes or may_take_back(member, wanted.place, wanted.owner, wanted.former) else None


def find(wanted: ClaimRequest, untried: list[JsonObject], choose: selection.Choose) -> Steps[Choice]:
    """Choose a member to take at the resourceVersion it was listed with; None if none is free.

    `untried`: listed members that were not tried yet, in order; refilled here. An old entry is safe, because
    every write is a compare-and-swap. Only a fresh list can show that no member is free.
    """
    if (member := choose(wanted, untried)) is not None:
        return member
    partition = wanted.place
    if partition.shared:
        bodies = yield from steps.list_all(Kind.MEMBER, selection.members_shared(partition))
        usable = yield from _usable(wanted, bodies)
        if isinstance(usable, Again):
            return AGAIN
        named = {body["metadata"]["name"]: body for body in bodies}
        untried[:] = [named[member.name] for member in usable]
        return choose(wanted, untried)
    owned, free = selection.members_owned(partition, wanted.owner), selection.members_free(partition)
    own, some = yield from steps.list_side_by_side(owned, free)
    usable = yield from _usable(wanted, own)
    if not usable:
        untried[:] = selection.in_turn(wanted, some)
        if (member := choose(wanted, untried)) is not None:
            return member
        # The lists were read in any order. "None free" requires the tenant's own list first, then all free.
        usable = yield from _usable(wanted, (yield from steps.list_all(Kind.MEMBER, owned)))
    if not usable:
        untried[:] = selection.in_turn(wanted, (yield from steps.list_all(Kind.MEMBER, free)))
        return choose(wanted, untried)
    return AGAIN if isinstance(usable, Again) else usable[0]


def _usable(wanted: ClaimRequest, bodies: Iterable[JsonObject]) -> Steps[Sequence[Member] | Again]:
    """Return what the claim can take, in order; AGAIN if a token on one of them must be handled."""
    members = [Member.parse(body) for body in selection.asked_for(wanted, bodies)]
    for member in members:
        for token in tokens_to_look_behind(wanted, member):
            record, alive = yield from steps.record_of(token)
            if record is not None and is_restored(member, token, record):
                yield from refuse_restored(wanted.namespace, record)
                return AGAIN
            if not alive:
                yield from steps.change_member(changes.remove(member, token, record))
            if not alive or token.record == wanted.record:
                return AGAIN
    return selection.in_order(wanted, members)


def tokens_to_look_behind(wanted: ClaimRequest, member: Member) -> Sequence[Token]:
    """Return tokens that might block this claim needlessly: on its tenant's own members, or its own."""
    match judge(member, wanted.place, wanted.owner).verdict:
        case Verdict.CLAIMED if member.tenant == wanted.owner:
            return member.tokens
        case Verdict.ROOM | Verdict.FULL:
            return [token for token in member.tokens if token.record == wanted.record]
        case _:
            return ()


def refusal(wanted: ClaimRequest) -> Steps[PoolError]:
    """Return the error for a claim that found no account, based on all accounts of the type."""
    partition = wanted.place
    bodies = yield from steps.list_all(Kind.MEMBER, selection.members_of_type(partition.type))
    members = mark_twins(Member.parse(body) for body in bodies)
    keys = [key for key, _ in partition.values]
    for member in members:
        if wrong := misconfiguration(member, keys):
            return Misconfigured(
                place=f"Secret {member.name}",
                problem=f"{wrong}; this account cannot be used, and no other is free",
                fix="correct its labels and run again",
            )
    in_use = "full" if partition.shared else "owned"
    here = [member for member in members if member.place(keys) == partition]
    counts = Counter(_counted_as(member, in_use) for member in here)
    counted = ", ".join(f"{counts[name]} {name}" for name in (in_use, *State)) if members else NONE_OF_TYPE
    counted += describe_time(here)
    return Exhausted(
        pool=wanted.namespace, account_type=partition.type, partition=str(partition), counts=counted
    )


def _counted_as(member: Member, in_use: str) -> str:
    return member.state or ("" if member.tenant is None and is_kept_by_time(member) else in_use)


def _is_absent(name: str) -> Steps[bool]:
    """C1: read the record again if nothing was found: a helper might have taken the last for this claim."""
    return (yield from steps.get_record(name)) is None
