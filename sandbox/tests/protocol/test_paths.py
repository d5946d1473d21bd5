"""Property paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Path, Secret, Value, covers, get, parse, render

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
