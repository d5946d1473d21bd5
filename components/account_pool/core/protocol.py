"""Claim, read, update and release: the steps of the claim protocol, in its order and under its names.

Nothing here waits, talks or knows a clock: each operation is a generator of calls (see `calls`). Between
any two of them any other process may run, this one may die and be run again, and any answer may be lost.
The comments C0…C8, R0…R2 and X1…X3 name the steps of docs/design/claim-protocol.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from itertools import count
from typing import TypeAlias

from components.account_pool.core import changes, quotas
from components.account_pool.core.calls import Create, Found, Get, Kind, Pair, Parallel, Pause, Steps
from components.account_pool.core.consumers import Consumer
from components.account_pool.core.identity import mark_twins
from components.account_pool.core.judgement import (
    NONE_OF_TYPE,
    Verdict,
    describe_time,
    is_kept_by_time,
    is_restored,
    judge,
    may_take,
    may_take_back,
    misconfiguration,
    unusable,
)
from components.account_pool.core.model import (
    NO_MEMBER,
    Claimed,
    ClaimRequest,
    Fence,
    JsonObject,
    Member,
    Phase,
    Policy,
    Record,
    State,
    Token,
)
from components.account_pool.core.selection import (
    Choose,
    asked_for,
    in_order,
    in_turn,
    members_free,
    members_of_type,
    members_owned,
    members_shared,
    next_to_take,
    records_of,
)
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.spilling import find_place
from components.account_pool.core.steps import (
    change_member,
    delete_record,
    get_member,
    get_record,
    list_all,
    list_side_by_side,
    record_of,
    replace_record,
    write,
)
from components.errors import (
    Exhausted,
    LimitReached,
    LostMember,
    Misconfigured,
    NotAllowed,
    PoolError,
    QuotaReached,
    Restored,
    Withheld,
    held_by_another_state,
)


class Again(Enum):
    """Another process, perhaps an earlier run of ours, works on this very claim: look at its record again."""

    AGAIN = "again"


AGAIN = Again.AGAIN
Choice: TypeAlias = Member | Again | None
Begin: TypeAlias = Callable[[ClaimRequest], Steps[tuple[Record | None, Consumer | None]]]
"""Reads the record of a claim, and which consumer claims where the pool names some; raises where the holder
is not in it and the pool takes no new claims of its."""


def _begin(wanted: ClaimRequest) -> Steps[tuple[Record | None, Consumer | None]]:
    return (yield from get_record(wanted.record)), None


def claim(wanted: ClaimRequest, begin: Begin = _begin, choose: Choose = next_to_take) -> Steps[Claimed]:
    """Find the one account of this tenant's slot, or take one from the pool.

    Raises Exhausted, LimitReached, QuotaReached, Misconfigured, LostMember, NotAllowed or Restored; ends by
    itself in no other way.
    """
    untried: list[JsonObject] = []
    for attempt in count():
        if attempt:
            yield Pause(attempt - 1)
        record, consumer = yield from begin(wanted)  # C0
        refuse_other_state(None if wanted.takes_over else record, wanted.holder, wanted.state)
        counted = None if consumer is None or consumer.quota_on(wanted.place) is None else consumer
        member: Member | None = None
        room: quotas.Room | None = None
        if record is None:
            member = yield from _candidate(wanted, choose)
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
                yield from finish(record)
            case Phase.PENDING:
                secured = yield from _secure(record, member, wanted, untried, choose)
                if secured is not None:
                    claimed = yield from _bind(*secured, wanted, consumer)
        if claimed is not None:
            return claimed
    raise AssertionError


def refuse_other_state(record: Record | None, holder: str, state: str | None) -> None:
    """C0, N0: raise NotAllowed where a stack of another state has the claim under this name."""
    if record is not None and record.is_of_another_state(holder, state):
        raise held_by_another_state(record.tenant, record.slot, holder)


def _candidate(wanted: ClaimRequest, choose: Choose) -> Steps[Member | None]:
    """C1: choose a member for a claim that is not there; None: look at its record again."""
    former = yield from _former(wanted)
    if former is not None:
        return former
    choice = yield from find(wanted, [], choose)
    if choice is None and (yield from _is_absent(wanted.record)):
        raise (yield from refusal(wanted))
    return None if isinstance(choice, Again) else choice


def _former(wanted: ClaimRequest) -> Steps[Member | None]:
    """C1: the account that the claim had before its record was lost, unless another has it."""
    member = None if wanted.former is None else (yield from get_member(wanted.former))
    if member is None:
        return None
    takes = judge(member, wanted.place, wanted.owner).takes
    return member if takes or may_take_back(member, wanted.place, wanted.owner, wanted.former) else None


def _entered(
    wanted: ClaimRequest, consumer: Consumer, record: Record, room: quotas.Room | None
) -> Steps[bool]:
    """Q2, Q3: the record is in its consumer's quota, if need be; False: look at the record again.

    Raises QuotaReached, after it took back a record that this holder alone began.
    """
    is_in = record.phase is Phase.BOUND and wanted.holder in record.holders
    if is_in or record.phase is Phase.RELEASING:
        return True
    try:
        yield from quotas.enter(wanted, consumer, record, room)
    except QuotaReached:
        is_begun_here = record.phase is Phase.PENDING and {*record.holders} == {wanted.holder}
        if is_begun_here and not (yield from delete_record(record)):
            return False
        raise
    return True


def claim_with_spill(
    wanted: ClaimRequest, begin: Begin = _begin, choose: Choose = next_to_take
) -> Steps[Claimed]:
    """Find a place in the accounts of this tenant's slot, or take one more account when all are full.

    Raises as `claim`, but LimitReached.
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
            continue  # others came first; look again
        except Withheld as refused:
            if not refused.place.startswith("Secret "):
                raise
            closed.add(here.slot)
    raise AssertionError


