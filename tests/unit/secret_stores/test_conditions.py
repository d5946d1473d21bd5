"""Which namespaces the conditions of a store let in, and which conditions make no sense."""

from typing import Any

import pytest

from components.secret_stores.conditions import NAME_LABEL, condition_objections
from components.secret_stores.explain import Ready
from components.secret_stores.model import Condition
from tests.support.cases import cases, table
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


@cases("conditions, caller, allowed", table(__file__, "test_conditions_let_in_whom_they_name"))
def test_conditions_let_in_whom_they_name(
    conditions: list[dict[str, Any]], caller: str, allowed: bool
) -> None:
    assert ready(conditions, caller) is (Ready.READY if allowed else Ready.DENIED)


@cases("conditions", table(__file__, "test_conditions_that_make_no_sense_are_an_error_not_a_denial"))
def test_conditions_that_make_no_sense_are_an_error_not_a_denial(conditions: list[dict[str, Any]]) -> None:
    assert ready(conditions, "a") is Ready.INVALID


def test_a_bad_regular_expression_is_refused_before_anybody_calls_a_bad_operator_is_not() -> None:
    assert ready([{"namespaceRegexes": ["("]}], "") is Ready.INVALID
    assert ready(expressions({"key": "tier", "operator": "Is"}), "") is Ready.READY


UNFIT = "spec.conditions[0].namespaceRegexes[0] "


@pytest.mark.parametrize(
    "pattern", ["(", "[a", "a**", "x)", "a{1001}", "^(?!kube-)", "(?<=a)b", "a++", r"(a)\1", r"a\Z"]
)
def test_what_re2_does_not_know_is_told_so(pattern: str) -> None:
    assert judged(pattern).startswith(f"{UNFIT}is not a regular expression of RE2")


@pytest.mark.parametrize(
    "pattern", ["^tenant-", "(?i)^a", "(?P<x>a)+", r"\pL", r"a\z", "[[:alpha:]]", "(?U)a+"]
)
def test_what_re2_knows_is_taken(pattern: str) -> None:
    assert judged(pattern) == ""


def judged(pattern: str) -> str:
    objections = condition_objections([Condition.model_validate({"namespaceRegexes": [pattern]})])
    return "; ".join(f"{each.problem} → {each.fix}" for each in objections)


def test_the_validation_of_a_store_is_not_barred_by_its_conditions() -> None:
    assert ready([{"namespaces": ["a"]}], "") is Ready.READY


def test_a_namespace_nobody_knows_cannot_be_judged_by_conditions() -> None:
    answer = told(cluster_store(provider=BLOCK, conditions=[{"namespaces": ["ghost"]}]), "ghost")
    assert (answer.ready, answer.admitted) == (Ready.INVALID, False)
    assert "ghost" in (answer.reason or "")


def test_without_conditions_a_namespace_need_not_be_known() -> None:
    assert told(cluster_store(provider=BLOCK), "ghost").ready is Ready.READY
