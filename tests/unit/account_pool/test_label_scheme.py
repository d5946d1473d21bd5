"""A pool whose accounts bear Kyma's labels is used as it is, and what is written is what Kyma would read.

Selectors of Kyma are those of docs/compatibility.md. That every reader agrees about such pools
is in `test_agreement.py`; that the API server guards them, in `tests/cluster/test_admission_of_members.py`.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.account_pool.admission.policies import admission_manifests
from components.account_pool.core.calls import Kind
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.keys import POOL_STATE, STATE_REASON
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.model import ClaimRequest
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.selection import MEMBERS, members_free, members_shared
from components.account_pool.core.status import AccountUse
from components.errors import Misconfigured, PoolError
from components.labels import EU_ACCESS, HYPERSCALER_TYPE, SHARED, TENANT_NAME
from tests.support.cases import tabled
from tests.support.memory_pool import KEB, POOL, MemoryServer

SETTINGS = PoolConfigMap((EU_ACCESS,), scheme=KEB)
ACME = ClaimRequest("acme", "aws")


def pool(**labels: str) -> tuple[PoolOperator, MemoryServer]:
    """Make a pool in Kyma's words with one account."""
    server = MemoryServer()
    said = {"hyperscalerType": "aws", **labels}
    server.create(Kind.MEMBER, {"metadata": {"name": "m0", "labels": said, "annotations": {}}})
    return PoolOperator(server, POOL, SETTINGS), server


@tabled("labels, standing")
def test_an_account_stands_as_its_labels_say_in_the_words_of_kyma(
    labels: dict[str, str], standing: str
) -> None:
    (account,) = pool(**labels)[0].status().accounts
    assert account.standing == standing


@tabled("labels, why")
def test_a_label_that_says_neither_one_thing_nor_the_other_is_told_in_those_words_and_nobody_gets_it(
    labels: dict[str, str], why: str
) -> None:
    found, _ = pool(**labels)
    (account,) = found.status().accounts
    assert account.standing is AccountUse.MISCONFIGURED
    assert account.reason.startswith(why)
    for shared in (False, True):
        with pytest.raises(PoolError):
            found.claim(ClaimRequest("acme", "aws", shared=shared))


def test_a_life_of_an_account_is_written_in_the_words_of_kyma() -> None:
    found, server = pool()
    seen: list[dict[str, str]] = []

    def look() -> None:
        seen.append(
            {key: text for key, text in server.member("m0").labels.items() if key != "hyperscalerType"}
        )

    def wipe(_member: object) -> None:
        look()

    claimed = found.claim(ACME)
    look()
    found.release(claimed.record, claimed.holder)
    look()
    found.clean("cleaner", wipe)
    look()
    assert seen == [
        {"tenantName": "acme"},
        {"tenantName": "acme", "dirty": "true"},
        {"tenantName": "acme", "dirty": "true", POOL_STATE: "cleaning"},
        {},
    ]


def test_what_kyma_did_meanwhile_counts() -> None:
    found, server = pool()
    claimed = found.claim(ACME)
    found.release(claimed.record, claimed.holder)
    server.by_hand("m0", {"dirty": None, "tenantName": None})
    assert found.claim(ClaimRequest("globex", "aws")).secret_name == "m0"
    server.by_hand("m0", {"dirty": "true"})
    with pytest.raises(PoolError, match="dirty"):
        found.claim(ClaimRequest("globex", "aws", holder="another"))


def test_nobody_cleans_an_account_that_does_not_say_whether_it_is_dirty() -> None:
    found, _ = pool(dirty="false")
    assert found.clean("cleaner", lambda _: None) == ()


def test_a_quarantined_account_comes_back_as_it_was() -> None:
    found, server = pool(dirty="true")
    found.quarantine("m0", "why")
    assert server.member("m0").annotations[STATE_REASON] == "why"
    found.unquarantine("m0")
    labels = server.member("m0").labels
    assert (labels["dirty"], POOL_STATE in labels) == ("true", False)


def test_an_account_that_kyma_marks_while_it_is_quarantined_comes_back_to_be_cleaned() -> None:
    found, server = pool()
    found.quarantine("m0", "why")
    server.by_hand("m0", {"dirty": "true"})
    found.unquarantine("m0")
    assert server.member("m0").labels["dirty"] == "true"
    with pytest.raises(PoolError, match="1 dirty"):
        found.claim(ACME)


def test_a_shared_account_that_does_not_say_how_many_claims_it_takes_takes_what_the_pool_says() -> None:
    found, _ = pool(shared="true")
    for tenant in ("a", "b"):
        assert found.claim(ClaimRequest(tenant, "aws", shared=True)).secret_name == "m0"
    with pytest.raises(PoolError, match="1 full"):
        found.claim(ClaimRequest("c", "aws", shared=True))


def test_selectors_select_no_less_than_the_protocol_asks_for() -> None:
    partition = ClaimRequest("acme", "aws", partition={EU_ACCESS: "true"}).placed("", (EU_ACCESS,)).place
    assert KEB.selector(members_free(partition)).split(",") == [
        "hyperscalerType=aws",
        "euAccess=true",
        "!tenantName",
        f"!{POOL_STATE}",
        "!dirty",
        "shared!=true",
        "!internal",
    ]
    assert KEB.selector(members_shared(partition)) == "hyperscalerType=aws,euAccess=true,shared=true"
    assert KEB.selector(MEMBERS) == "hyperscalerType"


def test_settings_carry_the_words_of_a_pool_only_where_they_are_not_credfleets() -> None:
    body = {"metadata": {"uid": "u", "namespace": POOL}, "data": SETTINGS.render()}
    assert PoolConfigMap.parse(body) == SETTINGS
    assert set(PoolConfigMap().render()) == {"formatVersion", "partitionKeys", "releasePolicy", "limits"}


@pytest.mark.parametrize("data", ['{"colour": "blue"}', "[]", "{", '"dirty"'])
def test_words_that_nobody_can_read_stop_the_pool_instead_of_being_left_out(data: str) -> None:
    body = {"metadata": {"uid": "u", "namespace": POOL}, "data": {**PoolConfigMap().render(), "labels": data}}
    with pytest.raises(Misconfigured, match=CONFIG_MAP):
        PoolConfigMap.parse(body)


@given(st.sets(st.sampled_from(sorted(KEB.names))))
def test_the_rules_of_admission_name_the_labels_of_the_pool_and_no_other(chosen: set[str]) -> None:
    names = {name: KEB.names[name] for name in chosen}
    text = json.dumps(admission_manifests(POOL, PoolConfigMap(scheme=LabelScheme(names)))[0])
    for name, own in {"type": HYPERSCALER_TYPE, "tenant": TENANT_NAME, "shared": SHARED}.items():
        assert (f"'{own}'" in text) is (name not in names)
        assert (f"'{KEB.names[name]}'" in text) is (name in names)
    assert ("[?'dirty'].optMap(" in text) is ("dirty" in names)