def series_of(wanted: ClaimRequest) -> Steps[tuple[Record, ...]]:
    """LIST the records of the tenant on the type, among them those of the slot's series."""
    bodies = yield from list_all(Kind.RECORD, records_of(wanted.place.type, wanted.owner))
    return PoolSnapshot.of((), bodies).records


def find(wanted: ClaimRequest, untried: list[JsonObject], choose: Choose) -> Steps[Choice]:
    """Choose a member to take at the resourceVersion it was listed; None when there is none to take.

    untried: members of an earlier answer not tried yet, in order; refilled here. Using an old entry is safe,
    since every use is a CAS, but only a fresh look at all of them may say that there is none.
    """
    if (member := choose(wanted, untried)) is not None:
        return member
    partition = wanted.place
    if partition.shared:
        bodies = yield from list_all(Kind.MEMBER, members_shared(partition))
        usable = yield from _usable(wanted, bodies)
        if isinstance(usable, Again):
            return AGAIN
        named = {body["metadata"]["name"]: body for body in bodies}
        untried[:] = [named[member.name] for member in usable]
        return choose(wanted, untried)
    owned, free = members_owned(partition, wanted.owner), members_free(partition)
    own, some = yield from list_side_by_side(owned, free)
    usable = yield from _usable(wanted, own)
    if not usable:
        untried[:] = in_turn(wanted, some)
        if (member := choose(wanted, untried)) is not None:
            return member
        # The pages were read in any order; "none" needs the tenant's own first and then all the free.
        usable = yield from _usable(wanted, (yield from list_all(Kind.MEMBER, owned)))
    if not usable:
        untried[:] = in_turn(wanted, (yield from list_all(Kind.MEMBER, free)))
        return choose(wanted, untried)
    return AGAIN if isinstance(usable, Again) else usable[0]


def _usable(wanted: ClaimRequest, bodies: Iterable[JsonObject]) -> Steps[Sequence[Member] | Again]:
    """Return what it may take, in order; AGAIN when a token on one of them changes what it has to do."""
    members = [Member.parse(body) for body in asked_for(wanted, bodies)]
    for member in members:
        for token in tokens_to_look_behind(wanted, member):
            record, alive = yield from record_of(token)
            if record is not None and is_restored(member, token, record):
                yield from _refuse_restored(wanted.namespace, record)
                return AGAIN
            if not alive:
                yield from change_member(changes.remove(member, token, record))
            if not alive or token.record == wanted.record:
                return AGAIN
    return in_order(wanted, members)


