"""Property paths and the rule of ignoreChanges (sandbox/docs/engine-facts.md, steps)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.paths import Path, covers, get, parse, render, reset
from pulumi_sandbox.protocol.values import Properties, Secret, Value

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
    assert parse(text) == path


@pytest.mark.parametrize("text", [".a", "a.", "a[0", 'a["b', "a[x]", "a[-1]", "a..b"])
def test_a_path_that_cannot_be_read_is_refused_with_its_place(text: str):
    with pytest.raises(SandboxError) as caught:
        parse(text)
    assert caught.value.code == "path-invalid"
    assert repr(text) in caught.value.place


@given(st.lists(_elements, min_size=1, max_size=5).map(tuple))
def test_a_rendered_path_reads_back_the_same(path: Path):
    assert parse(render(path)) == path


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
    assert covers(parse(pattern), parse(path)) is result


def test_a_place_is_found_through_secrets():
    assert get({"a": Secret({"b": [1, Secret("x")]})}, parse("a.b[0]")) == (True, 1)


@pytest.mark.parametrize("path", ["a.b", "a[0]", "l[2]", "missing"])
def test_a_place_that_is_not_there_is_told_from_a_null(path: str):
    document: Value = {"a": None, "l": [1, 2]}
    assert get(document, parse(path)) == (False, None)
    assert get(document, parse("a")) == (True, None)


@pytest.mark.parametrize(
    ("path", "old", "new", "result"),
    [
        pytest.param("a", {"a": 1}, {"a": 2, "b": 3}, {"a": 1, "b": 3}, id="the old value is kept"),
        pytest.param("a", {}, {"a": 2, "b": 3}, {"b": 3}, id="what was absent stays absent"),
        pytest.param("a", {"a": 1}, {}, {"a": 1}, id="what was there stays there"),
        pytest.param("a.b", {"a": {"b": 1}}, {"a": {"b": 2, "c": 3}}, {"a": {"b": 1, "c": 3}}, id="nested"),
        pytest.param("a.b", {}, {"a": {"b": 2}}, {"a": {}}, id="nested and absent"),
        pytest.param("a.b", {"a": {"b": 1}}, {}, None, id="the way is missing in the new"),
        pytest.param("a.b", {"a": 1}, {"a": 2}, {"a": 2}, id="no objects on either side"),
        pytest.param("a.b", {"a": {"b": 1}}, {"a": 2}, None, id="an object on one side only"),
        pytest.param("l[0]", {"l": [1, 2]}, {"l": [8, 9]}, {"l": [1, 9]}, id="an element"),
        pytest.param("l[5]", {"l": [1]}, {"l": [9]}, {"l": [9]}, id="an element on neither side"),
        pytest.param("l[1]", {"l": [1]}, {"l": [8, 9]}, None, id="an element that would have to go"),
        pytest.param("l[1]", {"l": [1, 2]}, {"l": [8]}, None, id="an element that would have to come"),
        pytest.param("l[0].x", {"l": [1]}, {"l": {}}, None, id="a list on one side only"),
        pytest.param(
            "l[*].x", {"l": [{"x": 1}]}, {"l": [{"x": 2, "y": 3}]}, {"l": [{"x": 1, "y": 3}]}, id="all"
        ),
        pytest.param(
            "l[*].x", {"l": [{"x": 1}]}, {"l": [{"x": 1}, {"x": 2}]}, None, id="lists of other lengths"
        ),
        pytest.param("l[*]", {"l": [1, 2]}, {"l": [8, 9]}, {"l": [1, 2]}, id="all elements"),
        pytest.param("*", {"a": 1}, {"a": 2, "b": 3}, {"a": 1}, id="all keys"),
        pytest.param(
            "m.*.x", {"m": {"k": {"x": 1}}}, {"m": {"k": {"x": 2}}}, {"m": {"k": {"x": 1}}}, id="below all"
        ),
        pytest.param("m.*.x", {"m": {"k": {"x": 1}}}, {"m": {}}, None, id="a key of all is missing"),
        pytest.param(
            "a.b", {"a": Secret({"b": 1})}, {"a": {"b": 2}}, {"a": {"b": Secret(1)}}, id="a secret stays one"
        ),
        pytest.param(
            "a.b", {"a": {"b": 1}}, {"a": Secret({"b": 2})}, {"a": Secret({"b": 1})}, id="inside a new secret"
        ),
        pytest.param(
            "a.b",
            {"a": Secret({"b": 1})},
            {"a": Secret({"b": 2})},
            {"a": Secret({"b": 1})},
            id="secret on both sides",
        ),
    ],
)
def test_ignored_changes_keep_the_old_value_or_are_told_impossible(
    path: str, old: Properties, new: Properties, result: Properties | None
):
    before = repr((old, new))
    assert reset(old, new, parse(path)) == result
    assert repr((old, new)) == before


@given(st.lists(_elements, min_size=1, max_size=3).map(tuple))
def test_ignoring_a_change_that_is_none_changes_nothing(path: Path):
    same: Properties = {"a": {"b": [1, {"c": 2}]}, "l": [1, 2]}
    assert reset(same, same, path) in (same, None)
