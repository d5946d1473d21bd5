"""The code of the claim protocol, its model and the page that compares them name the same steps."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.models.conftest import Checker
from tests.models.labels import labels_by_function
from tests.models.test_claim_model import VIOLATED

PAGE = Path(__file__).parents[2] / "docs" / "claim-model.md"
REPORT_ONLY = {"S4"}
"""Steps that write nothing and decide nothing, so the model has none for them."""

STEP = re.compile(r"[CRXSKQ]\d")


@pytest.fixture(scope="module")
def model(checker: Checker) -> dict[str, set[str]]:
    """Step → its calls, as the model says of itself."""
    calls: dict[str, set[str]] = defaultdict(set)
    for line in checker("-steps").stdout.splitlines():
        labels, call = line.split("\t")
        for label in filter(STEP.fullmatch, labels.split()):
            calls[label].add(call)
    return dict(calls)


@pytest.fixture(scope="module")
def page() -> dict[str, tuple[set[str], set[str]]]:
    """Step → the calls and the functions the page names."""
    rows = re.findall(r"^\| ([CRXSKQ]\d) \| (.*) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    return {
        step: (set(calls.split("; ")) - {"none"}, set(re.findall(r"`(.+?)`", functions)))
        for step, calls, functions in rows
    }


@pytest.fixture(scope="module")
def code() -> dict[str, set[str]]:
    """Step → the functions that name it."""
    functions: dict[str, set[str]] = defaultdict(set)
    for function, labels in labels_by_function().items():
        for label in labels:
            functions[label].add(function)
    return dict(functions)


def test_the_code_names_exactly_the_steps_of_the_model(model: dict[str, set[str]], code: dict[str, set[str]]):
    assert set(code) - REPORT_ONLY == set(model)


def test_the_page_names_the_calls_of_the_model(
    model: dict[str, set[str]], page: dict[str, tuple[set[str], set[str]]]
):
    assert {step: calls for step, (calls, _) in page.items() if calls} == model


def test_the_page_names_the_functions_of_the_code(
    page: dict[str, tuple[set[str], set[str]]], code: dict[str, set[str]]
):
    assert {step: functions for step, (_, functions) in page.items()} == code


def test_the_page_says_by_which_invariant_each_mistake_is_found():
    said = dict(re.findall(r"^\| (W\d+) \| .* \| (I\d+) \| .* \|$", PAGE.read_text(), re.MULTILINE))
    assert said == VIOLATED


def test_every_invariant_a_mistake_breaks_is_explained_on_the_page():
    text = PAGE.read_text()
    explained = set(re.findall(r"^\| (I\d+) \|", text, re.MULTILINE))
    assert set(re.findall(r"\| (I\d+) \| (?:\d+|cycle) \|$", text, re.MULTILINE)) <= explained