def tokens_to_look_behind(wanted: ClaimRequest, member: Member) -> Sequence[Token]:
    """Return what may keep the member from this claim without need: left on its tenant's own, or its own."""
    match judge(member, wanted.place, wanted.owner).verdict:
        case Verdict.CLAIMED if member.tenant == wanted.owner:
            return member.tokens
        case Verdict.ROOM | Verdict.FULL:
            return [token for token in member.tokens if token.record == wanted.record]
        case _:
            return ()


def refusal(wanted: ClaimRequest) -> Steps[PoolError]:
    """Return why nothing could be claimed, as everything of the type shows it."""
    partition = wanted.place
    bodies = yield from list_all(Kind.MEMBER, members_of_type(partition.type))
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
    """C1: look once more, after nothing was found: a helper may have taken the last member for this claim."""
    return (yield from get_record(name)) is None


def _create(wanted: ClaimRequest, member: Member) -> Steps[Record | None]:
    """C2: the record comes first; its fixed name is where two first claims of one tenant collide."""
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
    body = yield from write(Create(Kind.RECORD, record.render(wanted.namespace)))
    return None if body is None else Record.parse(body)


def _secure(
    record: Record, candidate: Member | None, wanted: ClaimRequest, untried: list[JsonObject], choose: Choose
) -> Steps[tuple[Record, Member] | None]:
    """C3, C4, C6: until the member a Pending record names carries it. None: look at the record again."""
    member = candidate
    while True:
        if member is None:
            member = yield from get_member(record.member)  # C4
            if member is not None and unusable(member, record) is None and member.carries(record):
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
            taken = yield from change_member(changes.take(member, record))  # C3
        except NotAllowed:
            yield from delete_record(record)
            raise
        if taken is not None:
            return record, taken
        member = None


class ClaimStanding(StrEnum):
    """What to do about the member of a Pending record: look at it or at the record again, or leave it."""

    LOOK = "look"
    AGAIN = "again"
    LEAVE = "leave"


def _set_right(record: Record, member: Member | None, namespace: str) -> Steps[ClaimStanding]:
    """C4: the member is neither the record's nor usable. Fix what a hand edit or a dead claim left on it."""
    if member is None or member.shared or unusable(member, record) or member.token is None:
        return ClaimStanding.LEAVE
    if member.is_stripped_of(record):
        yield from change_member(changes.heal(member, record))
        return ClaimStanding.AGAIN
    if member.tenant not in (None, record.tenant_label):
        return ClaimStanding.LEAVE
    other, alive = yield from record_of(member.token)
    if other is not None and is_restored(member, member.token, other):
        yield from _refuse_restored(namespace, other)
        return ClaimStanding.AGAIN
    if not alive:
        yield from change_member(changes.remove(member, member.token, other))
        return ClaimStanding.LOOK
    return ClaimStanding.AGAIN if member.token.record == record.name else ClaimStanding.LEAVE


def _move(
    record: Record, wanted: ClaimRequest, untried: list[JsonObject], choose: Choose
) -> Steps[tuple[Record, Member] | None]:
    """C6: the record's member is not to be had; try another, or take the record back and say why."""
    choice = yield from find(wanted, untried, choose)
    if isinstance(choice, Again):
        return None
    if choice is None:
        if (yield from delete_record(record)):
            raise (yield from refusal(wanted))
        return None
    if choice.name == record.member:
        return record, choice
    moved = yield from replace_record(record.moved_to(choice), wanted.namespace)
    return None if moved is None else (moved, choice)


