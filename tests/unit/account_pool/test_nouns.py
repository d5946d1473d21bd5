"""Partitions, tokens, members and records: what is written can be read, what is odd is refused by name."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.account_pool.core.config_map import POOL_UID, PoolConfigMap, has_pool_uid, with_pool_uid
from components.account_pool.core.identity import brought_name
from components.account_pool.core.judgement import misconfiguration
from components.account_pool.core.keys import (
    CLAIM_TOKEN,
    INTERNAL,
    POOL_STATE,
)
from components.account_pool.core.model import ClaimRequest, Member, Partition, Phase, Policy, record_name
from components.account_pool.core.records import Record
from components.account_pool.core.selection import in_order, members_free, members_owned, members_shared, turn
from components.account_pool.core.tokens import Token
from components.errors import Misconfigured, Restored
from components.labels import SHARED, TENANT_NAME
from tests.support.cases import tabled
from tests.support.memory_pool import is_free, matches

PLAIN = Partition.of("aws", {}, ["eu-access"])
EU = Partition.of("aws", {"eu-access": "true"}, ["eu-access"])


def member(
    name: str = "m0", labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None
) -> Member:
    return Member(name, "uid", "1", {"hyperscaler-type": "aws", **(labels or {})}, annotations or {})


def test_a_partition_is_told_by_its_sorted_terms_with_absent_keys_marked() -> None:
    partition = Partition.of("aws", {"eu-access": "true"}, ["region", "eu-access"])
    assert str(partition) == "eu-access=true,hyperscaler-type=aws,!region"


def test_a_record_is_named_by_the_digest_of_partition_tenant_and_slot() -> None:
    """Worked by hand: SHA-256 of ["hyperscaler-type=aws","acme","0"] in UTF-8."""
    assert record_name(Partition("aws"), "acme", "0") == "claim-52dc6dba726254e05ae6e1ce4e62317b4a164b1b"


def test_an_account_of_azure_that_is_brought_has_one_name_in_either_case() -> None:
    guid, other = "0f8fad5b-d9cb-469f-a165-70867728950e", "0f8fad5b-d9cb-469f-a165-70867728950f"
    assert brought_name("azure", guid) == brought_name("azure", guid.upper())
    assert brought_name("azure", guid) != brought_name("azure", other)
    assert brought_name("x", "Ab") != brought_name("x", "ab")


@tabled("account_type, values")
def test_a_request_no_pool_could_serve_is_misconfigured(account_type: str, values: dict[str, str]) -> None:
    with pytest.raises(Misconfigured):
        Partition.of(account_type, values, ["eu-access"])


@pytest.mark.parametrize(
    ("partition", "ours", "others"),
    [
        pytest.param(PLAIN, {}, {"eu-access": "true"}, id="outside-the-eu"),
        pytest.param(EU, {"eu-access": "true"}, {}, id="in-the-eu"),
    ],
)
def test_lookup_and_claim_select_one_partition_only(
    partition: Partition, ours: dict[str, str], others: dict[str, str]
) -> None:
    base = {"hyperscaler-type": "aws"}
    assert matches(members_owned(partition, "t"), {**base, **ours, TENANT_NAME: "t"})
    assert not matches(members_owned(partition, "t"), {**base, **others, TENANT_NAME: "t"})
    assert not matches(members_owned(partition, "t"), {**base, **ours, TENANT_NAME: "u"})
    assert matches(members_free(partition), {**base, **ours})
    assert not matches(members_free(partition), {**base, **others})
    assert not matches(members_free(partition), {"hyperscaler-type": "gcp", **ours})


@pytest.mark.parametrize("label", [TENANT_NAME, POOL_STATE, SHARED, INTERNAL])
def test_what_is_owned_in_any_state_shared_or_internal_is_not_free(label: str) -> None:
    labels = {"hyperscaler-type": "aws", label: "true"}
    assert not matches(members_free(PLAIN), labels)
    assert not is_free(member(labels=labels))


def test_the_shared_selector_is_the_same_for_every_tenant() -> None:
    assert members_shared(PLAIN) == "hyperscaler-type=aws,!eu-access,credfleet.io/shared=true"


def test_a_member_whose_label_was_stripped_is_not_free_while_its_token_is_there() -> None:
    assert not is_free(member(annotations={CLAIM_TOKEN: "claim-1.uid.1"}))


@tabled("labels, annotations, reason")
def test_what_could_never_be_claimed_or_cleaned_is_reported(
    labels: dict[str, str], annotations: dict[str, str], reason: str
) -> None:
    assert reason in (misconfiguration(member(labels=labels, annotations=annotations), ["eu-access"]) or "")


def test_a_member_in_order_is_not_reported() -> None:
    assert misconfiguration(member(labels={"eu-access": "true", POOL_STATE: "dirty"}), ["eu-access"]) is None


def test_different_claims_start_at_different_members() -> None:
    names = [f"m{index}" for index in range(100)]
    firsts = {min(names, key=turn(f"claim-{index}")) for index in range(50)}
    assert len(firsts) > 30


def test_what_is_a_tenants_own_comes_before_what_is_free() -> None:
    members = [*(member(f"m{index}") for index in range(9)), member("own", {TENANT_NAME: "acme"})]
    assert in_order(ClaimRequest.at("pool", PLAIN, "acme", "x", "h"), members)[0].name == "own"


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=20)


@given(
    tenant=TEXTS.filter(lambda text: text == text.strip()),
    slot=TEXTS,
    holders=st.dictionaries(TEXTS, st.integers(1, 99), max_size=3),
    limit=st.none() | st.integers(1, 9),
    phase=st.sampled_from(Phase),
    policy=st.sampled_from(Policy),
    partition=st.sampled_from([PLAIN, EU, Partition("gcp_cf-sa30", shared=True)]),
)
def test_a_record_reads_back_as_it_was_written(partition: Partition, **facts: Any) -> None:
    record = Record(
        name="claim-1",
        uid="u",
        resource_version="7",
        member="m",
        member_uid="mu",
        attempt=3,
        partition=partition,
        **facts,
    )
    assert Record.parse(record.render("pool")) == record


@pytest.mark.parametrize("broken", ["holders", "attempt", "phase", "member", "partition"])
def test_something_else_under_the_name_of_a_record_is_misconfigured(broken: str) -> None:
    record = Record(
        "claim-1", "u", "7", "t", PLAIN, "0", "m", "mu", 1, Phase.BOUND, Policy.CLEAN, None, {"h": 1}
    )
    body = record.render("pool")
    body["data"].pop(broken)
    with pytest.raises(Misconfigured, match="claim-1"):
        Record.parse(body)


def test_a_token_reads_back_as_it_was_written() -> None:
    token = Token("claim-1", "0c1e-4", 12)
    assert Token.parse(str(token), "m") == token


def config_map(settings: PoolConfigMap, **data: str) -> dict[str, Any]:
    return {"metadata": {"namespace": "pool", "uid": "u1"}, "data": {**settings.render(), **data}}


def test_pool_settings_read_back_as_they_were_written() -> None:
    settings = PoolConfigMap(("eu-access", "region"), Policy.RETAIN, {"aws": 3, "default": 9})
    assert PoolConfigMap.parse(config_map(settings)) == settings


def test_a_pool_that_signs_itself_with_another_uid_was_restored() -> None:
    signed = with_pool_uid(config_map(PoolConfigMap()))
    assert has_pool_uid(signed)
    assert PoolConfigMap.parse(signed) == PoolConfigMap()
    with pytest.raises(Restored):
        PoolConfigMap.parse(config_map(PoolConfigMap(), **{POOL_UID: "another"}))


@pytest.mark.parametrize(
    "data", [{"formatVersion": "2"}, {"limits": "[]"}, {"partitionKeys": "3"}, {"releasePolicy": "burn"}]
)
def test_a_pool_nobody_can_read_is_misconfigured(data: dict[str, str]) -> None:
    with pytest.raises(Misconfigured):
        PoolConfigMap.parse(config_map(PoolConfigMap(), **data))


@tabled("limits, account_type, limit")
def test_the_limit_is_the_types_then_the_clouds_then_the_default(
    limits: dict[str, int], account_type: str, limit: int | None
) -> None:
    assert PoolConfigMap(limits=limits).limit_for(account_type) == limit
