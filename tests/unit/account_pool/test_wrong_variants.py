"""Deliberate mistakes in the protocol, each found by the same exploration: the invariants can fail.

The numbers are those of the wrong variants that the protocol's model was checked with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest

from components.account_pool import changes, cleaning, judgement, protocol, selection
from components.account_pool.calls import Both, Call, Delete, Kind, Patch, Pause, Steps, Together, perform
from components.account_pool.errors import Exhausted
from components.account_pool.judgement import Judgement, Verdict, judge
from components.account_pool.keys import CLAIM_ORIGIN, CLEANING_TOKEN, POOL_STATE, SHARED_CAPACITY
from components.account_pool.model import (
    Claimed,
    Member,
    Origin,
    Partition,
    Phase,
    Policy,
    Record,
    State,
    Wanted,
)
from components.account_pool.protocol import Standing
from components.account_pool.selection import MEMBERS, RECORDS
from components.account_pool.steps import (
    change_member,
    get_member,
    list_all,
    record_of,
    replace_record,
)
from components.labels import SHARED, TENANT_NAME
from tests.support.memory_pool import (
    POOL,
    ByHand,
    Claims,
    Cleans,
    Fault,
    MemoryServer,
    Op,
    Releases,
    Sweeps,
    Violation,
    World,
    explore,
    is_free,
    run,
)

A, A2, A_SLOT1, B = Claims("a", "h1"), Claims("a", "h2"), Claims("a", "h1", slot="1"), Claims("b", "h4")


def world(
    members: int, *scripts: tuple[Op, ...], faults: int = 0, may: frozenset[Fault] = frozenset()
) -> World:
    server = MemoryServer()
    for index in range(members):
        server.add_member(f"m{index}")
    return World.of(server, *scripts, faults=faults, may=may)


def judged_as(monkeypatch: pytest.MonkeyPatch, wrongly: Callable[..., Judgement]) -> None:
    """Judge so wherever the protocol asks: for members it lists, and for the one a record names."""
    for module in (protocol, selection, judgement):
        monkeypatch.setattr(module, "judge", wrongly)


def wrong_bind(record: Record, member: Member, wanted: Wanted) -> Steps[Claimed | None]:
    bound = replace(record, phase=Phase.BOUND).with_holder(wanted.holder)
    written = yield from replace_record(bound, POOL)
    if written is None:
        yield from change_member(changes.remove(member, record.token, record, Policy.RELEASE))
        return None
    return Claimed.by(written, member, wanted.holder, reused=False)


def test_w1_undoing_ones_own_label_whenever_binding_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_bind", wrong_bind)
    with pytest.raises(Violation, match=r"I[13]"):
        explore(world(1, (A,), (A2,)))


def test_w2_ownership_by_the_label_alone_gives_two_slots_one_account(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_mine(
        member: Member, partition: Partition, owner: str, records: Mapping[str, Record] | None = None
    ) -> Judgement:
        if member.tenant == owner and member.state is None:
            return Judgement(Verdict.OWN, "")
        return judge(member, partition, owner, records)

    def carries(member: Member, record: Record) -> bool:
        return member.tenant == record.tenant_label

    judged_as(monkeypatch, is_mine)
    monkeypatch.setattr(Member, "carries", carries)
    with pytest.raises(Violation, match=r"I[1235]"):
        explore(world(2, (A,), (A_SLOT1,)))


def test_w4_a_cleaner_that_always_removes_the_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    def always_free(member: Member) -> Patch:
        body = {"labels": {POOL_STATE: None, TENANT_NAME: None}, "annotations": {CLEANING_TOKEN: None}}
        return Patch(
            Kind.MEMBER, member.name, {"metadata": {"resourceVersion": member.resource_version, **body}}
        )

    monkeypatch.setattr(changes, "finish_cleaning", always_free)
    server = MemoryServer()
    server.add_member("own", {TENANT_NAME: "a", POOL_STATE: "dirty"})
    ends = explore(World.of(server, (Cleans("k1"),))).ends
    assert [end.server.member("own").tenant for end in ends] == [None], (
        "the right one leaves it with its tenant"
    )


def test_w6_the_release_policy_applied_to_an_account_its_tenant_brought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = changes.take

    def as_from_the_pool(member: Member, record: Record) -> Patch:
        patch = right(member, record)
        patch.body["metadata"]["annotations"][CLAIM_ORIGIN] = str(Origin.POOL)
        return patch

    monkeypatch.setattr(changes, "take", as_from_the_pool)
    server = MemoryServer()
    server.add_member("own", {TENANT_NAME: "a"})
    ends = explore(World.of(server, (A, Releases(A)))).ends
    assert [end.server.member("own").tenant for end in ends] == [None], (
        "the right one leaves it with its tenant"
    )


@dataclass(frozen=True)
class HastySweep(Sweeps):
    """W7: lists records before members."""

    def start(self, _held: object) -> Steps[None]:
        records = yield from list_all(Kind.RECORD, RECORDS)
        alive = {str(Record.parse(body).token) for body in records}
        for body in (yield from list_all(Kind.MEMBER, MEMBERS)):
            member = Member.parse(body)
            for token in member.tokens:
                if str(token) not in alive:
                    yield from change_member(changes.remove(member, token, None))


def test_w7_a_sweep_that_lists_records_before_members() -> None:
    with pytest.raises(Violation, match="I1"):
        explore(world(1, (A,), (HastySweep(),)))


def test_w8_a_token_judged_by_a_record_read_before_the_member(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_the_old_view(record: Record, member: Member | None) -> Steps[Standing]:
        if member is None or member.token is None:
            return Standing.LEAVE
        if member.token != record.token:
            yield from change_member(changes.remove(member, member.token, record))
        return Standing.AGAIN

    monkeypatch.setattr(protocol, "_set_right", by_the_old_view)
    with pytest.raises(Violation, match="I1"):
        explore(world(1, (A,), (A2, Releases(A2), A2), (B, Releases(B)), faults=0))


def test_w9_without_a_sweep_a_crash_can_leave_an_owned_account_nobody_claims() -> None:
    server = MemoryServer()
    server.add_member("m0")
    slow = Paused(protocol.claim(A.wanted), server).until(Patch)
    run(B.start({}), server)
    helper = Paused(protocol.claim(A2.wanted), server).until(Delete)
    run(Releases(B).start({}), server)
    slow.go_on().until(Patch)
    with pytest.raises(Exhausted):
        helper.go_on().until(Patch)
    server.add_member("m1")
    run(protocol.claim(replace(A2.wanted, only="m1")), server)
    slow.go_on()  # it labels m0 with a token that is dead, and crashes
    again = run(A.start({}), server)
    orphan = server.member("m0")
    assert again.secret_name == "m1"
    assert orphan.tenant == "a"
    assert orphan.token is not None

    run(Sweeps().start({}), server)
    assert is_free(server.member("m0"))


class Paused:
    """One operation, run call by call."""

    def __init__(self, steps: Steps[object], server: MemoryServer) -> None:
        self._steps, self._server = steps, server
        self._asked = steps.send(None)

    def until(self, kind: type[Call]) -> Paused:
        """Go on until it is about to make a call of this kind."""
        while not isinstance(self._asked, kind):
            self.go_on()
        return self

    def go_on(self) -> Paused:
        """Make the call it is at."""
        match self._asked:
            case Pause():
                answer = None
            case Together(first, second):
                answer = Both(perform(self._server, first), perform(self._server, second))
            case call:
                answer = perform(self._server, call)
        self._asked = self._steps.send(answer)
        return self


def _reread(member: Member, cleaning_token: str, patch_of: Callable[[Member], Patch]) -> Steps[bool]:
    now = yield from get_member(member.name)
    assert now is not None
    return (yield from change_member(patch_of(now))) is not None


def test_w10_a_cleaner_that_reads_again_just_before_freeing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaning, "_settle", _reread)
    server = MemoryServer()
    server.add_member("m0", {POOL_STATE: "dirty"})
    with pytest.raises(Violation):
        explore(World.of(server, (Cleans("k1"),), (Cleans("k2", take_over=True),), (A,)))


def test_w11_a_cleaning_taken_over_without_new_credentials() -> None:
    server = MemoryServer()
    server.add_member("m0", {POOL_STATE: "dirty"})
    with pytest.raises(Violation, match="I8"):
        explore(World.of(server, (Cleans("k1"),), (Cleans("k2", take_over=True),), (A,)))


def test_w12_a_cleaner_that_takes_dirty_accounts_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def any_dirty(member: Member, _cleaner: str, _take_over: frozenset[str]) -> bool:
        return member.state == State.DIRTY

    monkeypatch.setattr(cleaning, "_is_for", any_dirty)
    mark = ByHand("marks dirty", lambda server: server.by_hand("m0", {POOL_STATE: "dirty"}))
    with pytest.raises(Violation, match="I8"):
        explore(world(1, (A,), (mark,), (Cleans("k1"),)))


def test_w13_free_by_the_label_alone_gives_a_stripped_account_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_label(
        member: Member, partition: Partition, owner: str, records: Mapping[str, Record] | None = None
    ) -> Judgement:
        if member.tenant is None and member.state is None:
            return Judgement(Verdict.FREE, "")
        return judge(member, partition, owner, records)

    judged_as(monkeypatch, by_label)
    strip = ByHand("strips the label", lambda server: server.by_hand("m0", {TENANT_NAME: None}))
    with pytest.raises(Violation, match=r"I[15]"):
        explore(world(1, (A,), (strip,), (B,)))


def test_w15_exhaustion_reported_without_a_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_second_look(_name: str) -> Steps[bool]:
        return True
        yield

    monkeypatch.setattr(protocol, "_is_absent", no_second_look)
    with pytest.raises(Violation, match="I6"):
        explore(world(1, (A,), (A2,), (B, Releases(B))))


def test_w16_a_claim_again_that_writes_nothing_loses_to_a_late_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = protocol._join  # pyright: ignore[reportPrivateUsage] - the step that is made wrong here

    def unfenced(record: Record, wanted: Wanted) -> Steps[Claimed | None]:
        member = yield from get_member(record.member)
        if member is not None and member.carries(record) and wanted.holder in record.holders:
            return Claimed.by(record, member, wanted.holder, reused=True)
        return (yield from right(record, wanted))

    monkeypatch.setattr(protocol, "_join", unfenced)
    abandoned = world(1, (A, Releases(A), A), faults=2, may=frozenset({Fault.LATE, Fault.CRASH}))
    abandoned.abandons = True
    with pytest.raises(Violation, match="I3"):
        explore(abandoned)


def test_w17_a_label_stripped_while_pending_and_never_healed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unhealing(record: Record, member: Member | None) -> Steps[Standing]:
        if member is None or member.token is None or member.tenant not in (None, record.tenant_label):
            return Standing.LEAVE
        _, alive = yield from record_of(member.token)
        return Standing.AGAIN if alive else Standing.LEAVE

    monkeypatch.setattr(protocol, "_set_right", unhealing)
    strip = ByHand("strips the label", lambda server: server.by_hand("m0", {TENANT_NAME: None}))
    with pytest.raises(Violation, match="I9"):
        explore(world(1, (A,), (A2,), (strip,)))


def test_w5_a_sweep_that_frees_what_has_an_owner_and_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Greedy(Sweeps):
        def start(self, _held: object) -> Steps[None]:
            for body in (yield from list_all(Kind.MEMBER, MEMBERS)):
                member = Member.parse(body)
                if member.tenant and not member.tokens:
                    metadata = {"resourceVersion": member.resource_version, "labels": {TENANT_NAME: None}}
                    yield from change_member(Patch(Kind.MEMBER, member.name, {"metadata": metadata}))

    server = MemoryServer()
    server.add_member("own", {TENANT_NAME: "a"})
    assert explore(World.of(server.copy(), (Greedy(),))).ends[0].server.member("own").tenant is None
    assert explore(World.of(server.copy(), (Sweeps(),))).ends[0].server.member("own").tenant == "a"


def test_w18_moving_a_claim_to_the_account_it_already_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def always_move(
        record: Record, wanted: Wanted, page: list[Member]
    ) -> Steps[tuple[Record, Member] | None]:
        choice = yield from protocol.find(wanted, page)
        if not isinstance(choice, Member):
            return None
        moved = yield from replace_record(
            replace(record.moved_to(choice), attempt=record.attempt % 3 + 1), POOL
        )
        return None if moved is None else (moved, choice)

    monkeypatch.setattr(protocol, "_move", always_move)
    server = MemoryServer()
    server.add_member("s0", {SHARED: "true"}, {SHARED_CAPACITY: "1"})
    mine, other = (Claims(tenant, "h", slot="x", shared=True) for tenant in "ab")
    with pytest.raises(Violation, match=r"I[19]"):
        explore(World.of(server, (mine,), (mine,), (other, Releases(other))))
