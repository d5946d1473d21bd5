"""Values: what is equal, hidden and revealed; their paths; where two sets of properties differ."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.protocol.values import (
    UNKNOWN,
    Path,
    Properties,
    Secret,
    Value,
    conceal_keys,
    conceal_like,
    contains_secret,
    contains_unknown,
    covers,
    differences,
    equal,
    get,
    masked,
    parse_path,
    render_path,
    reveal,
)

from sandbox.tests.protocol.values_strategies import properties, values


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


_elements = st.one_of(st.text(min_size=1).filter(lambda key: "\\" not in key), st.integers(0, 99))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("root", ("root",)),
        ("root.nested", ("root", "nested")),
        ('root["nested"]', ("root", "nested")),
        ("root.array[0].nested", ("root", "array", 0, "nested")),
        ("root.array[0][1]", ("root", "array", 0, 1)),
        (r'root["key with \"escaped\" quotes"]', ("root", 'key with "escaped" quotes')),
        ('["root key with a ."][100]', ("root key with a .", 100)),
        ("root.array[*].field", ("root", "array", "*", "field")),
        ("foo-bar.x", ("foo-bar", "x")),
        ('old.["c.d"]', ("old", "c.d")),
    ],
)
def test_a_path_is_read_as_the_genuine_engine_reads_it(text: str, path: Path):
    assert parse_path(text) == path


@given(st.lists(_elements, min_size=1, max_size=5).map(tuple))
def test_a_rendered_path_reads_back_the_same(path: Path):
    assert parse_path(render_path(path)) == path


@pytest.mark.parametrize(
    ("pattern", "path", "result"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.b.c[0]", True),
        ("a.b", "a", False),
        ("a[*].x", "a[3].x", True),
        ("a.*", "a.anything.below", True),
        ("*", "a", True),
        ("a[0]", "a[1]", False),
    ],
)
def test_a_pattern_covers_what_it_names_and_all_inside_it(pattern: str, path: str, result: bool):
    assert covers(parse_path(pattern), parse_path(path)) is result


def test_a_place_is_found_through_secrets():
    assert get({"a": Secret({"b": [1, Secret("x")]})}, parse_path("a.b[0]")) == (True, 1)


@pytest.mark.parametrize("path", ["a.b", "a[0]", "l[2]", "missing"])
def test_a_place_that_is_not_there_is_told_from_a_null(path: str):
    document: Value = {"a": None, "l": [1, 2]}
    assert get(document, parse_path(path)) == (False, None)
    assert get(document, parse_path("a")) == (True, None)


def _told(old: Properties, new: Properties) -> list[tuple[str, str]]:
    return [(render_path(path), kind) for path, kind in differences(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param({}, {"a": 1}, [("a", "add")], id="added"),
        pytest.param({"a": 1}, {}, [("a", "delete")], id="deleted"),
        pytest.param({"a": 1}, {"a": 2}, [("a", "update")], id="updated"),
        pytest.param({"a": None}, {}, [], id="null is absent"),
        pytest.param({"a": 1}, {"a": Secret(1)}, [], id="turned secret"),
        pytest.param({"a": Secret({"b": 1})}, {"a": Secret({"b": 2})}, [("a.b", "update")], id="in a secret"),
        pytest.param({"a": 1}, {"a": UNKNOWN}, [("a", "update")], id="turned unknown"),
        pytest.param({"l": [1, 2]}, {"l": [1, 3, 4]}, [("l[1]", "update"), ("l[2]", "add")], id="lists"),
        pytest.param({"l": [1, 2]}, {"l": [1]}, [("l[1]", "delete")], id="shorter list"),
        pytest.param({"m": {"x": 1}}, {"m": [1]}, [("m", "update")], id="another kind"),
        pytest.param({"m": {"c.d": 1}}, {"m": {"c.d": 2}}, [('m["c.d"]', "update")], id="an odd name"),
    ],
)
def test_each_difference_is_told_with_its_place(
    old: Properties, new: Properties, told: list[tuple[str, str]]
):
    assert _told(old, new) == told


@given(properties, properties)
def test_properties_differ_somewhere_exactly_if_they_are_not_equal(old: Properties, new: Properties):
    assert (not [*differences(old, new)]) is equal(old, new)


@given(properties, properties)
def test_differences_mirror_when_the_sides_are_swapped(old: Properties, new: Properties):
    swapped = {"add": "delete", "delete": "add", "update": "update"}
    assert [(path, swapped[kind]) for path, kind in _told(old, new)] == _told(new, old)
