"""What is asked of property values."""

import json

import pytest
from hypothesis import given
from pulumi_sandbox.protocol.values import (
    UNKNOWN,
    Properties,
    Secret,
    Value,
    conceal_keys,
    conceal_like,
    contains_secret,
    contains_unknown,
    equal,
    masked,
    reveal,
)

from sandbox.tests.protocol.values_strategies import values


def test_a_secret_cannot_be_printed_by_accident():
    secret = Secret({"password": "hunter2"})
    assert f"{secret} {secret!r} {[secret]} { ({'k': secret}) }".count("hunter2") == 0


@given(values)
def test_masking_leaves_no_secret_at_any_depth(value: Value):
    shown = masked([Secret({"deep": ["hunter2", value]}), {"in": {"a": [Secret("hunter2")]}}])
    assert "hunter2" not in json.dumps(shown)
    assert shown == ["[secret]", {"in": {"a": ["[secret]"]}}]


@given(values)
def test_a_revealed_value_holds_no_secret_and_counts_as_equal(value: Value):
    assert not contains_secret(reveal(value))
    assert equal(value, reveal(value))
    assert equal(Secret(value), value)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        pytest.param(1, 1.0, True, id="numbers by size"),
        pytest.param(True, 1, False, id="a truth value is no number"),
        pytest.param({"a": None}, {}, True, id="null is absent"),
        pytest.param({"a": False}, {}, False, id="false is not absent"),
        pytest.param([1, 2], [2, 1], False, id="lists in order"),
        pytest.param([Secret("x")], ["x"], True, id="secrets by content"),
        pytest.param(UNKNOWN, UNKNOWN, True, id="unknowns"),
        pytest.param(UNKNOWN, "x", False, id="unknown is not known"),
    ],
)
def test_values_are_compared_by_content(left: Value, right: Value, same: bool):
    assert equal(left, right) is same
    assert equal(right, left) is same


def test_a_receiver_of_plain_values_gets_its_secrets_marked_again_by_name():
    inputs: Properties = {"token": Secret("t"), "spec": {"password": Secret("p"), "user": "u"}, "open": 1}
    returned: Properties = {"token": "t2", "spec": {"password": "p2", "user": "u2"}, "open": 2, "more": "m"}
    assert conceal_like(returned, inputs) == {
        "token": Secret("t2"),
        "spec": {"password": Secret("p2"), "user": "u2"},
        "open": 2,
        "more": "m",
    }


def test_secrets_in_lists_are_marked_again_by_position():
    assert conceal_like({"l": ["a", "b", "c"]}, {"l": ["x", Secret("y")]}) == {"l": ["a", Secret("b"), "c"]}


def test_named_outputs_become_secret_once():
    assert conceal_keys({"a": "x", "b": Secret("y"), "c": 1}, ["a", "b", "absent"]) == {
        "a": Secret("x"),
        "b": Secret("y"),
        "c": 1,
    }


@pytest.mark.parametrize("value", [UNKNOWN, [UNKNOWN], {"a": Secret(UNKNOWN)}], ids=repr)
def test_an_unknown_is_found_wherever_it_hides(value: Value):
    assert contains_unknown(value)
