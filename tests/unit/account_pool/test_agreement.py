"""What claims, the forecast, explanations and the status say of a member agree, whatever is on it.

In memory. It does not prove anything of claims that run at the same time: `test_explorer.py` does.
`make prove` tries 10,000 pools, and 1,000 on a real API server.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.account_pool.core import protocol
from components.account_pool.core.calls import Kind, PoolApi, Steps
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.holds import Holds
from components.account_pool.core.judgement import judge
from components.account_pool.core.keys import CLAIM_TOKEN, INTERNAL, SHARED_CAPACITY
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.model import ClaimRequest
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.records import Claimed, Record
from components.account_pool.core.selection import members_free, members_owned, members_shared
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.status import AccountUse, status_of
from components.account_pool.core.steps import get_record
from components.account_pool.forecast.claims import ForecastKind, forecast_claims
from components.account_pool.forecast.explanation import explain
from components.errors import Misconfigured, NotAllowed, PoolError
from components.labels import HYPERSCALER_TYPE, SHARED, TENANT_NAME
from tests.support.cases import tabled
from tests.support.drawn_pools import KEYS, REQUESTS, SETTINGS, Spoken, disagreements, pools
from tests.support.memory_pool import KEB, POOL, MemoryServer, answer_to, matches
from tests.support.pool import server_of
from tests.support.proving import counted, tried

MOST_CALLS = 300


def outcome(wanted: ClaimRequest, api: PoolApi, hold: str = "") -> Claimed | PoolError:
    """Claim alone, and say how it ended; an operation that asks without end fails. hold: of the pool."""

    def begin(wanted: ClaimRequest) -> Steps[tuple[Record | None, None]]:
        record = yield from get_record(wanted.record)
        if hold and record is None:
            raise NotAllowed(place=POOL, problem=hold, fix="")
        return record, None

    steps: Steps[Claimed] = protocol.claim(wanted, begin)
    answer: Any = None
    for _ in range(MOST_CALLS):
        try:
            asked = steps.send(answer)
        except StopIteration as end:
            return end.value
        except PoolError as refused:
            return refused
        answer = answer_to(asked, api)
    raise AssertionError(f"no end after {MOST_CALLS} calls")


MANY = settings(max_examples=counted(100, 10_000, 300), deadline=None)


@MANY
@given(pools(), REQUESTS, st.sampled_from(["", "", "why"]))
def test_a_claim_gets_what_its_forecast_and_its_explanation_said(
    spoken: Spoken, request: ClaimRequest, hold: str
) -> None:
    tried("claims in drawn pools, in memory, against forecast, explanation and status")
    snapshot = replace(spoken.pool.look(), holds=Holds({"": hold} if hold else {}))
    assert disagreements(snapshot, request, outcome(request.placed(POOL, KEYS), spoken.api, hold)) == []


@MANY
@given(pools())
def test_a_stranger_gets_a_member_exactly_when_the_status_says_that_it_is_free_or_has_room(
    spoken: Spoken,
) -> None:
    snapshot = spoken.pool.look()
    places = {member.name: member.place(KEYS) for member in snapshot.members}
    for account in status_of(snapshot, SETTINGS).accounts:
        place = places[account.secret_name]
        wanted = replace(ClaimRequest.at(POOL, place, "stranger", "0", "h"), only=account.secret_name)
        is_taken = isinstance(outcome(wanted, spoken.copy().api), Claimed)
        has_room = account.standing is AccountUse.SHARED and account.used < account.capacity
        assert is_taken == (account.standing is AccountUse.FREE or has_room), account


@MANY
@given(pools(), REQUESTS)
def test_the_api_server_is_asked_for_every_member_that_would_be_taken(
    spoken: Spoken, request: ClaimRequest
) -> None:
    wanted = request.placed(POOL, KEYS)
    partition = wanted.place
    selectors = (
        [members_shared(partition)]
        if partition.shared
        else [members_owned(partition, wanted.owner), members_free(partition)]
    )
    asked = [spoken.scheme.selector(selector) for selector in selectors]
    labels = {member.name: member.labels for member in spoken.server.members}
    for member in spoken.pool.look().members:
        if judge(member, partition, wanted.owner).takes:
            assert any(matches(selector, labels[member.name]) for selector in asked)


@tabled("labels")
def test_an_account_that_the_status_calls_misconfigured_is_never_claimed(labels: dict[str, str]) -> None:
    server = MemoryServer()
    server.add_member("m0", labels)
    pool = PoolOperator(server, POOL, SETTINGS)
    assert [each.standing for each in pool.status().accounts] == [AccountUse.MISCONFIGURED]
    with pytest.raises(Misconfigured, match="m0"):
        pool.claim(ClaimRequest("acme", "aws"))
    server.add_member("m1")
    assert pool.claim(ClaimRequest("acme", "aws")).secret_name == "m1"


@pytest.mark.parametrize("scheme", [LabelScheme(), KEB], ids=["credfleet", "Kyma"])
def test_a_shared_account_that_is_kept_back_is_given_to_nobody(scheme: LabelScheme) -> None:
    server = MemoryServer()
    labels = scheme.labels({HYPERSCALER_TYPE: "aws", SHARED: "true", INTERNAL: "true"})
    metadata = {"name": "m0", "labels": labels, "annotations": {SHARED_CAPACITY: "2"}}
    server.create(Kind.MEMBER, {"metadata": metadata})
    pool = PoolOperator(server, POOL, replace(SETTINGS, scheme=scheme))
    assert [each.standing for each in pool.status().accounts] == [AccountUse.MISCONFIGURED]
    with pytest.raises(Misconfigured, match="m0"):
        pool.claim(ClaimRequest("acme", "aws", shared=True))


def test_a_label_of_kyma_by_which_the_pool_is_divided_says_what_the_pool_says() -> None:
    server = server_of(m0={"euAccess": "true"})
    pool = PoolOperator(server, POOL, PoolConfigMap(("euAccess",)))
    claimed = pool.claim(ClaimRequest("acme", "aws", partition={"euAccess": "true"}))
    assert claimed.secret_name == "m0"
    server.remove(Kind.RECORD, claimed.record)
    assert [*pool.sweep(settle_seconds=0).freed] == ["m0"]


def test_an_own_account_with_a_claim_that_is_gone_is_taken_and_everything_says_so_before() -> None:
    server = MemoryServer()
    server.add_member("m0", {TENANT_NAME: "acme"}, {CLAIM_TOKEN: "claim-0.u.1"})
    pool, request = PoolOperator(server, POOL, SETTINGS), ClaimRequest("acme", "aws")
    snapshot = PoolSnapshot(pool.members(), pool.records())
    assert [(each.standing, each.reason) for each in pool.status().accounts] == [
        (AccountUse.OWNED, "carries a claim that is gone; a sweep takes it off")
    ]
    assert forecast_claims(snapshot, [request], KEYS)[0].kind is ForecastKind.OWN
    assert [each.taken for each in explain(snapshot, request, KEYS).candidates] == [True]
    assert pool.claim(request).secret_name == "m0"


@tabled("labels, why")
def test_a_new_consumer_does_not_join_a_claim_whose_account_is_not_in_order_by_now(
    labels: dict[str, str], why: str
) -> None:
    server = server_of("m0")
    pool = PoolOperator(server, POOL, SETTINGS)
    first, second = ClaimRequest("acme", "aws", holder="h1"), ClaimRequest("acme", "aws", holder="h2")
    pool.claim(first)
    server.by_hand("m0", labels)
    assert pool.claim(first).reused
    snapshot = PoolSnapshot(pool.members(), pool.records())
    assert forecast_claims(snapshot, [second], KEYS)[0].kind is ForecastKind.REFUSED
    with pytest.raises(PoolError, match=why):
        pool.claim(second)
