"""Which namespaces the conditions of a store let in, and which conditions make no sense."""

from typing import Any

import pytest

from components.secret_stores.conditions import NAME_LABEL, condition_objections
from components.secret_stores.explain import KnownObjects, Ready, explain
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import Condition
from tests.support.cases import cases, table
from tests.support.stores import cluster_store, token_spec, told

BY_LABEL = [{"namespaceSelector": {"matchLabels": {"tier": "gold"}}}]
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


@cases(
    "conditions, whole, part, none",
    table(__file__, "test_labels_that_are_not_known_leave_open_what_they_decide"),
)
def test_labels_that_are_not_known_leave_open_what_they_decide(
    conditions: list[dict[str, Any]], whole: str, part: str, none: str
) -> None:
    store = cluster_store(provider=BLOCK, conditions=conditions)
    labels = {"prod": {"tier": "gold"}}
    known = [
        KnownObjects(KINDS, {}, labels),
        KnownObjects(KINDS, {}, labels, labels_are_whole=False),
        KnownObjects(KINDS, {}, {}),
    ]
    answers = [explain(store, "prod", each) for each in known]
    assert [str(each.ready) for each in answers] == [whole, part, none]
    for each in answers:
        open_ = each.ready is Ready.UNKNOWN
        assert (each.undecided, each.admitted is None) == (open_, open_)
        assert ("unknown, because" in str(each.reason)) == open_


def test_what_is_refused_whoever_may_use_it_is_invalid_where_labels_are_not_known() -> None:
    store = cluster_store(provider={"gitlab": token_spec("vault"), "fake": {"data": []}}, conditions=BY_LABEL)
    assert told(store, "ghost").ready is Ready.INVALID


def test_without_conditions_a_namespace_need_not_be_known() -> None:
    assert told(cluster_store(provider=BLOCK), "ghost").ready is Ready.READY
