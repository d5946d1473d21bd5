"""The protocol in small scopes, explored wholly: every order of calls, a crash or a lost answer at each.

`make prove` explores larger ones as well, and two faults where `make test` has one.

The invariants are checked in every state reached (`World.check`), and so is that nobody goes round for
ever, and that there is an end. What is left there is checked here: a sweep fixes it, whatever happened.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from components.account_pool.core.keys import POOL_STATE, SHARED_CAPACITY
from components.account_pool.core.model import Claimed, Phase, Policy
from components.errors import Exhausted, LimitReached, LostMember, NotAllowed
from components.labels import SHARED, TENANT_NAME
from tests.support.memory_pool import (
    ByHand,
    Claims,
    Cleans,
    Explored,
    Fault,
    MemoryServer,
    Op,
    Reads,
    Releases,
    Sweeps,
    Violation,
    World,
    explore,
    is_free,
    run,
)
from tests.support.proving import counted

ANY = frozenset({Fault.CRASH, Fault.LOST, Fault.FAILED})
FEW, TWO = counted(0, 1), counted(1, 2)

A = Claims("a", "h1")
A_AGAIN = Claims("a", "h2")
A_OTHER_SLOT = Claims("a", "h1", slot="1")
B = Claims("b", "h4")
A_SHARED = Claims("a", "h1", slot="x", shared=True)
B_SHARED = Claims("b", "h4", slot="y", shared=True)
C_SHARED = Claims("c", "h5", slot="z", shared=True)


def with_policy(claim: Claims, policy: Policy) -> Claims:
    return Claims(claim.tenant, claim.holder, policy=policy)


def limited(claim: Claims) -> Claims:
    return Claims(claim.tenant, claim.holder, limit=1)


def own_member(server: MemoryServer) -> None:
    server.add_member("own", {TENANT_NAME: "a"})


def shared_member(server: MemoryServer) -> None:
    server.add_member("s0", {SHARED: "true"}, {SHARED_CAPACITY: "1"})


def dirty_member(server: MemoryServer) -> None:
    server.add_member("d0", {POOL_STATE: "dirty"})


def nothing(_server: MemoryServer) -> None:
    pass


@dataclass
class Scope:
    """A pool of free members m0, m1, …, what else is in it, and the processes on it."""

    members: int
    scripts: tuple[tuple[Op, ...], ...]
    prepare: Callable[[MemoryServer], None] = nothing
    faults: int = 0
    may: frozenset[Fault] = ANY
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def world(self) -> World:
        server = MemoryServer()
        for index in range(self.members):
            server.add_member(f"m{index}")
        self.prepare(server)
        return World.of(server, *self.scripts, faults=self.faults, may=self.may, **self.options)


def of_type(world: World, kind: type) -> list[Any]:
    return [o for process in world.processes for o in process.outcomes if isinstance(o, kind)]


def left_after_a_sweep(explored: Explored) -> list[str]:
    for world in explored.ends:
        run(Sweeps().start({}), world.server)
        run(Sweeps().start({}), world.server)
    return [left for world in explored.ends for left in world.orphans()]


FIRST_CLAIMS = {
    "one tenant twice, two members": Scope(2, ((A,), (A_AGAIN,)), faults=1),
    "two tenants, two members": Scope(2, ((A,), (B,)), faults=TWO),
    "two tenants and a helper, two members": Scope(2, ((A,), (A_AGAIN,), (B,))),
    "two slots of one tenant": Scope(2, ((A,), (A_OTHER_SLOT,)), faults=1),
    "own account and a free one": Scope(1, ((A,), (A_AGAIN,)), own_member, faults=1),
    "own account and another tenant": Scope(1, ((A,), (B,)), own_member, faults=TWO),
}


@pytest.mark.parametrize("scope", FIRST_CLAIMS.values(), ids=FIRST_CLAIMS.keys())
def test_first_claims_always_succeed_and_leave_nothing_half_done(scope: Scope) -> None:
    explored = explore(scope.world())
    for world in explored.ends:
        claims = of_type(world, Claimed)
        assert len(claims) == len(scope.scripts)
        assert world.orphans() == []
        assert all(record.phase is Phase.BOUND for record in world.server.records)


def test_a_tenant_with_an_account_of_its_own_never_takes_one_from_the_pool() -> None:
    for world in explore(FIRST_CLAIMS["own account and a free one"].world()).ends:
        assert {claimed.secret_name for claimed in of_type(world, Claimed)} == {"own"}


def test_two_tenants_on_one_account_are_one_owner_and_one_honest_refusal() -> None:
    explored = explore(Scope(1, ((A,), (B,)), faults=TWO).world())
    for world in explored.ends:
        assert len(of_type(world, Claimed)) == 1
        assert len(of_type(world, Exhausted)) == 1
        assert world.orphans() == []


LIVES = {
    **{
        f"two tenants in turn, {policy}": Scope(
            2, tuple((c, Releases(c)) for c in (with_policy(A, policy), with_policy(B, policy))), faults=1
        )
        for policy in Policy
    },
    "release against reuse": Scope(1, ((A, Releases(A)), (A_AGAIN,)), faults=1),
    "release against a claim of the last account": Scope(1, ((A, Releases(A)), (B,)), faults=1),
    "claim, read, release, claim again": Scope(1, ((A, Reads(A), Releases(A), A), (A_AGAIN,))),
    "a sweep meanwhile": Scope(1, ((A, Releases(A)), (Sweeps(),)), faults=1),
    "a sweep over a dying claim": Scope(1, ((A,), (Sweeps(),)), faults=1),
    "limit of one, two holders": Scope(1, ((limited(A), Releases(A)), (limited(A_AGAIN),))),
    "shared, room for one": Scope(0, ((A_SHARED, Releases(A_SHARED)), (B_SHARED,)), shared_member, faults=1),
    "shared, one consumer twice": Scope(0, ((A_SHARED,), (A_SHARED,)), shared_member, faults=2),
}


LARGE: Final = (
    "a sweep meanwhile",
    "claim, read, release, claim again",
    "release against reuse",
    "shared, one consumer twice",
    "two tenants in turn, clean",
    "two tenants in turn, quarantine",
    "two tenants in turn, release",
)
"""Worlds that `make genuine` explores."""


@pytest.mark.parametrize(
    "scope",
    [
        pytest.param(scope, id=name, marks=[pytest.mark.life] if name in LARGE else [])
        for name, scope in LIVES.items()
    ],
)
def test_claims_come_and_go_and_a_sweep_fixes_what_crashes_left(scope: Scope) -> None:
    assert left_after_a_sweep(explore(scope.world())) == []


def test_own_accounts_stay_with_their_tenant_whatever_the_policy() -> None:
    for policy in Policy:
        claim = with_policy(A, policy)
        scope = Scope(0, ((claim, Releases(claim)), (B,)), own_member, faults=FEW)
        for world in explore(scope.world()).ends:
            own = world.server.member("own")
            assert (own.tenant, own.state, own.token) == ("a", None, None)
            assert len(of_type(world, Exhausted)) == 1


def test_a_released_account_is_dirty_and_nobody_gets_it_uncleaned() -> None:
    claim = with_policy(A, Policy.CLEAN)
    for world in explore(Scope(1, ((claim, Releases(claim), B),), faults=2).world()).ends:
        assert world.server.member("m0").state == "dirty"
        assert of_type(world, Exhausted)


def test_two_cleaners_and_a_claim_never_wipe_or_free_what_is_claimed() -> None:
    scope = Scope(
        0, ((Cleans("k1"),), (Cleans("k2"),), (A,)), dirty_member, faults=1, may=frozenset({Fault.LOST})
    )
    for world in explore(scope.world()).ends:
        holders = of_type(world, Claimed)
        assert world.server.member("d0").tenant == ("a" if holders else None)


def test_a_cleaner_that_crashed_finds_its_own_work_again() -> None:
    for world in explore(Scope(0, ((Cleans("k1"),),), dirty_member, faults=3).world()).ends:
        run(Cleans("k1", run="2").start({}), world.server)
        assert is_free(world.server.member("d0"))


def test_an_operator_may_take_over_a_cleaning_if_the_new_run_rotates_the_credential() -> None:
    scope = Scope(
        1,
        ((with_policy(A, Policy.CLEAN), Releases(A), Cleans("k1")), (Cleans("k2", take_over=True),), (B,)),
        options={"rotates": True},
    )
    assert left_after_a_sweep(explore(scope.world())) == []


def test_a_late_write_of_an_abandoned_release_never_takes_the_account_from_its_holder() -> None:
    scope = Scope(
        1,
        ((A, Releases(A), A),),
        faults=2,
        may=frozenset({Fault.LATE, Fault.CRASH}),
        options={"abandons": True},
    )
    explored = explore(scope.world())
    assert left_after_a_sweep(explored) == []
    for world in explored.ends:
        assert {type(outcome) for outcome in world.processes[0].outcomes[-1:]} == {Claimed}
        assert world.server.member("m0").tenant == "a"


def test_a_replacement_never_releases_what_it_just_took() -> None:
    """A replacement: create comes before delete, and delete shows what the old claim was given."""
    scope = Scope(1, ((A,), (A_AGAIN, Releases(A_AGAIN))))
    for world in explore(scope.world()).ends:
        old = of_type(world, Claimed)[0]
        new = run(A.start({}), world.server)
        run(Releases(A, fenced=True).start({old.record: old}), world.server)
        record = world.server.record(old.record)
        assert record is not None
        assert record.holders[A.holder] == new.sequence


HANDS = {
    "deleted": ByHand("deletes", lambda server: server.remove_member("m0")),
    "stripped": ByHand("strips the label", lambda server: server.by_hand("m0", {TENANT_NAME: None})),
    "relabelled": ByHand("gives it to b", lambda server: server.relabel("m0", "a", "b")),
    "quarantined": ByHand("quarantines", lambda server: server.by_hand("m0", {POOL_STATE: "quarantined"})),
    "marked dirty": ByHand("marks dirty", lambda server: server.by_hand("m0", {POOL_STATE: "dirty"})),
}


@pytest.mark.parametrize("hand", HANDS.values(), ids=HANDS.keys())
def test_a_hand_edit_at_any_moment_ends_as_a_healed_or_a_lost_claim_never_as_two_owners(hand: ByHand) -> None:
    scope = Scope(2, ((A, Reads(A)), (A_AGAIN,), (hand,)))
    for world in explore(scope.world()).ends:
        claims = {claimed.secret_name for claimed in of_type(world, Claimed)}
        lost = of_type(world, LostMember) + of_type(world, NotAllowed)
        assert len(claims) == 1 or lost


@pytest.mark.parametrize("hand", HANDS.values(), ids=HANDS.keys())
def test_a_hand_edit_never_lets_a_second_tenant_into_a_claimed_account(hand: ByHand) -> None:
    for world in explore(Scope(1, ((A,), (hand,), (B,))).world()).ends:
        assert len({claimed.tenant for claimed in of_type(world, Claimed)}) <= 1


RESTORE = ByHand("restores every record", lambda server: server.restore())


@pytest.mark.parametrize(
    "scripts",
    [((A,), (A_AGAIN,)), ((A,), (A_OTHER_SLOT,)), ((A,), (B,)), ((A,), (Sweeps(),))],
    ids=["a helper", "another slot", "another tenant", "a sweep"],
)
def test_an_account_whose_claim_came_back_from_a_backup_stays_its_tenants(
    scripts: tuple[tuple[Op, ...], ...],
) -> None:
    ends = explore(Scope(1, (*scripts, (RESTORE,))).world()).ends
    restored = [world for world in ends if world.restored]
    assert restored
    for world in restored:
        (claimed, *others) = of_type(world, Claimed)
        assert {other.tenant for other in others} <= {claimed.tenant}
        assert world.server.member(claimed.secret_name).tenant == claimed.tenant


def test_the_limit_counts_the_holders_that_got_in_and_no_others() -> None:
    for world in explore(LIVES["limit of one, two holders"].world()).ends:
        assert len(of_type(world, Claimed)) + len(of_type(world, LimitReached)) == 2


def test_capacity_is_never_exceeded_however_many_share() -> None:
    explored = explore(Scope(0, ((A_SHARED,), (B_SHARED,), (C_SHARED,)), shared_member).world())
    for world in explored.ends:
        assert len(of_type(world, Claimed)) == 1
        assert len(of_type(world, Exhausted)) == 2
        assert world.orphans() == []


def test_the_explorer_sees_a_violation_when_there_is_one() -> None:
    thief = ByHand("steals", lambda server: server.by_hand("m0", {TENANT_NAME: "thief"}))
    world = Scope(1, ((A,), (thief,))).world()
    world.touched = frozenset()
    with pytest.raises(Violation, match="I3"):
        explore(_blind(world))


def _blind(world: World) -> World:
    """A world that does not know that somebody touched a member by hand."""

    class Blind(World):
        def _note_touch(self, before: MemoryServer, *, destroyed: bool) -> None:
            pass

    return Blind(world.server, world.processes)
