"""A property of a value, byte for byte.

That External Secrets Operator takes the same is asked in tests/witness/test_gjson.py.
"""

import pytest

from components.errors import StoreError
from components.secret_stores.clients.client import property_of
from components.secret_stores.gjson import field_of
from components.secret_stores.json_fields import object_fields
from tests.support.cases import cases


@cases(
    "written, taken",
    {
        "text": (r'"x"', b"x"),
        "text-beyond-ascii": ('"é"', "é".encode()),
        "escapes": (r'"\u00e9\n\/"', b"\xc3\xa9\n/"),
        "pair": (r'"\ud83d\ude00"', "😀".encode()),
        "half-a-pair": (r'"\ud800"', "\ufffd".encode()),
        "half-a-pair-takes-its-neighbour": (r'"\ud800\u0041b"', "\ufffdb".encode()),
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
    assert (caught.value.code, caught.value.cause) == ("absent", "it is no JSON object with a field a")


@pytest.mark.parametrize(
    ("content", "taken"),
    [
        (b'{"a":1', b"1"),
        (b'{"a":1,}', b"1"),
        (b'{"a":1} x', b"1"),
        (b'{"a":01}', b"01"),
        (b'x: {"a":tru}', b"true"),
        (b'\xef\xbb\xbf{"a":"b\tc"}', b"b\tc"),
        (b'{"a":"b\\x"}', b"b"),
        (b'{"a":[1,', b"[1,"),
    ],
)
def test_of_what_is_no_json_the_operator_takes_what_looks_like_some(content: bytes, taken: bytes) -> None:
    assert property_of(content, "a", "it") == taken


def test_nesting_of_any_depth_is_answered() -> None:
    deep = b"[" * 10_000
    assert field_of(b'{"a":' + deep + b"]" * 10_000 + b',"b":1}', "b") == b"1"
    assert object_fields(b'{"a":' + deep[1:] + b"]" * 9_999 + b',"b":1}') is not None
    assert object_fields(b'{"a":' + deep + b"]" * 10_000 + b',"b":1}') is None
