"""Steps of the claim protocol that follow a claim: read, update and release it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count

from components.account_pool.core import changes
from components.account_pool.core.calls import Found, Get, Kind, Pair, Parallel, Pause, Steps
from components.account_pool.core.judgement import is_restored
from components.account_pool.core.model import Member, Phase, Policy
from components.account_pool.core.records import Claimed, Fence, Record
from components.account_pool.core.steps import (
    change_member,
    delete_record,
    get_member,
    get_record,
    replace_record,
)
from components.errors import LimitReached, LostMember, NotAllowed, Restored, held_by_another_state


def read_claim(name: str, holder: str, member_name: str | None = None) -> Steps[Claimed | None]:
    """Return what this holder has, without a write; None if it has no claim. Raises LostMember.

    `member_name`: expected account; record and member are then read in parallel. That can confirm the claim
    but not deny it.
    """
    if member_name is not None:
        answer = yield Parallel(Get(Kind.RECORD, name), Get(Kind.MEMBER, member_name))
        if isinstance(answer, Pair) and isinstance(answer.first, Found) and isinstance(answer.second, Found):
            record, member = Record.parse(answer.first.body), Member.parse(answer.second.body)
            if _has(record, holder) and record.member == member.name and record.is_carried_by(member):
                return Claimed.by(record, member, holder, reused=True)
    while True:
        record = yield from get_record(name)
        if record is None or not _has(record, holder):
            return None
        member = yield from get_member(record.member)
        if member is not None and record.is_carried_by(member):
            return Claimed.by(record, member, holder, reused=True)
        again = yield from get_record(name)
        if again is not None and again.resource_version == record.resource_version:
            is_moving = member is not None and record.moves is not None and member.bears(record.moves)
            if member is not None and (is_moving or (yield from _moved_on(record, member)) is not None):
                return Claimed.by(record, member, holder, reused=True)
            raise lost(record, member)


def _has(record: Record, holder: str) -> bool:
    return record.phase is Phase.BOUND and holder in record.holders


@dataclass(frozen=True, slots=True)
class Amendment:
    """New settings of a claim: policy and limit belong to the record, the name to the holder."""

    holder: str
    policy: Policy
    limit: int | None
    state: str | None = None
    takes_over: bool = False  # see `ClaimRequest`


def update(name: str, holder: str, amended: Amendment, namespace: str) -> Steps[Claimed | None]:
    """Change a held claim without releasing it in between; None if it is gone.

    A holder that stays keeps its sequence number: its release must still match what it was given, even if the
    answer to this write is lost. Raises LostMember before anything is written, and LimitReached if more
    consumers hold the claim than the new limit allows.
    """
    for attempt in count():
        if attempt:
            yield Pause(attempt - 1)
        record = yield from get_record(name)
        if record is None or not (_has(record, holder) or _has(record, amended.holder)):
            return None
        for each in (holder, amended.holder):
            refuse_other_state(None if amended.takes_over else record, each, amended.state)
        member = yield from get_member(record.member)
        if member is None or not record.is_carried_by(member):
            yield from refuse_former_name(record, member)
            yield from read_claim(name, holder if holder in record.holders else amended.holder)
            continue
        if holder != amended.holder:
            record = record.without_holder(holder)
        if amended.holder not in record.holders:
            record = record.with_holder(amended.holder)
        states = record.states if amended.state is None else {**record.states, amended.holder: amended.state}
        changed = replace(record, policy=amended.policy, limit=amended.limit, states=states)
        if changed.limit is not None and len(changed.holders) > changed.limit:
            raise limit_reached(changed)
        noted = changes.agree(member, changed)  # first, so that no account becomes free if its record is lost
        if noted is not None and (yield from change_member(noted)) is None:
            continue
        written = yield from replace_record(changed, namespace)
        if written is not None:
            return Claimed.by(written, member, amended.holder, reused=True)
    raise AssertionError


class Outcome(StrEnum):
    """Effect of a release."""

    RELEASED = "released"
    NOT_HELD = "not-held"
    OVERTAKEN = "overtaken"


@dataclass(frozen=True, slots=True)
class Released:
    """Outcome of a release.

    `member`: the account, if a record still named it. `last`: it has no holder left.
    """

    outcome: Outcome
    member: str | None = None
    last: bool = False


def release(name: str, holder: str, namespace: str, fence: Fence | None = None) -> Steps[Released]:
    """Remove this holder; after the last one, the member is handled by its release policy.

    A missing claim counts as released. `fence`: the claim to release. A holder that claimed again since then,
    as a replacement does, keeps its claim.
    """
    left: str | None = None
    for attempt in count():
        if attempt:
            yield Pause(attempt - 1)
        record = yield from get_record(name)  # R0
        if record is not None and record.phase is Phase.RELEASING:
            if not (yield from finish(record)):
                continue
            return Released(Outcome.RELEASED, record.member, last=True)
        if record is None or holder not in record.holders:
            return Released(Outcome.RELEASED if left else Outcome.NOT_HELD, left, last=record is None)
        if fence is not None and fence.is_overtaken(record, holder):
            return Released(Outcome.OVERTAKEN, record.member)
        left = record.member
        rest = record.without_holder(holder)
        if rest.holders:
            if (yield from replace_record(rest, namespace)) is not None:  # R1
                return Released(Outcome.RELEASED, left)
            continue
        releasing = yield from replace_record(replace(rest, phase=Phase.RELEASING), namespace)  # R2
        if releasing is not None and (yield from finish(releasing)):
            return Released(Outcome.RELEASED, left, last=True)
    raise AssertionError


def finish(record: Record) -> Steps[bool]:
    """X1-X3, run by any process that finds a Releasing record: clear its member, delete it. False: retry."""
    for attempt in count():
        member = yield from get_member(record.member)  # X1
        if member is None or not member.bears(record.token):
            break
        patch = changes.remove(member, record.token, record, record.policy)
        if (yield from change_member(patch)) is not None:  # X2
            break
        yield Pause(attempt)
    return (yield from delete_record(record))  # X3


def refuse_other_state(record: Record | None, holder: str, state: str | None) -> None:
    """C0, N0: raise NotAllowed if a stack with another state holds the claim under this name."""
    if record is not None and record.is_of_another_state(holder, state):
        raise held_by_another_state(record.tenant, record.slot, holder)


def limit_reached(record: Record) -> LimitReached:
    """Return the error for a claim that has reached its limit of consumers."""
    return LimitReached(
        tenant=record.tenant,
        account_type=record.partition.type,
        member=record.member,
        holders=len(record.holders),
        limit=record.limit or 0,
    )


def lost(record: Record, member: Member | None) -> LostMember:
    """Return the error for a claim whose account no longer belongs to it."""
    return LostMember(member=record.member, owner=member.tenant if member else None, tenant=record.tenant)


def _moved_on(record: Record, member: Member | None) -> Steps[Record | None]:
    """Return the record under the claim's new name to which this record's account is being moved."""
    for token in () if member is None else member.tokens:
        other = yield from get_record(token.record)
        if other is not None and other.moves == record.token:
            return other
    return None


def refuse_former_name(record: Record, member: Member | None) -> Steps[None]:
    """Raise NotAllowed if the claim was renamed and its account moved to the new name."""
    other = yield from _moved_on(record, member)
    if other is not None:
        raise NotAllowed(
            place=f"claim {record.tenant}/{record.slot}",
            problem=f"it is called {other.tenant}/{other.slot} now, and account {other.member} stays its",
            fix="run `up` in the stack that renamed it, which was stopped half-way, or use the new name",
        )


def refuse_restored(namespace: str, record: Record) -> Steps[None]:
    """Raise Restored if this Bound record was restored from a backup; concurrent claims can look alike.

    Proof requires a member that was read between two equal reads of its record. The caller read the member
    earlier, so it is read again here.
    """
    member = yield from get_member(record.member)
    looks_restored = member is not None and any(is_restored(member, token, record) for token in member.tokens)
    if looks_restored and (yield from is_unchanged(record)):
        raise Restored(namespace=namespace, member=record.member)


def is_unchanged(record: Record) -> Steps[bool]:
    """Return whether a record is unchanged since it was read."""
    again = yield from get_record(record.name)
    return again is not None and again.resource_version == record.resource_version
