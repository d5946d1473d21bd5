"""Claim: the steps of the claim protocol, in its order and with its names.

Nothing here waits, does I/O or reads a clock: each operation is a generator of calls (see `calls`). Between
any two calls, another process might run, this one might die and be rerun, and any answer might be lost. The
comments C0…C8, and in `held_claims.py` R0…R2 and X1…X3, name the steps of docs/design/claim-protocol.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from itertools import count
from typing import TypeAlias

from components.account_pool.core import changes, held_claims, quotas, steps
from components.account_pool.core.calls import Create, Kind, Pause, Steps
from components.account_pool.core.choosing import Again, choose_candidate, find, refusal
from components.account_pool.core.consumers import Consumer
from components.account_pool.core.judgement import (
    is_restored,
    may_take,
    unusable,
)
from components.account_pool.core.model import ClaimRequest, JsonObject, Member, Phase, Policy
from components.account_pool.core.receipts import give_receipt
from components.account_pool.core.records import NO_MEMBER, Claimed, Record
from components.account_pool.core.selection import (
    Choose,
    find_place,
    next_to_take,
    records_of,
)
from components.account_pool.core.snapshot import PoolSnapshot
from components.errors import (
    LimitReached,
    NotAllowed,
    QuotaReached,
    Restored,
    Withheld,
)

Begin: TypeAlias = Callable[[ClaimRequest], Steps[tuple[Record | None, Consumer | None]]]
"""Reads the record of a claim, and its consumer if the pool lists consumers. Raises if the holder is not in
the record and the pool accepts no new claims from it."""


def _begin(wanted: ClaimRequest) -> Steps[tuple[Record | None, Consumer | None]]:
    return (yield from steps.get_record(wanted.record)), None


def claim(wanted: ClaimRequest, begin: Begin = _begin, choose: Choose = next_to_take) -> Steps[Claimed]:
    """Return the account of this tenant's slot, or take one from the pool.

    Raises Exhausted, LimitReached, QuotaReached, Misconfigured, LostMember, NotAllowed or Restored; otherwise
    it retries until it succeeds.
    """
    untried: list[JsonObject] = []
    for attempt in count():
        if attempt:
            yield Pause(attempt - 1)
        record, consumer = yield from begin(wanted)  # C0
        held_claims.refuse_other_state(None if wanted.takes_over else record, wanted.holder, wanted.state)
        is_known = record is not None and wanted.holder in record.holders
        counted = None if consumer is None or consumer.quota_on(wanted.place) is None else consumer
        member: Member | None = None
        room: quotas.Room | None = None
        if record is None:
            member = yield from choose_candidate(wanted, choose)
            if member is None:
                continue
            if counted is not None:
                room = yield from quotas.look(wanted, counted)  # Q1
            record = yield from _create(wanted, member)  # C2
            if record is None:
                continue
        if counted is not None and not (yield from _entered(wanted, counted, record, room)):
            continue
        claimed: Claimed | None = None
        match record.phase:
            case Phase.BOUND:
                claimed = yield from _join(record, wanted)
            case Phase.RELEASING:
                yield from held_claims.finish(record)
            case Phase.PENDING:
                secured = yield from _secure(record, member, wanted, untried, choose)
                if secured is not None:
                    claimed = yield from _bind(*secured, wanted, consumer)
        if claimed is not None:
            return (yield from _received(claimed, wanted, is_known=is_known))
    raise AssertionError


def _received(claimed: Claimed, wanted: ClaimRequest, *, is_known: bool) -> Steps[Claimed]:
    """Write a receipt for a holder that made no copies of the account before: none has the former key."""
    if claimed.rotation and not (is_known or wanted.former or wanted.only):
        yield from give_receipt(claimed.record, wanted.holder, claimed.rotation, wanted.namespace)
    return claimed


def _entered(
    wanted: ClaimRequest, consumer: Consumer, record: Record, room: quotas.Room | None
) -> Steps[bool]:
    """Q2, Q3: enter the record in its consumer's quota if required; False: read the record again.

    Raises QuotaReached, after deleting a record that only this holder began.
    """
    is_in = record.phase is Phase.BOUND and wanted.holder in record.holders
    if is_in or record.phase is Phase.RELEASING:
        return True
    try:
        yield from quotas.enter(wanted, consumer, record, room)
    except QuotaReached:
        is_begun_here = record.phase is Phase.PENDING and {*record.holders} == {wanted.holder}
        if is_begun_here and not (yield from steps.delete_record(record)):
            return False
        raise
    return True


def claim_with_spill(
    wanted: ClaimRequest, begin: Begin = _begin, choose: Choose = next_to_take
) -> Steps[Claimed]:
    """Join one of the accounts of this tenant's slot, or take one more when all are full.

    Raises as `claim`, except LimitReached.
    """
    closed: set[str] = set()
    for attempt in count():
        if attempt:
            yield Pause(attempt - 1)
        records = yield from series_of(wanted)  # C0
        here = find_place(wanted, records, closed)
        try:
            return (yield from claim(here, begin, choose))
        except LimitReached:
            continue  # other claims were first; list again
        except Withheld as refused:
            if not refused.place.startswith("Secret "):
                raise
            closed.add(here.slot)
    raise AssertionError


def series_of(wanted: ClaimRequest) -> Steps[tuple[Record, ...]]:
    """LIST the tenant's records of the type, which include those of the slot's series."""
    bodies = yield from steps.list_all(Kind.RECORD, records_of(wanted.place.type, wanted.owner))
    return PoolSnapshot.of((), bodies).records


def _create(wanted: ClaimRequest, member: Member) -> Steps[Record | None]:
    """C2: create the record first; concurrent first claims of one tenant collide on its name."""
    record = Record(
        name=wanted.record,
        uid="",
        resource_version="",
        tenant=wanted.tenant,
        partition=wanted.place,
        slot=wanted.slot,
        member=member.name,
        member_uid=NO_MEMBER,
        attempt=1,
        phase=Phase.PENDING,
        policy=wanted.policy or Policy.CLEAN,
        limit=wanted.limit,
        holders={wanted.holder: 1},
        states={} if wanted.state is None else {wanted.holder: wanted.state},
    )
    body = yield from steps.write(Create(Kind.RECORD, record.render(wanted.namespace)))
    return None if body is None else Record.parse(body)


def _secure(
    record: Record, candidate: Member | None, wanted: ClaimRequest, untried: list[JsonObject], choose: Choose
) -> Steps[tuple[Record, Member] | None]:
    """C3, C4, C6: make the member that a Pending record names carry it. None: read the record again."""
    member = candidate
    while True:
        if member is None:
            member = yield from steps.get_member(record.member)  # C4
            if member is not None and unusable(member, record) is None and record.is_carried_by(member):
                return record, member
            if member is None or not may_take(member, record, wanted.former):
                outcome = yield from _set_right(record, member, wanted.namespace)
                if outcome is ClaimStanding.AGAIN:
                    return None
                if outcome is ClaimStanding.LOOK:
                    member = None
                    continue
                moved = yield from _move(record, wanted, untried, choose)
                if moved is None:
                    return None
                record, member = moved
        try:
            taken = yield from steps.change_member(changes.take(member, record))  # C3
        except NotAllowed:
            yield from steps.delete_record(record)
            raise
        if taken is not None:
            return record, taken
        member = None


class ClaimStanding(StrEnum):
    """Next step for the member of a Pending record: read it or the record again, or try another one."""

    LOOK = "look"
    AGAIN = "again"
    LEAVE = "leave"


def _set_right(record: Record, member: Member | None, namespace: str) -> Steps[ClaimStanding]:
    """C4: the member is not the record's, or not usable. Repair a manual edit or remove a dead claim."""
    if member is None or member.shared or unusable(member, record) or member.token is None:
        return ClaimStanding.LEAVE
    if record.is_stripped_from(member):
        yield from steps.change_member(changes.heal(member, record))
        return ClaimStanding.AGAIN
    if member.tenant not in (None, record.tenant_label):
        return ClaimStanding.LEAVE
    other, alive = yield from steps.record_of(member.token)
    if other is not None and is_restored(member, member.token, other):
        yield from held_claims.refuse_restored(namespace, other)
        return ClaimStanding.AGAIN
    if not alive:
        yield from steps.change_member(changes.remove(member, member.token, other))
        return ClaimStanding.LOOK
    return ClaimStanding.AGAIN if member.token.record == record.name else ClaimStanding.LEAVE


