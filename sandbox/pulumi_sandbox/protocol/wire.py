"""Property values as gRPC messages carry them: protobuf Structs with tagged objects.

Every value of every resource passes here several times in each deployment, so each is walked once, message
and value side by side, with no copy in between.
"""

import math
from collections.abc import Mapping

from google.protobuf import struct_pb2

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import signatures
from pulumi_sandbox.protocol.tagged import untag
from pulumi_sandbox.protocol.values import UNKNOWN, Json, Properties, Secret, Value


def decode(struct: struct_pb2.Struct) -> Properties:
    """Read properties from a message, sorted by key, since messages have no order.

    Output values become secrets and unknowns, without their dependencies.
    """
    fields = struct.fields
    return {key: _read(fields[key], key) for key in sorted(fields)}


def encode(properties: Properties) -> struct_pb2.Struct:
    """Write properties."""
    struct = struct_pb2.Struct()
    _fill(struct, properties)
    return struct


def _fill(struct: struct_pb2.Struct, properties: Properties) -> None:
    for key, value in properties.items():
        _write(struct.fields[key], value)


def _write(target: struct_pb2.Value, value: Value) -> None:
    if isinstance(value, str):
        target.string_value = value
    elif isinstance(value, dict):
        target.struct_value.SetInParent()
        _fill(target.struct_value, value)
    elif value is None:
        target.null_value = struct_pb2.NULL_VALUE
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int | float):
        target.number_value = value
    elif isinstance(value, list):
        target.list_value.SetInParent()
        for item in value:
            _write(target.list_value.values.add(), item)
    elif isinstance(value, Secret):
        fields = target.struct_value.fields
        fields[signatures.KEY].string_value = signatures.SECRET
        _write(fields["value"], value.value)
    else:
        target.string_value = signatures.UNKNOWN


def _read(value: struct_pb2.Value, place: str) -> Value:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        text = value.string_value
        return UNKNOWN if text in signatures.UNKNOWNS else text
    if kind == "struct_value":
        fields = value.struct_value.fields
        if signatures.KEY in fields:
            return untag(_json(value), _read_secret, place)
        return {key: _read(fields[key], key) for key in sorted(fields)}
    if kind == "list_value":
        return [_read(item, place) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        if not math.isfinite(number):
            raise SandboxError(
                code="number-not-finite",
                place=f"property {place}" if place else "a property",
                problem=f"it is {number}, which no state can hold",
                fix="give a number, or a text",
            )
        return int(number) if number.is_integer() else number
    return value.bool_value if kind == "bool_value" else None


def _json(value: struct_pb2.Value) -> Json:
    """Return a tagged object as it stands, to be untagged."""
    match value.WhichOneof("kind"):
        case "bool_value":
            return value.bool_value
        case "string_value":
            return value.string_value
        case "number_value":
            return value.number_value
        case "list_value":
            return [_json(item) for item in value.list_value.values]
        case "struct_value":
            fields = value.struct_value.fields
            return {key: _json(fields[key]) for key in sorted(fields)}
        case _:
            return None


def _read_secret(json: Mapping[str, Json], place: str) -> Value:
    return Secret(untag(json.get("value"), _read_secret, place))
