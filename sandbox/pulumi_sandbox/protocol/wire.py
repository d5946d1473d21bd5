"""Property values as in messages and states: JSON with the marks of Pulumi's SDKs."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from google.protobuf import struct_pb2
from google.protobuf.json_format import MessageToDict, ParseDict

from pulumi_sandbox.protocol.values import UNKNOWN, Json, Properties, Secret, Unknown, Value

KEY: Final = "4dabf18193072939515e22adb298388d"
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - the public mark of a secret, not one
OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"

UNKNOWN_MARK: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
UNKNOWNS: Final = frozenset(
    {
        UNKNOWN_MARK,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)


SecretWriter: TypeAlias = Callable[[Secret], Json]
SecretReader: TypeAlias = Callable[[Mapping[str, Json], str], Value]
"""Takes the tagged object of a secret and its path (keys joined by `/`), and returns its value."""


def tag(value: Value, write_secret: SecretWriter) -> Json:
    """Return a value as JSON; an unknown becomes its marker string."""
    match value:
        case list():
            return [tag(item, write_secret) for item in value]
        case dict():
            return {key: tag(item, write_secret) for key, item in value.items()}
        case Secret():
            return write_secret(value)
        case Unknown():
            return UNKNOWN_MARK
        case _:
            return value


def untag(json: Json, read_secret: SecretReader, place: str = "") -> Value:
    """Parse a value from JSON; whole numbers become integers, as the CLI writes them."""
    match json:
        case str() if json in UNKNOWNS:
            return UNKNOWN
        case float() if json.is_integer():
            return int(json)
        case list():
            return [untag(item, read_secret, f"{place}/{index}") for index, item in enumerate(json)]
        case dict():
            return _untag_object(json, read_secret, place)
        case _:
            return json


def _untag_object(json: Mapping[str, Json], read_secret: SecretReader, place: str) -> Value:
    if json.get(KEY) == SECRET:
        return read_secret(json, place)
    if json.get(KEY) == OUTPUT:
        value = untag(json["value"], read_secret, place) if "value" in json else UNKNOWN
        return Secret(value) if json.get("secret") else value
    return {key: untag(json[key], read_secret, f"{place}/{key}") for key in sorted(json)}


def decode(struct: struct_pb2.Struct) -> Properties:
    """Return the properties in a message, sorted by key, as messages have no order.

    Output values become secrets and unknowns, without their dependencies.
    """
    return cast("Properties", untag(MessageToDict(struct), _read_secret))


def _read_secret(json: Mapping[str, Json], place: str) -> Value:
    return Secret(untag(json.get("value"), _read_secret, place))


def encode(properties: Properties) -> struct_pb2.Struct:
    """Return properties as a message."""
    return ParseDict(cast("dict[str, Any]", tag(properties, _write_secret)), struct_pb2.Struct())


def _write_secret(secret: Secret) -> Json:
    return {KEY: SECRET, "value": tag(secret.value, _write_secret)}
