"""Plan → pool (docs/compatibility.md)."""

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from components.account_pool.rules import ANY, PLANS, Fault, Pool, Request, read_rules
from tests.support.cases import tabled

KYMA = (
    "azure(PR=cf-ch20) -> EU",
    "gcp",
    "azure",
    "aws",
    "aws(PR=cf-eu11) -> EU",
    "gcp(PR=cf-sa30) -> PR,HR",
    "trial -> S",
    "trial(PR=cf-eu11) -> EU,S",
    "free",
)


@tabled("request_, pool")
def test_the_most_specific_rule_that_matches_chooses_the_pool(
    request_: dict[str, str], pool: dict[str, Any]
) -> None:
    rules, faults = read_rules(KYMA)

    assert faults == ()
    assert rules.choose(Request(**request_)) == Pool(**pool)
    assert rules.choose(Request(**request_)) == Pool(**pool)


@tabled("text")
def test_a_rule_that_cannot_mean_what_it_says_is_refused(text: str) -> None:
    rules, faults = read_rules(["gcp", text])

    assert [fault.rule for fault in faults] == [1]
    assert rules.rules == ()


def test_a_star_is_told_to_be_left_out_since_it_would_match_no_region() -> None:
    _, (fault,) = read_rules(["sap-converged-cloud(HR=*)"])

    assert "leave HR out" in fault.problem


RULE = "gcp(PR=cf-sa30,HR=ksa)->PR,HR,EU"


@given(st.lists(st.sampled_from(["", " ", "\t"]), min_size=len(RULE), max_size=len(RULE)))
def test_blanks_anywhere_mean_nothing(blanks: list[str]) -> None:
    spaced = "".join(blank + character for blank, character in zip(blanks, RULE, strict=True))

    assert read_rules([spaced]) == read_rules([RULE])


@tabled("texts, faulty")
def test_rules_between_which_nothing_decides_are_refused(texts: list[str], faulty: list[int]) -> None:
    _, faults = read_rules(texts)

    assert [fault.rule for fault in faults] == faulty


def test_one_bad_rule_invalidates_the_set_and_every_bad_one_is_listed() -> None:
    rules, faults = read_rules(["aws", "awz", "gcp(PR)", "aws"])

    assert [fault.rule for fault in faults] == [1, 2, 3]
    assert isinstance(rules.choose(Request("aws")), Fault)


@tabled("request_, fix")
def test_a_request_no_pool_serves_is_told_what_it_lacks(request_: dict[str, str], fix: str) -> None:
    rules, _ = read_rules(KYMA)

    fault = rules.choose(Request(**request_))

    assert isinstance(fault, Fault)
    assert fix in fault.fix


REGIONS = st.sampled_from([None, "x", "y"])


@st.composite
def rule_texts(draw: st.DrawFn) -> str:
    inputs = [f"{key}={value}" for key in ("PR", "HR") if (value := draw(REGIONS))]
    head = draw(st.sampled_from(["aws", "gcp"])) + (f"({','.join(inputs)})" if inputs else "")
    return head + draw(st.sampled_from(["", "->EU", "->S"]))


@given(st.lists(rule_texts(), max_size=6), REGIONS, REGIONS, st.randoms())
def test_the_choice_does_not_depend_on_the_order_of_the_rules(
    texts: list[str], platform: str | None, hyperscaler: str | None, random: Random
) -> None:
    rules, faults = read_rules(texts)
    if faults:
        return
    shuffled = random.sample(texts, len(texts))

    for plan in ("aws", "gcp"):
        request = Request(plan, platform, hyperscaler)
        assert read_rules(shuffled)[0].choose(request) == rules.choose(request)


def test_every_plan_can_be_asked_for() -> None:
    rules, faults = read_rules(tuple(PLANS))

    assert faults == ()
    for plan, cloud in PLANS.items():
        asked = Request(plan, hyperscaler="aws" if cloud == ANY else cloud)
        assert isinstance(rules.choose(asked), Pool)


BROKER: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("keb_rules.yaml").read_text()
)
SHARED, EU = "; shared: true", "; euAccess: true"


@pytest.mark.parametrize("where", BROKER)
def test_each_rule_of_the_broker_chooses_the_pool_its_own_comment_names_or_is_refused(where: str) -> None:
    stated = BROKER[where]
    _, faults = read_rules([each["rule"] for each in stated])
    refused = {each: one for each, one in enumerate(stated) if "refused" in one}
    assert [fault.rule for fault in faults] == list(refused)
    assert all(stated[fault.rule or 0]["refused"] in fault.problem for fault in faults)
    readable = [each for each in stated if "refused" not in each]
    rules, _ = read_rules([each["rule"] for each in readable])
    for position, each in enumerate(readable):
        plan = re.split(r"[ (]", each["rule"])[0]
        given = dict(re.findall(r"(PR|HR)=([-a-z0-9]+)", each["rule"]))
        for pool in each["pool"]:
            text = pool.removesuffix(SHARED).removesuffix(EU).removeprefix("hyperscalerType: ")
            asked = Request(plan, given.get("PR", "cf-xx99"), given.get("HR", "xx-1"), text.partition("_")[0])
            expected = Pool(text.replace("HR", "xx-1"), EU in pool, SHARED in pool)
            chosen = rules.choose(asked)
            assert (chosen, chosen.rule) == (expected, position)


def test_a_plan_of_the_configuration_is_known_beside_those_of_the_broker_and_wins_over_them() -> None:
    rules, faults = read_rules(["mine", "aws", "preview"], {**PLANS, "mine": "gcp", "preview": ANY})
    assert faults == ()
    assert rules.choose(Request("mine")) == Pool("gcp", eu_access=False, shared=False)
    assert rules.choose(Request("aws")) == Pool("aws", eu_access=False, shared=False)
    asked = Request("preview", hyperscaler="azure")
    assert rules.choose(asked) == Pool("azure", eu_access=False, shared=False)
