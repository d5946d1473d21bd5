"""A slot that spills: its consumers fill one account after the other, and no limit is ever exceeded.

`test_explorer.py` tries it in every order.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.keys import POOL_STATE
from components.account_pool.core.model import ClaimRequest, Policy
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.records import Claimed
from components.account_pool.core.selection import find_place
from components.account_pool.forecast.claims import ForecastKind, forecast_claims
from components.account_pool.forecast.explanation import explain
from components.errors import Exhausted
from tests.support.memory_pool import POOL, MemoryServer
from tests.support.pool import server_of


def consumer(number: int, limit: int = 2, slot: str = "main") -> ClaimRequest:
    return ClaimRequest(
        "acme", "aws", slot, holder=f"h{number}", policy=Policy.RELEASE, limit=limit, spill=True
    )


def pool(accounts: int) -> tuple[PoolOperator, MemoryServer]:
    server = server_of(*(f"m{number}" for number in range(accounts)))
    return PoolOperator(server, POOL, PoolConfigMap()), server


def used(found: PoolOperator) -> dict[str, int]:
    """Return the slots there are and how many hold each."""
    found.flush()
    return {record.slot: len(record.holders) for record in found.records()}


def test_a_tenant_gets_one_more_account_when_those_it_has_are_full_and_not_before() -> None:
    found, _ = pool(3)
    claimed = [found.claim(consumer(number)) for number in range(5)]
    assert [each.slot for each in claimed] == ["main", "main", "main+1", "main+1", "main+2"]
    assert used(found) == {"main": 2, "main+1": 2, "main+2": 1}
    assert len({each.secret_name for each in claimed}) == 3
    for number, each in enumerate(claimed):
        assert found.claim(consumer(number)).record == each.record
    assert used(found) == {"main": 2, "main+1": 2, "main+2": 1}
    found.claim(consumer(5))
    with pytest.raises(Exhausted):
        found.claim(consumer(6))


def test_the_fullest_below_its_limit_comes_first_and_a_gap_is_filled_before_the_end() -> None:
    found, _ = pool(4)
    claimed = [found.claim(consumer(number, limit=3)) for number in range(7)]
    for number in (0, 1, 3):
        found.release(claimed[number].record, f"h{number}")
    assert used(found) == {"main": 1, "main+1": 2, "main+2": 1}
    assert found.claim(consumer(8, limit=3)).slot == "main+1"
    for number in (3, 4, 5, 8):
        found.release(claimed[4].record, f"h{number}")
    assert used(found) == {"main": 1, "main+2": 1}
    assert [found.claim(consumer(number, limit=3)).slot for number in range(10, 15)] == [
        "main",
        "main",
        "main+2",
        "main+2",
        "main+1",
    ]


def test_slots_partitions_and_tenants_spill_for_themselves() -> None:
    found, _ = pool(4)
    found.claim(consumer(1, limit=1))
    for slot in ("mai", "main+", "main+x"):
        assert found.claim(consumer(1, limit=1, slot=slot)).slot == slot
    assert set(used(found)) == {"main", "mai", "main+", "main+x"}


def test_an_account_that_takes_nobody_new_is_passed_over_and_its_users_keep_it() -> None:
    found, server = pool(2)
    first = found.claim(consumer(1))
    server.by_hand(first.secret_name, {POOL_STATE: "quarantined"})
    request = consumer(2)
    (expected,) = forecast_claims(found.look(), [request], ())
    claimed = found.claim(request)
    assert (expected.kind, claimed.slot) == (ForecastKind.FREE, "main+1")
    assert found.claim(consumer(1)).secret_name == first.secret_name


STEPS = st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=20)


@settings(deadline=None, max_examples=60)
@given(STEPS, st.integers(1, 3), st.integers(1, 4))
def test_what_claims_get_is_what_their_forecast_said_and_a_consumer_has_one_place(
    steps: Sequence[tuple[int, bool]], limit: int, accounts: int
) -> None:
    found, _ = pool(accounts)
    held: dict[int, Claimed] = {}
    for number, is_release in steps:
        request = consumer(number, limit)
        if is_release:
            found.release(found.record_of(request), request.holder)
            held.pop(number, None)
            continue
        snapshot = found.look()
        (expected,) = forecast_claims(snapshot, [request], ())
        told = explain(snapshot, request, ())
        try:
            held[number] = found.claim(request)
        except Exhausted:
            assert expected.kind is ForecastKind.EXHAUSTED
        else:
            assert expected.kind in (ForecastKind.HELD, ForecastKind.REUSE, ForecastKind.FREE)
            assert told.record == held[number].record
        found.flush()
        places = [holder for record in found.records() for holder in record.holders]
        assert sorted(places) == sorted(f"h{each}" for each in held)
        assert all(count <= limit for count in used(found).values())


def test_the_order_of_records_in_a_listing_does_not_matter() -> None:
    found, _ = pool(4)
    for number in range(7):
        found.claim(consumer(number, limit=2))
    found.flush()
    records = found.records()
    wanted = consumer(9, limit=2).placed(POOL, ())
    chosen = {find_place(wanted, Random(seed).sample(records, len(records))).slot for seed in range(10)}
    assert chosen == {"main+3"}
