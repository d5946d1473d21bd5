"""Which credentials of a stack can be read, and that none of them is ever shown, pickled or copied."""

import base64
import copy
import json
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.credentials import Credentials, Shape, read_credentials
from components.errors import Problem
from tests.support.cases import tabled
from tests.support.recorder import resolve

CANARY = "canary-7f3a"


def credentials(**texts: str) -> Credentials:
    read, problems = read_credentials(json.dumps(texts), secret=True)
    assert problems == ()
    return read


@pytest.mark.parametrize("show", [repr, str, ascii, format])
def test_a_credential_cannot_be_shown(show: Callable[[object], str]) -> None:
    read = credentials(token=CANARY)
    assert read.shape("token") is not None
    assert CANARY not in show(read)


@pytest.mark.parametrize("carry_off", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_credential_can_neither_be_pickled_nor_copied(carry_off: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="neither pickled nor copied"):
        carry_off(credentials(token=CANARY))


@tabled("text, fields, unfit")
def test_validators_see_the_fields_of_a_json_object_and_nothing_else(
    text: str, fields: list[str] | None, unfit: list[str]
) -> None:
    expected = Shape(None if fields is None else tuple(fields), unfit=tuple(unfit))
    assert credentials(it=text).shape("it") == expected


@given(st.dictionaries(st.text(st.characters(codec="ascii", categories=["L"]), min_size=1), st.text()))
def test_a_resource_gets_every_field_byte_for_byte_in_base64(fields: dict[str, str]) -> None:
    fields = {key: value.encode("utf-8", "replace").decode() for key, value in fields.items()}

    held = credentials(it=json.dumps(fields))

    (data,) = resolve(lambda: [held.secret_data("it")])
    assert {key: base64.b64decode(text).decode() for key, text in data.value.items()} == fields


@pytest.mark.parametrize("text", [' {"b": 1, "a": 2, "a": 3}', "plain text", "base64:cGxhaW4gdGV4dA=="])
def test_a_judge_and_a_resource_get_the_bytes_as_they_were_given(text: str) -> None:
    held, given = credentials(it=text), text.encode() if text[0] != "b" else b"plain text"

    (made,) = resolve(lambda: [held.secret("it", bytes.hex)])

    assert held.judged("it", len) == len(given)
    assert (made.value, made.secret) == (given.hex(), True)


def test_an_unreadable_credential_is_not_judged() -> None:
    read, _ = read_credentials(json.dumps({"bad": 5}), secret=True)

    assert read.judged("bad", len) is None


def test_credentials_in_plain_are_refused_without_showing_them() -> None:
    _, (problem,) = read_credentials(json.dumps({"token": CANARY}), secret=False)

    assert problem.place == "credfleet:credentials"
    assert "--secret" in problem.fix
    assert CANARY not in repr(problem)


@tabled("entry, fix")
def test_an_entry_that_is_no_credential_is_named_and_not_shown(entry: object, fix: str) -> None:
    read, problems = read_credentials(json.dumps({"good": "x", "bad": entry}), secret=True)

    assert [problem.place for problem in problems] == ["credfleet:credentials.bad"]
    assert fix in problems[0].fix
    assert CANARY not in repr(problems)
    assert read.names == {"good", "bad"}
    assert read.shape("bad") is None


@pytest.mark.parametrize("text", [f'"{CANARY}"', f'["{CANARY}"]', CANARY])
def test_credentials_that_are_no_map_are_refused_without_showing_them(text: str) -> None:
    read, problems = read_credentials(text, secret=True)

    assert [type(problem) for problem in problems] == [Problem]
    assert CANARY not in repr(problems)
    assert set(read.names) == set()
