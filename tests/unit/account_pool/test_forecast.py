"""The forecast as a preview's lines, and read back from all lines of a preview."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.account_pool.core.keys import SHARED_CAPACITY, SHARED_CLAIMS
from components.account_pool.core.model import ClaimRequest, Member, Partition
from components.account_pool.core.records import Record
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.forecast import evacuation
from components.account_pool.forecast.claims import (
    ClaimForecast,
    ForecastKind,
    Vacancy,
    forecast_claims,
    vacancies,
)
from components.account_pool.forecast.forecast import Forecast, Shown, lines, parse, unseen_lines
from components.labels import HYPERSCALER_TYPE, SHARED, TENANT_NAME
from tests.support.cases import tabled
from tests.support.drawn_pools import KEYS, REQUESTS, Spoken, pools
from tests.support.records import BOUND

BAD = (ForecastKind.EXHAUSTED, ForecastKind.REFUSED)


def member(name: str, type_: str = "aws", **labels: str) -> Member:
    named = {key.replace("_", "-"): value for key, value in labels.items()}
    return Member(name, f"uid-{name}", "1", {HYPERSCALER_TYPE: type_, **named}, {})


def asks(tenant: str, type_: str = "aws", **partition: str) -> ClaimRequest:
    named = {key.replace("_", "-"): value for key, value in partition.items()}
    return ClaimRequest(tenant, type_, "0", named, holder=f"h/{tenant}")


def told(snapshot: PoolSnapshot, requests: list[ClaimRequest], keys: tuple[str, ...] = ()) -> list[str]:
    return [*lines(forecast_claims(snapshot, requests, keys), vacancies(snapshot, requests, keys))]


def test_what_is_left_is_told_by_partition_after_all_claims_together():
    snapshot = PoolSnapshot(
        (
            member("a"),
            member("b"),
            member("c", eu_access="true"),
            member("own", "azure", **{TENANT_NAME: "acme"}),
            member("g", "gcp"),
        ),
        (),
    )
    requests = [asks("acme"), asks("acme2", eu_access="true"), asks("acme", "azure")]
    assert vacancies(snapshot, requests, ("eu-access",)) == (
        Vacancy("aws", 2, 1),
        Vacancy("azure", 0, 0),
        Vacancy("gcp", 1, 1),
        Vacancy("aws with eu-access=true", 1, 0),
    )
    assert told(snapshot, requests, ("eu-access",))[-1] == (
        "free accounts expected to be left: aws 1 of 2; azure 0 of 0; gcp 1 of 1;"
        " aws with eu-access=true 0 of 1"
    )


def test_a_shared_account_has_as_many_places_as_it_takes_claims():
    labels = {HYPERSCALER_TYPE: "openstack", SHARED: "true"}
    shared = Member("s", "u", "1", labels, {SHARED_CAPACITY: "3", SHARED_CLAIMS: "{}"})
    request = ClaimRequest("acme", "openstack", "0", {}, shared=True, holder="h")
    assert vacancies(PoolSnapshot((shared,), ()), [request], ()) == (Vacancy("shared openstack", 3, 2),)


def test_a_member_nobody_could_claim_counts_nowhere():
    assert vacancies(PoolSnapshot((member("m", ""),), ()), [], ()) == ()


def test_nothing_is_told_when_all_claims_have_their_accounts():
    held = ClaimForecast("acme", "0", "aws", ForecastKind.HELD, "has aws-1", "aws-1")
    assert [*lines([held], [Vacancy("aws", 1, 1)])] == []


@given(st.integers(0, 4), st.lists(st.sampled_from(["acme", "globex", "x-y"]), unique=True, min_size=1))
def test_what_the_forecast_tells_is_read_back_whole(free: int, tenants: list[str]):
    snapshot = PoolSnapshot(tuple(member(f"aws-{index}") for index in range(free)), ())
    requests = [asks(tenant) for tenant in tenants]
    expected = forecast_claims(snapshot, requests, ())
    found = parse(told(snapshot, requests), [(tenant, "0") for tenant in tenants])
    assert found.vacancies == vacancies(snapshot, requests, ())
    assert found.expected == {
        (each.tenant, each.slot): Shown(each.kind is ForecastKind.EXHAUSTED, each.text) for each in expected
    }


@pytest.mark.parametrize("tenants", [1, 2, 9, 200])
def test_claims_skipped_for_one_reason_share_lines_and_are_read_back(tenants: int):
    requests = [asks(f"t{number}") for number in range(tenants)]
    expected = forecast_claims(PoolSnapshot((member("a"),), ()), requests, ())
    skipped = [each for each in expected if each.kind in BAD]
    told = [*lines(expected, (), skipped)]
    assert told[0] == "t0/0: expected to get the only free aws account"
    assert len(told) == 1 + -(-len(skipped) // 8)
    assert all(line.endswith(("goes on without it", "goes on without them")) for line in told[1:])
    found = parse(told, ()).expected
    assert {*found} == {(each.tenant, each.slot) for each in skipped}
    assert all(each.is_skipped and each.is_bad for each in found.values())


def test_a_reason_that_may_quote_what_it_found_stays_in_the_log():
    said = told(PoolSnapshot((), ()), [asks("acme", "No Type")])
    assert "No Type" in said[0]
    assert parse(said, [("acme", "0")]).expected == {("acme", "0"): Shown(is_bad=True, text=None)}


@tabled("line")
def test_a_line_that_is_no_forecast_is_passed_over(line: str):
    assert parse([line], [("acme", "0")]) == Forecast()


@given(
    pools(),
    st.lists(REQUESTS, min_size=1, max_size=5, unique_by=lambda each: (each.tenant, each.slot)),
    st.booleans(),
    st.sampled_from([[], [replace(BOUND, partition=Partition("aws", (("eu-access", None),)))]]),
)
def test_all_that_a_pool_lets_its_claims_expect_is_read_back_as_it_was_meant(
    spoken: Spoken, requests: list[ClaimRequest], is_skipped: bool, leaving: list[Record]
):
    snapshot = spoken.pool.look()
    expected = [move.forecast for move in evacuation.plan_moves(snapshot, requests, KEYS, leaving)]
    news = [each for each in expected if each.kind is not ForecastKind.HELD]
    skipped = [each for each in news if is_skipped and each.kind in BAD]
    left = vacancies(snapshot, requests, KEYS)

    said = [*lines(expected, left, skipped)]

    assert parse(said, [(each.tenant, each.slot) for each in requests]) == Forecast(
        {(each.tenant, each.slot): meant(each, each in skipped) for each in news}, left if news else ()
    )


def meant(each: ClaimForecast, is_skipped: bool) -> Shown:
    quotes = each.kind is ForecastKind.REFUSED and each.member is None
    return Shown(each.kind in BAD, None if quotes else each.text, is_skipped)


def test_the_forecast_of_a_claim_that_is_not_asked_for_is_passed_over():
    said = told(PoolSnapshot((member("a"),), ()), [asks("acme")])
    assert parse(said, [("acme", "0")]).expected
    assert not parse(said, [("acme", "1")]).expected


def test_a_pool_that_could_not_be_looked_at_is_recognised():
    assert parse(unseen_lines("account-pool", "no kubeconfig"), []).unseen
