"""Which generation of its slot a claim has, or goes on to, when its account is to be left."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.model import ClaimRequest
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.forecast.claims import ForecastKind
from components.account_pool.forecast.evacuation import (
    Generations,
    SlotStanding,
    among,
    here,
    plan_moves,
    slot_and_generation,
    slot_of,
)
from components.errors import NotAllowed
from components.labels import EU_ACCESS
from tests.support.memory_pool import POOL, MemoryServer
from tests.support.pool import server_of

ACME = ClaimRequest("acme", "aws", "main", holder="one")


def pool_of(server: MemoryServer, *members: str) -> PoolOperator:
    for name in members:
        server.add_member(name)
    return PoolOperator(server, POOL, PoolConfigMap())


@given(st.text(min_size=1), st.integers(0, 99))
def test_a_slot_is_found_again_by_what_its_generation_is_called(slot: str, generation: int) -> None:
    slot = slot.replace("~", "")
    if slot:
        assert slot_and_generation(slot_of(slot, generation)) == (slot, generation)


def test_a_claim_goes_on_while_its_account_is_to_be_left_and_comes_to_stay_where_it_went() -> None:
    pool = pool_of(MemoryServer(), "a", "b")
    first = pool.claim(ACME)

    def move(claim: ClaimRequest = ACME) -> tuple[ForecastKind, int | None, str]:
        (told,) = plan_moves(pool.look(), [claim], ())
        return told.forecast.kind, told.generation, told.forecast.text

    assert move()[:2] == (ForecastKind.HELD, 0)
    pool.evacuate(first.secret_name, "closed")
    assert move() == (
        ForecastKind.FREE,
        1,
        f"leaves {first.secret_name}: expected to get the only free aws account",
    )
    second = pool.claim(here(ACME, 1))
    assert second.secret_name != first.secret_name
    assert move()[:2] == (ForecastKind.HELD, 1)
    assert move(replace(ACME, holder="two"))[:2] == (ForecastKind.REUSE, 1)
    pool.release(first.record, "one", fence=first.fence)
    assert move()[:2] == (ForecastKind.HELD, 1)
    pool.evacuate(second.secret_name, "closed as well")
    assert move()[:2] == (ForecastKind.REUSE, 1)
    kept = f"keeps {second.secret_name}, which is to be left: expected to find none free"
    assert move()[2].startswith(kept)
    assert move(replace(ACME, holder="two"))[:2] == (ForecastKind.EXHAUSTED, 2)


def test_an_account_that_is_to_be_left_takes_nobody_new_and_comes_back_to_the_cleaner() -> None:
    pool = pool_of(MemoryServer(), "a")
    claimed = pool.claim(ACME)
    pool.evacuate("a", "closed")
    with pytest.raises(NotAllowed):
        pool.claim(replace(ACME, holder="two"))
    assert pool.unquarantine("a").state is None
    pool.evacuate("a", "closed")
    pool.release(claimed.record, "one", fence=claimed.fence)
    assert pool.unquarantine("a").state == "dirty"


def test_what_is_shared_or_spills_has_no_generations() -> None:
    pool = pool_of(MemoryServer(), "a")
    pool.claim(ACME)
    found = Generations.of(pool.records())
    assert found.standing(ACME) == SlotStanding(0)
    for other in (replace(ACME, shared=True), replace(ACME, spill=True), replace(ACME, tenant="globex")):
        assert found.standing(other) == SlotStanding()


def test_an_account_marked_to_be_left_is_no_other_for_who_quarantines_it_again() -> None:
    pool = pool_of(MemoryServer(), "a")
    pool.claim(ACME)
    pool.evacuate("a", "closed")
    assert pool.quarantine("a", "another reason").is_to_be_left


def test_slots_of_one_name_in_two_parts_of_a_pool_have_their_own_generations() -> None:
    server = server_of("a", "b")
    for name in ("eu1", "eu2"):
        server.add_member(name, {EU_ACCESS: "true"})
    pool = PoolOperator(server, POOL, PoolConfigMap((EU_ACCESS,)))
    europe = replace(ACME, partition={EU_ACCESS: "true"}, holder="europe")
    first, other = pool.claim(ACME), pool.claim(europe)

    def told(claim: ClaimRequest) -> tuple[ForecastKind, int | None, str | None]:
        (move,) = plan_moves(pool.look(), [claim], (EU_ACCESS,))
        return move.forecast.kind, move.generation, move.forecast.member

    pool.evacuate(other.secret_name, "leaked")
    assert told(ACME) == (ForecastKind.HELD, 0, first.secret_name)
    assert told(europe) == (ForecastKind.FREE, 1, None)
    pool.claim(here(europe, 1))
    pool.release(other.record, "europe", fence=other.fence)
    assert among(replace(ACME, holder="cli"), pool.records()).slot == "main"
    assert among(replace(europe, holder="cli"), pool.records()).slot == "main~1"
