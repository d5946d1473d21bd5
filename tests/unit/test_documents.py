"""What a document means and where each part of it stands, and what is refused with place, problem and fix.

That plain scalars mean what the genuine CLI takes them for is held by its tests in operations/stack.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.documents import (
    DEEPEST,
    DEEPEST_JSON,
    Document,
    TooDeep,
    Unreadable,
    read_all,
    read_json,
    read_one,
)
from tests.support.cases import cases, table

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
HIDDEN = "hunter2"


def read(text: str | bytes) -> Document:
    return read_one(text, "file")


@cases(
    "text, value",
    [
        *table(__file__, "test_a_document_is_read_as_the_genuine_cli_reads_it"),
        ("\ufeffa: é".encode(), {"a": "é"}),
    ],
)
def test_a_document_is_read_as_the_genuine_cli_reads_it(text: str | bytes, value: Any):
    assert read(text).data == value


@cases(
    "text, at, problem",
    [
        *table(__file__, "test_what_cannot_be_read_is_refused_where_it_stands_in_words_of_ours"),
        ("a: " + "9" * 5000, "1:4", "it is a whole number of more digits"),
        ("a: \x07", "1:4", "the character U+0007"),
        ("a: hunter2\nä: 1".encode("latin1"), "2:1", "it is not UTF-8 text"),
        ("a: 1".encode("utf-16"), "1:1", "it is not UTF-8 text"),
        (b"\xef\xbb\xbfa\xff", "1:2", "it is not UTF-8 text"),
        (b"\xef\xbb\xbfa: 1\nb: \xff", "2:4", "it is not UTF-8 text"),
        ("[" * 3000, f"1:{DEEPEST + 1}", "it is nested more than"),
        (
            "".join(f"{' ' * level}a:\n" for level in range(1500)),
            f"{DEEPEST + 1}:{DEEPEST + 1}",
            "it is nested",
        ),
        (BOMB, "5:8", "aliases repeat more than"),
    ],
)
def test_what_cannot_be_read_is_refused_where_it_stands_in_words_of_ours(
    text: str | bytes, at: str, problem: str
):
    with pytest.raises(Unreadable) as caught:
        read(text)
    assert caught.value.place == f"file:{at}"
    assert caught.value.problem.startswith(problem)
    assert caught.value.fix
    assert HIDDEN not in str(caught.value)


def test_every_part_has_its_place_and_what_is_missing_that_of_what_is_around_it():
    document = read("# first\na:\n  b: [1, {c: 2}]\n  d: &d {e: 3}\nf:\n  <<: *d\n")
    places = {
        (): "2:1",
        ("a",): "2:1",
        ("a", "b"): "3:3",
        ("a", "b", 1): "3:10",
        ("a", "b", 1, "c"): "3:11",
        ("a", "b", 7): "3:3",
        ("a", "x", "y"): "2:1",
        ("f", "e"): "6:7",
    }
    assert {path: str(document.at(path)).removeprefix("file:") for path in places} == places


def test_several_documents_are_read_one_by_one():
    assert [(each.data, each.mark.line) for each in read_all("a: 1\n---\n---\nb: 2\n", "file")] == [
        ({"a": 1}, 1),
        (None, 3),
        ({"b": 2}, 4),
    ]


@given(
    st.text(alphabet="ab01:-?[]{}&*!|>'\"%@`,#~<=. \n\t\\é\x00\ud800", max_size=60) | st.binary(max_size=60)
)
def test_whatever_is_given_is_read_or_refused_with_a_place(text: str | bytes):
    try:
        marks = [document.mark for document in read_all(text, "file")]
    except Unreadable as error:
        marks = [error.mark]
    assert all(mark.file == "file" and mark.line >= 1 and mark.column >= 1 for mark in marks)


DEEP = f"{'[' * DEEPEST_JSON}{']' * DEEPEST_JSON}"


@pytest.mark.parametrize(
    "text",
    [DEEP, DEEP.encode("utf-16"), f"[{','.join(['{}'] * 1000)}]", json.dumps("[" * 5000 + '"{')],
    ids=["deepest", "in-another-encoding", "wide", "brackets-in-a-string"],
)
def test_what_is_not_too_deep_is_read_as_json_has_it(text: str | bytes) -> None:
    assert read_json(text) == json.loads(text)


@pytest.mark.parametrize(
    "text", [f"[{DEEP}]", "[" * 100_000, '{"a":' * 100_000, f'["\\"]", [{DEEP}]]'.encode()]
)
def test_what_is_too_deep_is_refused_before_it_is_followed(text: str | bytes) -> None:
    with pytest.raises(TooDeep):
        read_json(text)


@pytest.mark.parametrize("text", ["", "{", "1" * 5000, '"' + '\\"' * 100_000, b"\xff"])
def test_what_is_no_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_json(text)