def _move(
    record: Record, wanted: ClaimRequest, untried: list[JsonObject], choose: Choose
) -> Steps[tuple[Record, Member] | None]:
    """C6: the record's member cannot be taken; try another, or delete the record and raise the reason."""
    choice = yield from find(wanted, untried, choose)
    if isinstance(choice, Again):
        return None
    if choice is None:
        if (yield from steps.delete_record(record)):
            raise (yield from refusal(wanted))
        return None
    if choice.name == record.member:
        return record, choice
    moved = yield from steps.replace_record(record.moved_to(choice), wanted.namespace)
    return None if moved is None else (moved, choice)


def _bind(
    record: Record, member: Member, wanted: ClaimRequest, consumer: Consumer | None = None
) -> Steps[Claimed | None]:
    """C5, C7: bind the record to its member, or release the member if the record is gone.

    `consumer`: only its holders are kept. Others that began the claim might not have entered their quota yet;
    they join on their own.
    """
    while True:
        for holder in record.holders:
            if consumer is not None and not consumer.claims_as(holder):
                record = record.without_holder(holder)
        has_room = record.has_room_for(wanted.holder)
        bound = replace(record, phase=Phase.BOUND, member_uid=member.uid)
        if has_room and wanted.holder not in bound.holders:
            bound = bound.with_holder(wanted.holder, wanted.state)
        written = yield from steps.replace_record(bound, wanted.namespace)  # C5
        if written is not None:
            if not has_room:
                raise held_claims.limit_reached(written)
            return Claimed.by(written, member, wanted.holder, reused=False)
        current = yield from steps.get_record(record.name)  # C7
        if current is None or current.token != record.token:
            if not is_restored(member, record.token, current):
                yield from _give_back(record, member)
            return None
        match current.phase:
            case Phase.PENDING:
                record = current
            case Phase.BOUND:
                return (yield from _join(current, wanted))
            case Phase.RELEASING:
                yield from held_claims.finish(current)
                return None


