from __future__ import annotations

from typing import Any

import pytest

from components.secret_stores.conditions import NAME_LABEL, condition_objections
from components.secret_stores.explain import Ready
from components.secret_stores.model import Condition
from tests.support.stores import cluster_store, token_spec, told

BLOCK = {"gitlab": token_spec("vault")}
NAMESPACES = {
    "a": {NAME_LABEL: "a", "tier": "gold"},
    "b": {NAME_LABEL: "b"},
    "prod": {NAME_LABEL: "prod"},
    "nonprod": {NAME_LABEL: "nonprod"},
    "alias": {NAME_LABEL: "a"},
}


def ready(conditions: list[dict[str, Any]], caller: str) -> Ready:
    return told(cluster_store(provider=BLOCK, conditions=conditions), caller, namespaces=NAMESPACES).ready


def expressions(*requirements: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"namespaceSelector": {"matchExpressions": list(requirements)}}]


GOLD = {"key": "tier", "operator": "In", "values": ["gold"]}


@pytest.mark.parametrize(
    ("conditions", "caller", "allowed"),
    [
        pytest.param([], "a", True, id="B1"),
        pytest.param([{}], "a", False, id="B2"),
        pytest.param([{"namespaces": ["a"]}], "a", True, id="B3-a"),
        pytest.param([{"namespaces": ["a"]}], "b", False, id="B3-b"),
        pytest.param([{"namespaces": ["a"]}], "alias", True, id="B3-by-label"),
        pytest.param([{"namespaceSelector": {}}], "b", True, id="B4"),
        pytest.param(
            expressions(GOLD, {"key": "region", "operator": "Exists"}), "a", False, id="B5-expressions"
        ),
        pytest.param(
            [{"namespaceSelector": {"matchLabels": {"tier": "gold", "region": "eu"}}}],
            "a",
            False,
            id="B5-labels",
        ),
        pytest.param([{"namespaceRegexes": ["^prod$"]}], "nonprod", False, id="B7"),
        pytest.param([{"namespaceRegexes": ["prod"]}], "nonprod", True, id="B7-unanchored"),
        pytest.param([{"namespaces": ["b"]}, {"namespaceRegexes": ["^a"]}], "a", True, id="any-entry"),
        pytest.param([{"namespaces": ["b"], "namespaceRegexes": ["^a"]}], "a", True, id="any-way"),
        pytest.param(expressions(GOLD), "a", True, id="In"),
        pytest.param(expressions(GOLD), "b", False, id="In-absent"),
        pytest.param(expressions({**GOLD, "operator": "NotIn"}), "b", True, id="NotIn-absent"),
        pytest.param(expressions({**GOLD, "operator": "NotIn"}), "a", False, id="NotIn"),
        pytest.param(expressions({"key": "tier", "operator": "DoesNotExist"}), "a", False, id="absent"),
    ],
)
def test_conditions_let_in_whom_they_name(
    conditions: list[dict[str, Any]], caller: str, allowed: bool
) -> None:
    assert ready(conditions, caller) is (Ready.READY if allowed else Ready.DENIED)


@pytest.mark.parametrize(
    "conditions",
    [
        pytest.param([{"namespaces": ["a"]}, {"namespaceRegexes": ["("]}], id="B8-regex"),
        pytest.param([{"namespaceRegexes": ["^(?!kube-)"]}], id="B8-not-RE2"),
        pytest.param(expressions({"key": "tier", "operator": "Is", "values": ["gold"]}), id="B8-operator"),
        pytest.param(expressions({"key": "tier", "operator": "In"}), id="B8-no-values"),
        pytest.param(
            expressions({"key": "tier", "operator": "Exists", "values": ["gold"]}), id="B8-idle-values"
        ),
    ],
)
def test_conditions_that_make_no_sense_are_an_error_not_a_denial(conditions: list[dict[str, Any]]) -> None:
    assert ready(conditions, "a") is Ready.INVALID


def test_b8_a_bad_regular_expression_is_refused_before_anybody_calls_a_bad_operator_is_not() -> None:
    assert ready([{"namespaceRegexes": ["("]}], "") is Ready.INVALID
    assert ready(expressions({"key": "tier", "operator": "Is"}), "") is Ready.READY


UNFIT = "spec.conditions[0].namespaceRegexes[0] "


@pytest.mark.parametrize("pattern", ["(", "a{2}{3}", "[a", "a**", "x)"])
def test_b8_what_is_no_regular_expression_is_told_so(pattern: str) -> None:
    assert judged(pattern) == f"{UNFIT}is no regular expression → correct it, such as ^tenant-"


@pytest.mark.parametrize(
    "pattern",
    [
        "^(?!kube-)",
        "a(?=b)",
        "(?<=a)b",
        "a++",
        "a{2}+",
        r"(a)\1",
        "(?P=x)",
        "(?x)a",
        "(?#a)",
        r"a\Z",
        "a{,5}",
    ],
)
def test_b8_what_go_does_not_know_is_told_so(pattern: str) -> None:
    assert judged(pattern) == f"{UNFIT}is read otherwise by Go (RE2), or not at all → do without it"


@pytest.mark.parametrize(
    "pattern", [r"\pL", r"a\z", r"\Qa.b\E", "a(?i)b", "[[:alpha:]]", r"[\pL]", "(?U)a+", "(?<x>a)"]
)
def test_b8_what_only_go_knows_is_told_to_be_no_fault_of_the_pattern(pattern: str) -> None:
    assert judged(pattern).startswith(f"{UNFIT}says what only Go's regular expressions (RE2) can")


@pytest.mark.parametrize(
    ("pattern", "taken"),
    [
        ("a{1000}", True),
        ("a{1001}", False),
        ("a{1,1001}", False),
        ("(a{10}){100}", True),
        ("(?:a{2}(b{10})*){101}", False),
        ("a{600}b{600}", True),
        ("(a{30}|b){30}c{900}", True),
        ("(a{40}|b){30}", False),
    ],
)
def test_b8_go_repeats_a_part_a_thousand_times_at_most(pattern: str, *, taken: bool) -> None:
    assert (judged(pattern) == "") is taken
    assert taken or "more than 1000 times" in judged(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "^tenant-",
        "(?i)^a",
        "(?i:a)b",
        "(?P<x>a)+",
        "(?:ab)+?",
        r"\++",
        "[*+]+",
        r"[\]]+",
        "a{2,}",
        r"\d",
        "{}",
    ],
)
def test_b8_what_both_know_is_taken(pattern: str) -> None:
    assert judged(pattern) == ""


def judged(pattern: str) -> str:
    objections = condition_objections([Condition.model_validate({"namespaceRegexes": [pattern]})])
    return "; ".join(f"{each.cause} → {each.mend}" for each in objections)


def test_b11_the_validation_of_a_store_is_not_barred_by_its_conditions() -> None:
    assert ready([{"namespaces": ["a"]}], "") is Ready.READY


def test_a_namespace_nobody_knows_cannot_be_judged_by_conditions() -> None:
    answer = told(cluster_store(provider=BLOCK, conditions=[{"namespaces": ["ghost"]}]), "ghost")
    assert (answer.ready, answer.admitted) == (Ready.INVALID, False)
    assert "ghost" in (answer.reason or "")


def test_without_conditions_a_namespace_need_not_be_known() -> None:
    assert told(cluster_store(provider=BLOCK), "ghost").ready is Ready.READY
