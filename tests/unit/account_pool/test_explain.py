"""Why a claim gets an account, or none: every account of the type with its reason."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from components.account_pool.core.keys import (
    CLAIM_ORIGIN,
    CLAIM_TOKEN,
    INTERNAL,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
    STATE_REASON,
)
from components.account_pool.core.model import ClaimRequest, Member, Partition, Phase
from components.account_pool.core.records import Record
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.forecast.claims import ForecastKind, forecast_claims
from components.account_pool.forecast.explanation import Explanation, explain
from components.labels import HYPERSCALER_TYPE, SHARED, TENANT_NAME
from tests.support import records
from tests.support.cases import tabled

KEYS = ("eu-access",)
ACME = ClaimRequest("acme", "aws")


def member(name: str, labels: dict[str, str] | None = None, notes: dict[str, str] | None = None) -> Member:
    return Member(name, f"uid-{name}", "1", {HYPERSCALER_TYPE: "aws"} | (labels or {}), notes or {})


def record_for(request: ClaimRequest, account: str, phase: Phase = Phase.BOUND) -> Record:
    partition = Partition.of(request.type, request.partition, KEYS, shared=request.shared)
    return records.record_for(request, partition, account, phase, request.holder)


def carrying(account: str, record: Record) -> Member:
    return member(account, {TENANT_NAME: record.tenant}, {CLAIM_TOKEN: str(record.token)})


def explained(request: ClaimRequest, *members: Member, records: tuple[Record, ...] = ()) -> Explanation:
    return explain(PoolSnapshot(members, records), request, KEYS)


def reasons(explanation: Explanation) -> dict[str, str]:
    return {each.member: each.reason for each in explanation.candidates}


def taken(explanation: Explanation) -> list[str]:
    return [each.member for each in explanation.candidates if each.taken]


def test_a_first_claim_takes_the_first_free_account_of_its_own_order() -> None:
    members = [member(f"aws-{n}") for n in range(9)]
    told = explained(ACME, *members)
    assert told.claim is None
    assert taken(told) == [told.candidates[0].member]
    assert told.candidates[0].reason == "free, number 1 in the order of this claim"
    other = explained(replace(ACME, tenant="globex"), *members)
    assert [each.member for each in other.candidates] != [each.member for each in told.candidates]


def test_a_claim_whose_account_was_relabelled_by_hand_takes_no_other() -> None:
    record = record_for(ACME, "aws-2")
    told = explained(ACME, member("aws-1"), member("aws-2", {TENANT_NAME: "globex"}), records=(record,))
    assert taken(told) == []
    assert told.expected.kind is ForecastKind.REFUSED
    assert reasons(told)["aws-2"] == "named by this claim (Bound), but does not carry it"


def test_a_claim_on_its_way_out_is_not_what_the_next_one_gets() -> None:
    record = record_for(ACME, "aws-2", Phase.RELEASING)
    leaving = carrying("aws-2", record)
    from_the_pool = replace(leaving, annotations={**leaving.annotations, CLAIM_ORIGIN: "pool"})
    told = explained(ACME, member("aws-1"), from_the_pool, records=(record,))
    assert taken(told) == ["aws-1"]
    assert reasons(told)["aws-2"] == "dirty, waits to be cleaned"


@tabled("labels, notes, reason")
def test_an_account_that_is_not_taken_says_why(
    labels: dict[str, str], notes: dict[str, str], reason: str
) -> None:
    told = explained(ACME, member("m", labels, notes))
    assert reasons(told) == {"m": reason}
    assert taken(told) == []


def test_an_account_of_another_tenant_says_whose_it_is() -> None:
    record = record_for(replace(ACME, tenant="globex", slot="eu"), "aws-1")
    told = explained(ACME, carrying("aws-1", record), records=(record,))
    assert reasons(told) == {"aws-1": "claimed by tenant globex, slot eu"}


def shared(name: str, users: int, capacity: int = 3) -> Member:
    claims = json.dumps({f"claim-{n}.u.1": str(n) for n in range(users)})
    return member(name, {SHARED: "true"}, {SHARED_CLAIMS: claims, SHARED_CAPACITY: str(capacity)})


def test_of_shared_accounts_the_least_used_is_taken_and_a_full_one_says_so() -> None:
    members = (shared("aws-1", 2), shared("aws-2", 1), shared("aws-3", 3), member("aws-4"))
    told = explained(replace(ACME, shared=True), *members)
    assert taken(told) == ["aws-2"]
    assert reasons(told)["aws-2"] == "1 of 3 claims on it, number 1 in the order of this claim"
    assert reasons(told)["aws-3"] == "full: 3 of 3 claims on it"
    assert "another part of the pool" in reasons(told)["aws-4"]


LABELS = st.fixed_dictionaries(
    {},
    optional={
        TENANT_NAME: st.sampled_from(["", "acme", "globex"]),
        POOL_STATE: st.sampled_from(["dirty", "cleaning", "quarantined", "strange"]),
        "eu-access": st.sampled_from(["true", "false"]),
        INTERNAL: st.just("true"),
        SHARED: st.sampled_from(["true", "yes"]),
    },
)
NOTES = st.fixed_dictionaries(
    {},
    optional={
        CLAIM_TOKEN: st.sampled_from(["claim-0.u.1", "no token"]),
        SHARED_CAPACITY: st.sampled_from(["2", "many"]),
        STATE_REASON: st.just("why"),
    },
)


@given(st.lists(st.tuples(LABELS, NOTES), max_size=5), st.booleans())
def test_every_account_is_judged_once_and_one_is_taken_exactly_when_the_claim_is_served(
    drawn: list[tuple[dict[str, str], dict[str, str]]], is_shared: bool
) -> None:
    members = tuple(member(f"m{n}", *each) for n, each in enumerate(drawn))
    request = replace(ACME, shared=is_shared)
    told = explained(request, *members)
    assert sorted(each.member for each in told.candidates) == sorted(each.name for each in members)
    assert told.expected == forecast_claims(PoolSnapshot(members, ()), [request], KEYS)[0]
    served = told.expected.kind in (ForecastKind.OWN, ForecastKind.FREE)
    assert len(taken(told)) == served