def _bind(
    record: Record, member: Member, wanted: ClaimRequest, consumer: Consumer | None = None
) -> Steps[Claimed | None]:
    """C5, C7: the record says that the member was taken for good, or the member is given back.

    consumer: only its holders stay. Others that began the claim may not have entered their quota yet; they
    join by themselves.
    """
    while True:
        for holder in record.holders:
            if consumer is not None and not consumer.claims_as(holder):
                record = record.without_holder(holder)
        has_room = record.has_room_for(wanted.holder)
        bound = replace(record, phase=Phase.BOUND, member_uid=member.uid)
        if has_room and wanted.holder not in bound.holders:
            bound = bound.with_holder(wanted.holder, wanted.state)
        written = yield from replace_record(bound, wanted.namespace)  # C5
        if written is not None:
            if not has_room:
                raise _limit_reached(written)
            return Claimed.by(written, member, wanted.holder, reused=False)
        current = yield from get_record(record.name)  # C7
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
                yield from finish(current)
                return None


def _give_back(record: Record, member: Member | None) -> Steps[None]:
    """C7: our token died before it was bound, so the member was never handed out: release it."""
    for attempt in count():
        if member is None or not member.bears(record.token):
            return
        patch = changes.remove(member, record.token, record, Policy.RELEASE)
        if (yield from change_member(patch)) is not None:
            return
        yield Pause(attempt)
        member = yield from get_member(member.name)


def _join(record: Record, wanted: ClaimRequest) -> Steps[Claimed | None]:
    """C8: one more holder of a Bound record, or a known one again. None: look at the record again."""
    member = yield from get_member(record.member)
    if member is not None and record.moves is not None and member.bears(record.moves):
        yield from change_member(changes.follow(member, record))  # N2
        return None
    if member is None or not member.carries(record):
        if not (yield from _is_unchanged(record)):
            return None
        yield from _refuse_former_name(record, member)
        if member is not None and member.is_stripped_of(record):
            yield from change_member(changes.heal(member, record))
            return None
        if member is not None and any(is_restored(member, token, record) for token in member.tokens):
            raise Restored(namespace=wanted.namespace, member=member.name)
        raise lost(record, member)
    why = unusable(member, record)
    if why is not None and wanted.holder not in record.holders:
        raise Withheld(
            place=f"Secret {member.name}",
            problem=f"{why}; only its present users may keep it",
            fix="use another slot, or ask the pool's operator about this account",
        )
    if not record.has_room_for(wanted.holder):
        raise _limit_reached(record)
    joined = yield from replace_record(record.with_holder(wanted.holder, wanted.state), wanted.namespace)
    return None if joined is None else Claimed.by(joined, member, wanted.holder, reused=True)


def _refuse_restored(namespace: str, record: Record) -> Steps[None]:
    """Raise Restored, if this Bound record came back: where others claim meanwhile, it may only look so.

    Only a member that was read between two equal readings of its record tells it; the one that gave
    rise to the question was read before.
    """
    member = yield from get_member(record.member)
    looks_restored = member is not None and any(is_restored(member, token, record) for token in member.tokens)
    if looks_restored and (yield from _is_unchanged(record)):
        raise Restored(namespace=namespace, member=record.member)


def _is_unchanged(record: Record) -> Steps[bool]:
    """Read a record again: whether it still is as it was read."""
    again = yield from get_record(record.name)
    return again is not None and again.resource_version == record.resource_version


def _limit_reached(record: Record) -> LimitReached:
    return LimitReached(
        tenant=record.tenant,
        account_type=record.partition.type,
        member=record.member,
        holders=len(record.holders),
        limit=record.limit or 0,
    )


def lost(record: Record, member: Member | None) -> LostMember:
    """Return that the account of a claim is not the claim's any more."""
    return LostMember(member=record.member, owner=member.tenant if member else None, tenant=record.tenant)


def _moved_on(record: Record, member: Member | None) -> Steps[Record | None]:
    """Return the record of the new name that has the account of this one, whose move is not at its end."""
    for token in () if member is None else member.tokens:
        other = yield from get_record(token.record)
        if other is not None and other.moves == record.token:
            return other
    return None


