"""Property values on the wire."""

import pytest
from google.protobuf import struct_pb2
from google.protobuf.json_format import MessageToDict, ParseDict
from pulumi_sandbox.protocol.values import (
    UNKNOWN,
    Json,
    Properties,
    Secret,
    Value,
)
from pulumi_sandbox.protocol.wire import decode, encode

_SIGNATURE = "4dabf18193072939515e22adb298388d"
_URN = "urn:pulumi:dev::shop::a:b:C::x"


def _struct(document: dict[str, Json]) -> struct_pb2.Struct:
    return ParseDict(document, struct_pb2.Struct())


_FORMS: list[tuple[str, Json, Value]] = [
    ("secret", {_SIGNATURE: "1b47061264138c4ac30d75fd1eb44270", "value": {"a": [1]}}, Secret({"a": [1]})),
    ("unknown", "04da6b54-80e4-46f7-96ec-b56ff0331ba9", UNKNOWN),
    (
        "asset",
        {_SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "text": "hi", "hash": "ab"},
        {_SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "text": "hi", "hash": "ab"},
    ),
]


@pytest.mark.parametrize(("form", "value"), [pytest.param(*each[1:], id=each[0]) for each in _FORMS])
def test_each_special_value_has_its_form(form: Json, value: Value):
    assert decode(_struct({"it": form, "in": [form]})) == {"it": value, "in": [value]}
    assert MessageToDict(encode({"it": value})) == {"it": form}


@pytest.mark.parametrize(
    "sentinel",
    [
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    ],
)
def test_all_seven_unknowns_are_treated_alike(sentinel: str):
    assert decode(_struct({"it": sentinel})) == {"it": UNKNOWN}


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        pytest.param({"value": 1}, 1, id="known"),
        pytest.param({"value": 1, "secret": True}, Secret(1), id="known and secret"),
        pytest.param({}, UNKNOWN, id="unknown"),
        pytest.param({"secret": True, "dependencies": [_URN]}, Secret(UNKNOWN), id="unknown and secret"),
    ],
)
def test_output_values_become_secrets_and_unknowns(fields: dict[str, Json], value: Value):
    output: Json = {_SIGNATURE: "d0e6a833031e9bbcd3f4e8bde6ca49a4", **fields}
    assert decode(_struct({"it": output})) == {"it": value}


def test_whole_doubles_become_integers_and_others_stay():
    decoded = decode(_struct({"whole": 3.0, "part": 3.5, "huge": 1e15}))
    assert {key: type(value) for key, value in decoded.items()} == {"whole": int, "part": float, "huge": int}


def test_keys_come_in_one_order_whatever_the_message_does():
    decoded = decode(_struct({"b": {"z": 1, "y": 2}, "a": 1, "c": 1}))
    assert [*decoded] == ["a", "b", "c"]
    assert str(decoded["b"]) == "{'y': 2, 'z': 1}"


def test_empty_objects_and_lists_are_sent_as_such():
    sent: Properties = {"object": {}, "list": [], "null": None, "text": "", "zero": 0, "no": False}
    assert decode(encode(sent)) == sent
