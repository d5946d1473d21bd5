"""What the claims of one update can expect, told over a snapshot and together."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from components.account_pool.core.keys import (
    CLAIM_ORIGIN,
    CLAIM_TOKEN,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
)
from components.account_pool.core.model import ClaimRequest, Member, Partition, Phase, Policy
from components.account_pool.core.records import Record
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.forecast.claims import ForecastKind, forecast_claims
from components.errors import Exhausted
from components.labels import HYPERSCALER_TYPE, SHARED
from tests.support import records
from tests.support.cases import tabled


def member(name: str, type_: str = "aws", *, notes: dict[str, str] | None = None, **labels: str) -> Member:
    named = {key.replace("_", "-"): value for key, value in labels.items()}
    return Member(name, f"uid-{name}", "1", {HYPERSCALER_TYPE: type_, **named}, notes or {})


def owned(name: str, tenant: str) -> Member:
    return member(name, tenant_name=tenant)


def stated(name: str, state: str) -> Member:
    return replace(member(name), labels={HYPERSCALER_TYPE: "aws", POOL_STATE: state})


def asks(tenant: str, slot: str = "0", type_: str = "aws", **partition: str) -> ClaimRequest:
    named = {key.replace("_", "-"): value for key, value in partition.items()}
    return ClaimRequest(tenant, type_, slot, named, holder=f"pulumi/{tenant}/{slot}")


def record_for(request: ClaimRequest, account: str, phase: Phase = Phase.BOUND, *holders: str) -> Record:
    partition = Partition.of(request.type, request.partition, request.partition)
    return records.record_for(request, partition, account, phase, *holders)


def carrying(account: str, record: Record) -> Member:
    return replace(owned(account, record.tenant), annotations={CLAIM_TOKEN: str(record.token)})


def forecasts(
    snapshot: PoolSnapshot, *requests: ClaimRequest, keys: tuple[str, ...] = ()
) -> list[ForecastKind]:
    return [expected.kind for expected in forecast_claims(snapshot, requests, keys)]


def test_of_a_type_the_pool_has_none_of_a_claim_is_told_so() -> None:
    (expected,) = forecast_claims(PoolSnapshot((member("m"),), ()), [asks("a", type_="gcp")], ())
    assert expected.refusal is Exhausted
    assert expected.text == "expected to find none free: the pool has no account of this type"


def test_two_claims_on_two_free_accounts_expect_any_of_them() -> None:
    snapshot = PoolSnapshot((member("aws-1"), member("aws-2")), ())
    first, second = forecast_claims(snapshot, [asks("acme"), asks("globex")], ())
    assert (first.kind, second.kind) == (ForecastKind.FREE, ForecastKind.FREE)
    assert "expected" in first.text
    assert "any of 2" in first.text
    assert first.member is None


def test_the_claim_that_is_one_too_many_expects_nothing_and_learns_how_the_pool_stands() -> None:
    snapshot = PoolSnapshot((member("aws-1"), stated("aws-2", "dirty"), owned("aws-3", "initech")), ())
    _, second = forecast_claims(snapshot, [asks("acme"), asks("globex")], ())
    assert second.kind is ForecastKind.EXHAUSTED
    assert "2 claims for 1 free aws account;" in second.text
    assert "1 owned, 1 dirty, 0 cleaning, 0 quarantined" in second.text


def test_a_claim_its_holder_has_is_held_and_another_holder_expects_to_reuse_it() -> None:
    request = asks("acme")
    record = record_for(request, "aws-1", Phase.BOUND, request.holder)
    snapshot = PoolSnapshot((carrying("aws-1", record),), (record,))
    mine, other = forecast_claims(snapshot, [request, replace(request, holder="cli")], ())
    assert (mine.kind, mine.member) == (ForecastKind.HELD, "aws-1")
    assert (other.kind, other.member) == (ForecastKind.REUSE, "aws-1")


def test_a_claim_begun_by_a_run_that_died_expects_the_account_chosen_then() -> None:
    request = asks("acme")
    record = record_for(request, "aws-2", Phase.PENDING, request.holder)
    snapshot = PoolSnapshot((member("aws-1"), member("aws-2")), (record,))
    assert forecasts(snapshot, request, asks("globex"), asks("initech")) == [
        ForecastKind.REUSE,
        ForecastKind.FREE,
        ForecastKind.EXHAUSTED,
    ]


def test_a_claim_begun_on_an_account_somebody_took_since_expects_a_free_one() -> None:
    request = asks("acme")
    record = record_for(request, "aws-2", Phase.PENDING, request.holder)
    snapshot = PoolSnapshot((member("aws-1"), owned("aws-2", "globex")), (record,))
    assert forecasts(snapshot, request) == [ForecastKind.FREE]


def test_a_claim_whose_account_was_deleted_is_refused() -> None:
    request = asks("acme")
    snapshot = PoolSnapshot((member("aws-2"),), (record_for(request, "aws-1", Phase.BOUND, request.holder),))
    (expected,) = forecast_claims(snapshot, [request], ())
    assert (expected.kind, expected.member) == (ForecastKind.REFUSED, "aws-1")


def test_a_full_claim_is_refused_to_a_new_holder_only() -> None:
    request = asks("acme")
    record = replace(record_for(request, "aws-1", Phase.BOUND, "one"), limit=1)
    snapshot = PoolSnapshot((carrying("aws-1", record),), (record,))
    assert forecasts(snapshot, request, replace(request, holder="one")) == [
        ForecastKind.REFUSED,
        ForecastKind.HELD,
    ]


def test_a_quarantined_account_is_refused_to_a_new_holder_only() -> None:
    request = asks("acme")
    record = record_for(request, "aws-1", Phase.BOUND, "one")
    carried = carrying("aws-1", record)
    kept = replace(carried, labels={**carried.labels, POOL_STATE: "quarantined"})
    snapshot = PoolSnapshot((kept,), (record,))
    assert forecasts(snapshot, request, replace(request, holder="one")) == [
        ForecastKind.REFUSED,
        ForecastKind.HELD,
    ]


def test_a_claim_being_released_counts_as_gone() -> None:
    request = asks("acme")
    record = record_for(request, "aws-1", Phase.RELEASING)
    own = carrying("aws-1", record)
    from_the_pool = replace(own, annotations={**own.annotations, CLAIM_ORIGIN: "pool"})
    assert forecasts(PoolSnapshot((from_the_pool, member("aws-2")), (record,)), request) == [
        ForecastKind.FREE
    ]
    assert forecasts(PoolSnapshot((own, member("aws-2")), (record,)), request) == [ForecastKind.OWN]


def test_partitions_do_not_help_each_other_out() -> None:
    snapshot = PoolSnapshot((member("plain"), member("eu", eu_access="true")), ())
    claims = (asks("a", eu_access="true"), asks("b", eu_access="true"), asks("c"), asks("d", type_="gcp"))
    assert forecasts(snapshot, *claims, keys=("eu-access",)) == [
        ForecastKind.FREE,
        ForecastKind.EXHAUSTED,
        ForecastKind.FREE,
        ForecastKind.EXHAUSTED,
    ]


@tabled("labels, notes")
def test_what_no_claim_would_take_is_not_handed_out(labels: dict[str, str], notes: dict[str, str]) -> None:
    assert forecasts(
        PoolSnapshot(
            (replace(member("m"), labels={HYPERSCALER_TYPE: "aws", **labels}, annotations=notes),), ()
        ),
        asks("acme"),
    ) == [ForecastKind.EXHAUSTED]


def test_shared_accounts_are_handed_out_by_their_places() -> None:
    labels = {HYPERSCALER_TYPE: "aws", SHARED: "true"}
    notes = {SHARED_CAPACITY: "3", SHARED_CLAIMS: json.dumps({"claim-0.u.1": "one"})}
    snapshot = PoolSnapshot((Member("shared", "u", "1", labels, notes), member("dedicated")), ())
    claims = [replace(asks("acme", slot), shared=True) for slot in ("a", "b", "c")]
    assert forecasts(snapshot, *claims) == [ForecastKind.FREE, ForecastKind.FREE, ForecastKind.EXHAUSTED]


def test_a_claim_that_makes_no_sense_is_refused_in_the_protocols_words() -> None:
    (expected,) = forecast_claims(PoolSnapshot((), ()), [asks("acme", region="eu")], ("eu-access",))
    assert expected.kind is ForecastKind.REFUSED
    assert "not partitioned by it" in expected.text


def test_a_shortage_names_the_claims_this_update_releases_too_late() -> None:
    leaving = [record_for(asks("initech"), "m"), record_for(asks("initech", "gcp", type_="gcp"), "m")]
    (expected,) = forecast_claims(PoolSnapshot((), ()), [asks("acme")], (), leaving)
    assert "releases initech/0 after its claims" in expected.text


@given(
    free=st.integers(0, 6),
    own=st.lists(st.sampled_from("abc"), max_size=4),
    wanted=st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), max_size=10, unique=True),
)
def test_never_more_claims_expect_an_account_than_there_are(
    free: int, own: list[str], wanted: list[tuple[str, int]]
) -> None:
    members = [member(f"free-{n}") for n in range(free)]
    members += [owned(f"own-{n}", tenant) for n, tenant in enumerate(own)]
    requests = [asks(tenant, str(slot)) for tenant, slot in wanted]
    expected = forecast_claims(PoolSnapshot(tuple(members), ()), requests, ())
    assert [(one.tenant, one.slot) for one in expected] == [(r.tenant, r.slot) for r in requests]
    given_own = [one.member for one in expected if one.kind is ForecastKind.OWN]
    assert len(given_own) == len(set(given_own))
    served = sum(one.kind is ForecastKind.FREE for one in expected)
    exhausted = sum(one.kind is ForecastKind.EXHAUSTED for one in expected)
    assert served == min(free, served + exhausted)


def test_an_account_stripped_by_hand_is_foreseen_for_the_tenant_that_a_half_done_release_leaves_it_to() -> (
    None
):
    ended = replace(record_for(asks("acme"), "m0", Phase.RELEASING), policy=Policy.RETAIN)
    stripped = member("m0", notes={CLAIM_TOKEN: str(ended.token)})
    (expected,) = forecast_claims(PoolSnapshot((stripped,), (ended,)), [asks("acme")], ())
    assert (expected.kind, expected.member) == (ForecastKind.OWN, "m0")