def _refuse_former_name(record: Record, member: Member | None) -> Steps[None]:
    other = yield from _moved_on(record, member)
    if other is not None:
        raise NotAllowed(
            place=f"claim {record.tenant}/{record.slot}",
            problem=f"it is called {other.tenant}/{other.slot} by now, and account {other.member} stays its",
            fix="run `up` in the stack that renamed it, which was stopped half-way, or use the new name",
        )


def read_claim(name: str, holder: str, member_name: str | None = None) -> Steps[Claimed | None]:
    """Return what this holder has, without a write. None: gone. Raises LostMember.

    member_name: where the account is expected; then record and member are read at the same time, which may
    confirm the claim but never deny it.
    """
    if member_name is not None:
        answer = yield Parallel(Get(Kind.RECORD, name), Get(Kind.MEMBER, member_name))
        if isinstance(answer, Pair) and isinstance(answer.first, Found) and isinstance(answer.second, Found):
            record, member = Record.parse(answer.first.body), Member.parse(answer.second.body)
            if _has(record, holder) and record.member == member.name and member.carries(record):
                return Claimed.by(record, member, holder, reused=True)
    while True:
        record = yield from get_record(name)
        if record is None or not _has(record, holder):
            return None
        member = yield from get_member(record.member)
        if member is not None and member.carries(record):
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
    """New facts of a claim: its policy and limit belong to the record, the holder's name to the holder."""

    holder: str
    policy: Policy
    limit: int | None
    state: str | None = None


def update(name: str, holder: str, amended: Amendment, namespace: str) -> Steps[Claimed | None]:
    """Change a held claim without giving it up for a moment. None: gone.

    A holder who stays keeps its sequence number: what it shows at its release is still what it was given,
    even if the answer to this write never reached it. Raises LostMember, before anything is written, and
    LimitReached when more consumers hold the claim than the new limit allows.
    """
    for attempt in count():
        if attempt:
            yield Pause(attempt - 1)
        record = yield from get_record(name)
        if record is None or not (_has(record, holder) or _has(record, amended.holder)):
            return None
        for each in (holder, amended.holder):
            refuse_other_state(record, each, amended.state)
        member = yield from get_member(record.member)
        if member is None or not member.carries(record):
            yield from _refuse_former_name(record, member)
            yield from read_claim(name, holder if holder in record.holders else amended.holder)
            continue
        if holder != amended.holder:
            record = record.without_holder(holder)
        if amended.holder not in record.holders:
            record = record.with_holder(amended.holder)
        states = record.states if amended.state is None else {**record.states, amended.holder: amended.state}
        changed = replace(record, policy=amended.policy, limit=amended.limit, states=states)
        if changed.limit is not None and len(changed.holders) > changed.limit:
            raise _limit_reached(changed)
        noted = changes.agree(member, changed)  # first, so that no account whose record is lost goes free
        if noted is not None and (yield from change_member(noted)) is None:
            continue
        written = yield from replace_record(changed, namespace)
        if written is not None:
            return Claimed.by(written, member, amended.holder, reused=True)
    raise AssertionError


class Outcome(StrEnum):
    """What a release did."""

    RELEASED = "released"
    NOT_HELD = "not-held"
    OVERTAKEN = "overtaken"


@dataclass(frozen=True, slots=True)
class Released:
    """The outcome of a release.

    member: the account, where a record still named one. last: it has no holder now.
    """

    outcome: Outcome
    member: str | None = None
    last: bool = False


def release(name: str, holder: str, namespace: str, fence: Fence | None = None) -> Steps[Released]:
    """Let this holder go; with the last one the member goes where the policy says.

    A missing claim counts as released.

    fence: which claim is meant. A holder who has claimed again since, as a replacement does, keeps what it
    has.
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
    """X1-X3, by any process that meets a Releasing one: off its member, then deleted. False: look again."""
    for attempt in count():
        member = yield from get_member(record.member)  # X1
        if member is None or not member.bears(record.token):
            break
        patch = changes.remove(member, record.token, record, record.policy)
        if (yield from change_member(patch)) is not None:  # X2
            break
        yield Pause(attempt)
    return (yield from delete_record(record))  # X3
