"""Reading and writing JSON as Go does. The expected texts were compared with Go 1.26's `encoding/json`."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from components.documents import DEEPEST_JSON
from components.errors import CredfleetError
from components.go_json import (
    Numbers,
    key_path,
    read,
    write,
)
from tests.support.cases import tabled

characters = st.characters(exclude_categories=["Cs"])
texts = st.text(characters, max_size=12)
values = st.recursive(
    st.none() | st.booleans() | texts | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def through(text: str, numbers: Numbers = Numbers.FLOAT) -> str:
    return write(read(text.encode(), numbers).value)


def refusal(text: bytes) -> CredfleetError:
    with pytest.raises(CredfleetError) as caught:
        read(text)
    assert caught.value.code == "credentials-invalid"
    return caught.value


def as_floats(value: object) -> object:
    """Return the value another decoder would see: every number a 64-bit float."""
    match value:
        case bool():
            return value
        case int():
            return float(value)
        case list():
            return [as_floats(each) for each in value]
        case dict():
            return {key: as_floats(each) for key, each in value.items()}
        case _:
            return value


def unescaped(text: str) -> str:
    """State what may stand in the output, character by character, without the encoder's own table."""
    for character in text:
        assert character >= " "
        assert character not in "&<>\u2028\u2029"
    return text


@given(values)
@example({"b": 1, "a": {"é": [], "z": {}}})
@example({"\uffff": 1, "\U00010000": 2})
def test_any_value_comes_through_with_its_meaning_sorted_without_blanks_and_escaped(value: object) -> None:
    written = through(json.dumps(value))
    pairs: list[list[str]] = []

    def note(members: list[tuple[str, object]]) -> dict[str, object]:
        pairs.append([key for key, _ in members])
        return dict(members)

    again = json.loads(unescaped(written), object_pairs_hook=note)

    assert as_floats(again) == as_floats(value)
    assert all(keys == sorted(keys, key=str.encode) for keys in pairs)
    assert through(written) == written


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(1e21)
@example(math.nextafter(1e21, 0))
@example(1e-6)
@example(math.nextafter(1e-6, 0))
@example(-0.0)
def test_a_number_keeps_its_bits_and_has_an_exponent_only_outside_1e_6_to_1e21(number: float) -> None:
    written = through(repr(number))

    assert float(written).hex() == number.hex()
    assert ("e" in written) == (number != 0 and (abs(number) < 1e-6 or abs(number) >= 1e21))
    mantissa, _, exponent = written.partition("e")
    digits = mantissa.lstrip("-").replace(".", "").strip("0")
    assert len(digits) <= len(repr(number).partition("e")[0].lstrip("-").replace(".", "").strip("0"))
    assert not mantissa.endswith((".", ".0"))
    assert not exponent.lstrip("+-").startswith("0")


@tabled("given_, written")
def test_a_number_is_written_in_gos_format_of_a_64_bit_float(given_: str, written: str) -> None:
    assert through(given_) == written


@tabled("given_, written")
def test_exact_numbers_keep_every_digit_of_an_integer_and_round_the_rest(given_: str, written: str) -> None:
    document = read(given_.encode(), Numbers.EXACT)

    assert write(document.value) == written
    assert document.remarks == ()


def test_an_integer_that_the_float_rounds_is_remarked_by_its_path_without_its_digits() -> None:
    (remark,) = read(b'{"ids": [1, 9007199254740993, 1e21, 9007199254740992]}').remarks

    assert remark.place == "ids[1]"
    assert "900719" not in str(remark)


@tabled("given_, written")
def test_half_a_surrogate_pair_becomes_the_replacement_character_and_is_remarked(
    given_: str, written: str
) -> None:
    document = read(given_.encode())

    assert write(document.value) == written
    assert len(document.remarks) == 1


def test_of_a_repeated_key_the_last_counts_at_every_level_and_each_is_remarked() -> None:
    document = read(b'{"a": {"b": 1, "b": {"d": 4}}, "a": {"b": 2, "b": 3}}')

    assert write(document.value) == '{"a":{"b":3}}'
    assert [remark.place for remark in document.remarks] == ["a.b", "a", "a.b"]


@tabled("text, place")
def test_what_go_refuses_is_refused_by_its_path(text: str, place: str) -> None:
    assert refusal(text.encode()).place == place


def test_bytes_that_are_no_utf_8_are_refused_and_not_replaced() -> None:
    assert "not UTF-8" in refusal(b'{"a": "caf\xe9"}').problem


@given(st.text(characters, min_size=1), st.integers(0, 40))
def test_a_refusal_never_holds_a_value(noise: str, cut: int) -> None:
    text = f'{{"user": "{{[hunter2", "list": [1, 2]}}{noise}'.encode()
    damaged = (text[:cut] + text[cut + 1 :]) + b"\xff"
    assert b"hunter2" in text

    assert "hunter2" not in str(refusal(damaged))
    assert "hunter2" not in str(refusal(damaged[:-1] + b"]"))


def test_nesting_is_read_up_to_its_limit_and_refused_beyond_brackets_in_strings_not_counted() -> None:
    deepest = f"{'[' * DEEPEST_JSON}{']' * DEEPEST_JSON}"

    assert through(deepest) == deepest
    assert through(f'"{"[" * 5000}\\"{{"') == f'"{"[" * 5000}\\"{{"'
    assert "nested deeper" in refusal(f"[{deepest}]".encode()).problem
    assert "nested deeper" in refusal(b"[" * 100_000).problem


def test_a_path_is_told_in_one_line_whatever_the_key() -> None:
    assert key_path(("user", "my key", 0, "é", "a\x1b\n")) == 'user["my key"][0]["é"]["a\\u001b\\n"]'
    assert key_path(("x" * 300,)) == f'["{"x" * 60}…"]'


def test_neither_a_document_nor_a_number_shows_its_content_when_printed() -> None:
    document = read(b'{"pin": 4711, "password": "hunter2"}')

    assert write(document.value) == '{"password":"hunter2","pin":4711}'
    assert "hunter2" not in repr(document)
    assert "4711" not in repr(document)
    assert "4711" not in repr(document.value)
