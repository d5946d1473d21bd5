"""The claim protocol's code and model name the steps of claim_steps.yaml; the page has each invariant."""

import re
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

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
def listed() -> dict[str, dict[str, list[str]]]:
    """Step → its calls and its functions."""
    return yaml.safe_load(Path(__file__).with_name("claim_steps.yaml").read_text())


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


def test_the_calls_of_the_model_are_those_listed(
    model: dict[str, set[str]], listed: dict[str, dict[str, list[str]]]
):
    assert {step: {*each["calls"]} for step, each in listed.items() if each["calls"]} == model


def test_the_functions_of_the_code_are_those_listed(
    listed: dict[str, dict[str, list[str]]], code: dict[str, set[str]]
):
    assert {step: {*each["functions"]} for step, each in listed.items()} == code


def test_every_invariant_a_mistake_breaks_is_on_the_page():
    explained = set(re.findall(r"^\| (I\d+) \|", PAGE.read_text(), re.MULTILINE))
    assert {*VIOLATED.values()} <= explained
