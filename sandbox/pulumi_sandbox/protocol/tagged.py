"""Special values written as plain JSON with a signature key: the one encoding of the wire and of the state.

The two differ only in how a secret is written, which the caller decides.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pulumi_sandbox.protocol import signatures
from pulumi_sandbox.protocol.values import UNKNOWN, Json, Secret, Unknown, Value

SecretWriter: TypeAlias = Callable[[Secret], Json]
SecretReader: TypeAlias = Callable[[Mapping[str, Json], str], Value]
"""Takes the tagged object of a secret and its place (the keys above it, joined by `/`), returns the value."""


def tag(value: Value, write_secret: SecretWriter) -> Json:
    """Write a value as JSON; an unknown is the string that stands for one."""
    match value:
        case list():
            return [tag(item, write_secret) for item in value]
        case dict():
            return {key: tag(item, write_secret) for key, item in value.items()}
        case Secret():
            return write_secret(value)
        case Unknown():
            return signatures.UNKNOWN
        case _:
            return value


def untag(json: Json, read_secret: SecretReader, place: str = "") -> Value:
    """Read a value back; whole numbers become integers, as the CLI writes them."""
    match json:
        case str() if json in signatures.UNKNOWNS:
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
    if json.get(signatures.KEY) == signatures.SECRET:
        return read_secret(json, place)
    if json.get(signatures.KEY) == signatures.OUTPUT:
        value = untag(json["value"], read_secret, place) if "value" in json else UNKNOWN
        return Secret(value) if json.get("secret") else value
    return {key: untag(item, read_secret, f"{place}/{key}") for key, item in json.items()}
