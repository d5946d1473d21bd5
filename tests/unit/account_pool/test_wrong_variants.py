"""Deliberate mistakes in the protocol, each found by exploring a small world: the invariants can fail.

Each world is explored with the right protocol as well, which keeps every invariant there; so a mistake that
the product itself makes is found even where the variant hides the step. `models/claims/wrong_variants.go`
has the same mistakes in the protocol's model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from components.account_pool.core import changes, cleaning, judgement, protocol, selection
from components.account_pool.core.calls import Delete, Kind, Patch, Steps
from components.account_pool.core.judgement import Judgement, Verdict, judge
from components.account_pool.core.keys import (
    CLAIM_ORIGIN,
    CLEANING_TOKEN,
    CREATED_AGAIN,
    POOL_STATE,
    SHARED_CAPACITY,
)
from components.account_pool.core.model import (
    Claimed,
    JsonObject,
    Member,
    Origin,
    Partition,
    Phase,
    Policy,
    Record,
    State,
    Wanted,
)
from components.account_pool.core.protocol import ClaimStanding
from components.account_pool.core.selection import MEMBERS, RECORDS, Choose
from components.account_pool.core.steps import change_member, get_member, list_all, record_of, replace_record
from components.errors import Exhausted, Problem
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
from tests.support.paused import Paused
from tests.support.proving import PROVES

A, A2, A_SLOT1, B = Claims("a", "h1"), Claims("a", "h2"), Claims("a", "h1", slot="1"), Claims("b", "h4")


def world(
    members: int, *scripts: tuple[Op, ...], faults: int = 0, may: frozenset[Fault] = frozenset()
) -> World:
    server = MemoryServer()
    for index in range(members):
        server.add_member(f"m{index}")
    return World.of(server, *scripts, faults=faults, may=may)


def made_wrong(monkeypatch: pytest.MonkeyPatch, name: str, wrong: Callable[..., Any]) -> None:
    """Put a wrong decision in the place of the right one wherever the protocol asks for it."""
    for module in (protocol, selection, judgement, changes, cleaning):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, wrong)


def wrong_bind(record: Record, member: Member, wanted: Wanted, _consumer: Any) -> Steps[Claimed | None]:
    bound = replace(record, phase=Phase.BOUND).with_holder(wanted.holder)
    written = yield from replace_record(bound, POOL)
    if written is None:
        yield from change_member(changes.remove(member, record.token, record, Policy.RELEASE))
        return None
    return Claimed.by(written, member, wanted.holder, reused=False)


def own_by_label(member: Member, partition: Partition, owner: str, records: Any = None) -> Judgement:
    if member.tenant == owner and member.state is None:
        return Judgement(Verdict.OWN, "")
    return judge(member, partition, owner, records)


def free_by_label(member: Member, partition: Partition, owner: str, records: Any = None) -> Judgement:
    if member.tenant is None and member.state is None:
        return Judgement(Verdict.FREE, "")
    return judge(member, partition, owner, records)


def carried_by_label(member: Member, record: Record) -> bool:
    return member.tenant == record.tenant_label


def judged_by_the_old_view(record: Record, member: Member | None, namespace: str) -> Steps[ClaimStanding]:
    if member is None or member.token is None:
        return ClaimStanding.LEAVE
    if member.token != record.token:
        yield from change_member(changes.remove(member, member.token, record))
    return ClaimStanding.AGAIN


def read_again_before_freeing(
    member: Member, _token: str, patch_of: Callable[[Member], Patch]
) -> Steps[bool]:
    now = yield from get_member(member.name)
    assert now is not None
    return (yield from change_member(patch_of(now))) is not None


def any_dirty(member: Member, _cleaner: str, _take_over: frozenset[str]) -> bool:
    return member.state == State.DIRTY


def nobodys(_member: Member, _records: Iterable[Record]) -> Record | None:
    return None


def no_second_look(_name: str) -> Steps[bool]:
    return True
    yield


right_join = protocol._join  # pyright: ignore[reportPrivateUsage] - the step that is made wrong here


def unfenced(record: Record, wanted: Wanted) -> Steps[Claimed | None]:
    member = yield from get_member(record.member)
    if member is not None and member.carries(record) and wanted.holder in record.holders:
        return Claimed.by(record, member, wanted.holder, reused=True)
    return (yield from right_join(record, wanted))


def unhealing(record: Record, member: Member | None, _namespace: str) -> Steps[ClaimStanding]:
    if member is None or member.token is None or member.tenant not in (None, record.tenant_label):
        return ClaimStanding.LEAVE
    _, alive = yield from record_of(member.token)
    return ClaimStanding.AGAIN if alive else ClaimStanding.LEAVE


def always_move(
    record: Record, wanted: Wanted, untried: list[JsonObject], choose: Choose
) -> Steps[tuple[Record, Member] | None]:
    choice = yield from protocol.find(wanted, untried, choose)
    if not isinstance(choice, Member):
        return None
    moved = yield from replace_record(replace(record.moved_to(choice), attempt=record.attempt % 3 + 1), POOL)
    return None if moved is None else (moved, choice)


@dataclass(frozen=True)
class HastySweep(Sweeps):
    """Lists records before members."""

    def start(self, _held: object) -> Steps[None]:
        records = yield from list_all(Kind.RECORD, RECORDS)
        alive = {str(Record.parse(body).token) for body in records}
        for body in (yield from list_all(Kind.MEMBER, MEMBERS)):
            member = Member.parse(body)
            for token in member.tokens:
                if str(token) not in alive:
                    yield from change_member(changes.remove(member, token, None))


def dirty() -> MemoryServer:
    server = MemoryServer()
    server.add_member("m0", {POOL_STATE: "dirty"})
    return server


def created_again(tenant: str | None = None) -> MemoryServer:
    server = MemoryServer()
    owner = {} if tenant is None else {TENANT_NAME: tenant}
    server.add_member("m0", {POOL_STATE: "dirty", **owner}, {CREATED_AGAIN: "true"})
    server.add_member("m1")
    return server


def known_again(_member: Member, _namespace: str) -> Problem | None:
    return None


def taken_back_by_anybody(member: Member, _partition: Partition, _owner: str, former: str | None) -> bool:
    return member.name == former and member.is_created_again


A_BACK, B_BACK = Claims("a", "h1", former="m0"), Claims("b", "h4", former="m0")


def shared_for_one() -> World:
    server = MemoryServer()
    server.add_member("s0", {SHARED: "true"}, {SHARED_CAPACITY: "1"})
    mine, other = (Claims(tenant, "h", slot="x", shared=True) for tenant in "ab")
    return World.of(server, (mine,), (mine,), (other, Releases(other)))


def abandoned() -> World:
    late = world(1, (A, Releases(A), A), faults=2, may=frozenset({Fault.LATE, Fault.CRASH}))
    late.abandons = True
    return late


def taken_over(*, rotates: bool) -> World:
    cleaners = (Cleans("k1"),), (Cleans("k2", take_over=True),), (A,)
    return World.of(dirty(), *cleaners, rotates=rotates)


def overlapping(*, sees: bool) -> World:
    return World.of(dirty(), (Cleans("k1", sees=sees),), (Cleans("k1", run="2", sees=sees),), (A,))


MARK = ByHand("marks dirty", lambda server: server.by_hand("m0", {POOL_STATE: "dirty"}))
STRIP = ByHand("strips the label", lambda server: server.by_hand("m0", {TENANT_NAME: None}))


@dataclass(frozen=True)
class Variant:
    """A mistake: decisions put in the place of right ones, or a world in which somebody makes it.

    found: the invariant that fails. right: the world in which nobody makes it, if it is another one.
    is_large: the right protocol is explored there by `make prove` only.
    """

    world: Callable[[], World]
    found: str
    wrong: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])
    carries: Callable[[Member, Record], bool] | None = None
    right: Callable[[], World] | None = None
    is_large: bool = False


VARIANTS = {
    "one's own label is undone whenever binding fails": Variant(
        lambda: world(1, (A,), (A2,)), r"I[13]", {"_bind": wrong_bind}
    ),
    "ownership is told by the label alone": Variant(
        lambda: world(2, (A,), (A_SLOT1,)), r"I[1235]", {"judge": own_by_label}, carries=carried_by_label
    ),
    "a sweep lists records before members": Variant(
        lambda: world(1, (A,), (HastySweep(),)), "I1", right=lambda: world(1, (A,), (Sweeps(),))
    ),
    "a token is judged by a record read before the member": Variant(
        lambda: world(1, (A,), (A2, Releases(A2), A2)), "I1", {"_set_right": judged_by_the_old_view}
    ),
    "a cleaner reads again just before freeing": Variant(
        lambda: taken_over(rotates=True), r"I\d", {"_settle": read_again_before_freeing}
    ),
    "a cleaning is taken over without new credentials": Variant(
        lambda: taken_over(rotates=False), "I8", right=lambda: taken_over(rotates=True)
    ),
    "a run takes it for granted that others of its name are over": Variant(
        lambda: overlapping(sees=False), "I8", right=lambda: overlapping(sees=True)
    ),
    "a cleaner takes dirty accounts in use": Variant(
        lambda: world(1, (A,), (MARK,), (Cleans("k1"),)), "I8", {"_is_for": any_dirty, "in_use": nobodys}
    ),
    "free is told by the label alone": Variant(
        lambda: world(1, (A,), (STRIP,), (B,)), r"I[15]", {"judge": free_by_label}
    ),
    "exhaustion is reported without a second look": Variant(
        lambda: world(1, (A,), (A2,), (B, Releases(B))), "I6", {"_is_absent": no_second_look}, is_large=True
    ),
    "a claim made again writes nothing": Variant(abandoned, "I3", {"_join": unfenced}),
    "a label stripped while pending is not put back": Variant(
        lambda: world(1, (A,), (A2,), (STRIP,)), "I9", {"_set_right": unhealing}
    ),
    "a cleaner takes an account that was created again": Variant(
        lambda: World.of(created_again(), (A_BACK,), (Cleans("k1"),)), "I8", {"_unknown": known_again}
    ),
    "an account that was created again goes to another tenant": Variant(
        lambda: World.of(created_again("a"), (A_BACK,), (B_BACK,)),
        "I1",
        {"may_take_back": taken_back_by_anybody},
    ),
    "a claim moves to the account it names already": Variant(
        shared_for_one, r"I[19]", {"_move": always_move}, is_large=True
    ),
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_a_mistake_breaks_an_invariant(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, wrong in variant.wrong.items():
        made_wrong(monkeypatch, name, wrong)
    if variant.carries is not None:
        monkeypatch.setattr(Member, "carries", variant.carries)
    with pytest.raises(Violation, match=variant.found):
        explore(variant.world())


RIGHT = {name: variant for name, variant in VARIANTS.items() if PROVES or not variant.is_large}


@pytest.mark.parametrize("variant", RIGHT.values(), ids=RIGHT.keys())
def test_the_right_protocol_keeps_every_invariant_in_the_same_world(variant: Variant) -> None:
    assert explore((variant.right or variant.world)()).ends


def always_free(member: Member) -> Patch:
    body = {"labels": {POOL_STATE: None, TENANT_NAME: None}, "annotations": {CLEANING_TOKEN: None}}
    return Patch(Kind.MEMBER, member.name, {"metadata": {"resourceVersion": member.resource_version, **body}})


right_take = changes.take


def as_from_the_pool(member: Member, record: Record) -> Patch:
    patch = right_take(member, record)
    patch.body["metadata"]["annotations"][CLAIM_ORIGIN] = str(Origin.POOL)
    return patch


@dataclass(frozen=True)
class GreedySweep(Sweeps):
    """Frees what has an owner and no record."""

    def start(self, _held: object) -> Steps[None]:
        for body in (yield from list_all(Kind.MEMBER, MEMBERS)):
            member = Member.parse(body)
            if member.tenant and not member.tokens:
                metadata = {"resourceVersion": member.resource_version, "labels": {TENANT_NAME: None}}
                yield from change_member(Patch(Kind.MEMBER, member.name, {"metadata": metadata}))


@pytest.mark.parametrize(
    ("labels", "script", "mistake"),
    [
        pytest.param({POOL_STATE: "dirty"}, (Cleans("k1"),), ("finish_cleaning", always_free), id="cleaner"),
        pytest.param({}, (A, Releases(A)), ("take", as_from_the_pool), id="release policy"),
        pytest.param({}, (Sweeps(),), GreedySweep(), id="sweep"),
    ],
)
def test_an_account_its_tenant_brought_along_is_lost_by_a_mistake_only(
    labels: dict[str, str],
    script: tuple[Op, ...],
    mistake: tuple[str, Callable[..., Any]] | Op,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = MemoryServer()
    server.add_member("own", {TENANT_NAME: "a", **labels})

    def owners(*ops: Op) -> list[str | None]:
        return [end.server.member("own").tenant for end in explore(World.of(server.copy(), ops)).ends]

    assert owners(*script) == ["a"]
    if isinstance(mistake, tuple):
        made_wrong(monkeypatch, *mistake)
        assert owners(*script) == [None]
    else:
        assert owners(mistake) == [None]


def test_without_a_sweep_a_crash_can_leave_an_owned_account_nobody_claims() -> None:
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