def _give_back(record: Record, member: Member | None) -> Steps[None]:
    """C7: our token died before the record was bound, so the member was never given out: release it."""
    for attempt in count():
        if member is None or not member.bears(record.token):
            return
        patch = changes.remove(member, record.token, record, Policy.RELEASE)
        if (yield from steps.change_member(patch)) is not None:
            return
        yield Pause(attempt)
        member = yield from steps.get_member(member.name)


def _join(record: Record, wanted: ClaimRequest) -> Steps[Claimed | None]:
    """C8: add a holder to a Bound record, or confirm a known one. None: read the record again."""
    member = yield from steps.get_member(record.member)
    if member is not None and record.moves is not None and member.bears(record.moves):
        yield from steps.change_member(changes.follow(member, record))  # N2
        return None
    if member is None or not record.is_carried_by(member):
        if not (yield from held_claims.is_unchanged(record)):
            return None
        yield from held_claims.refuse_former_name(record, member)
        if member is not None and record.is_stripped_from(member):
            yield from steps.change_member(changes.heal(member, record))
            return None
        if member is not None and any(is_restored(member, token, record) for token in member.tokens):
            raise Restored(namespace=wanted.namespace, member=member.name)
        raise held_claims.lost(record, member)
    why = unusable(member, record)
    if why is not None and wanted.holder not in record.holders:
        raise Withheld(
            place=f"Secret {member.name}",
            problem=f"{why}; only its present users may keep it",
            fix="use another slot, or ask the pool's operator about this account",
        )
    if not record.has_room_for(wanted.holder):
        raise held_claims.limit_reached(record)
    joined = yield from steps.replace_record(
        record.with_holder(wanted.holder, wanted.state), wanted.namespace
    )
    return None if joined is None else Claimed.by(joined, member, wanted.holder, reused=True)
