"""A property of a value, byte for byte.

That External Secrets Operator takes the same is asked in tests/witness/test_gjson.py.
"""

import pytest

from components.errors import StoreError
from components.secret_stores.clients.client import property_of
from components.secret_stores.json_fields import field_of, object_fields
from tests.support.cases import cases


@cases(
    "written, taken",
    {
        "text": (r'"x"', b"x"),
        "text-beyond-ascii": ('"é"', "é".encode()),
        "escapes": (r'"\u00e9\n\/"', b"\xc3\xa9\n/"),
        "pair": (r'"\ud83d\ude00"', "😀".encode()),
        "object-with-its-blanks": ('{"b" : [1, 2.50]}', b'{"b" : [1, 2.50]}'),
        "whole-number": ("123456789012345678901234567890", b"123456789012345678901234567890"),
        "zero-at-the-end": ("1.10", b"1.1"),
        "many-digits": ("12345678901234567890.5", b"12345678901234567000"),
        "exponent": ("1e-7", b"0.0000001"),
        "too-large": ("1e400", b"+Inf"),
        "null": ("null", b""),
        "true": ("true", b"true"),
    },
)
def test_a_property_is_taken_as_the_operator_takes_it(written: str, taken: bytes) -> None:
    content = f'{{"z": {{"a": 0}}, "a" : {written} , "a": "second"}}'.encode()
    assert property_of(content, "a", "it") == taken


@pytest.mark.parametrize(
    "content",
    [b"", b"text", b'"a"', b'{"b":1}', b'{"b":{"a":1}}', b'{"a"', b'{"a":', b'{"a":"x', b'{"a', b"[1]"],
)
def test_what_is_no_json_object_with_the_field_is_told_without_its_text(content: bytes) -> None:
    with pytest.raises(StoreError) as caught:
        property_of(content, "a", "it")
    assert (caught.value.code, caught.value.problem) == ("absent", "it is not a JSON object with a field a")


@pytest.mark.parametrize(
    "content",
    [
        b'{"a":1',
        b'{"a":1,}',
        b'{"a":1} x',
        b'{"a":01}',
        b'x: {"a":true}',
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":"b\tc"}',
        b'{"a":NaN}',
        b'{"a":"\\x"}',
        b'{"a":"\xff"}',
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_is_no_json_has_no_property_and_no_fields(content: bytes) -> None:
    assert (field_of(content, "a"), object_fields(content)) == (None, None)


def test_half_of_a_surrogate_pair_is_no_property_and_a_mark_among_fields() -> None:
    content = rb'{"a": "\ud800\u0041b"}'
    assert (field_of(content, "a"), object_fields(content)) == (None, {"a": "\ufffdAb".encode()})
