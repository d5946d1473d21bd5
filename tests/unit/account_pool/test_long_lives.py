"""Longer lives than can be explored wholly: many processes, tenants and faults, in any order."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.account_pool.keys import POOL_STATE, SHARED_CAPACITY
from components.account_pool.model import Policy
from components.labels import SHARED, TENANT_NAME
from tests.support.memory_pool import (
    Claims,
    Cleans,
    Fault,
    MemoryServer,
    Op,
    Reads,
    Releases,
    Sweeps,
    World,
    run,
)
from tests.support.proving import counted, tried

MANY = 20_000


def life(tenant: str, holder: str, slot: str, policy: Policy, *, shared: bool) -> tuple[Op, ...]:
    """Claim, look, give back, claim again."""
    claim = Claims(tenant, holder, slot, policy, shared=shared)
    return claim, Reads(claim), Releases(claim), claim


LIVES = st.builds(
    life,
    st.sampled_from("abc"),
    st.sampled_from(["h1", "h2"]),
    st.sampled_from(["0", "1"]),
    st.sampled_from(Policy),
    shared=st.booleans(),
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    server = MemoryServer()
    for index in range(draw(st.integers(1, 4))):
        server.add_member(f"m{index}")
    server.add_member("own", {TENANT_NAME: "a"})
    server.add_member("dirty", {POOL_STATE: "dirty"})
    server.add_member("s0", {SHARED: "true"}, {SHARED_CAPACITY: "2"})
    scripts = [
        tuple(_own_holder(op, index) for op in script)
        for index, script in enumerate(draw(st.lists(LIVES, min_size=2, max_size=4)))
    ]
    return World.of(
        server,
        *scripts,
        (Sweeps(), Sweeps()),
        (Cleans("k1"), Cleans("k1", run="2")),
        (Cleans("k2"),),
        faults=draw(st.integers(0, 6)),
        may=frozenset(Fault),
    )


def _own_holder(op: Op, index: int) -> Op:
    """Rename the holder of a process so that no other has its name: a holder is one consumer."""
    match op:
        case Claims():
            return Claims(op.tenant, f"{op.holder}-{index}", op.slot, op.policy, shared=op.shared)
        case Reads(claim) | Releases(claim):
            named = _own_holder(claim, index)
            assert isinstance(named, Claims)
            return type(op)(named)
        case _:
            return op


@settings(
    max_examples=counted(100, 1_000),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(world=worlds(), choices=st.lists(st.integers(0, 999), max_size=300))
def test_no_order_of_calls_and_faults_breaks_a_promise_and_a_sweep_mends_the_rest(
    world: World, choices: list[int]
) -> None:
    tried("lives of many processes with faults, in any order")
    world = world.copy()
    for choice in choices:
        actions = world.actions()
        if not actions:
            break
        world.do(actions[choice % len(actions)])
    world.faults = 0
    turn = 0
    while actions := world.actions():
        world.do(actions[turn % len(actions)])
        turn += 1
        assert turn < MANY, "they never come to an end"
    run(Sweeps().start({}), world.server)
    run(Sweeps().start({}), world.server)
    assert world.orphans() == []
    assert world.server.member("own").tenant == "a"
