"""Property values as gRPC messages carry them: protobuf Structs with tagged objects (engine facts 2.4)."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf import struct_pb2

from sandbox.engine import signatures
from sandbox.engine.tagged import tag, untag
from sandbox.engine.values import Json, Properties, ResourceReference, Secret, Value, without_unknowns


def decode(struct: struct_pb2.Struct) -> Properties:
    """Read properties from a message, sorted by key, since messages have no order.

    Output values become secrets and unknowns, without their dependencies.
    """
    return {key: untag(value, _read_secret, key) for key, value in _object(struct).items()}


def encode(properties: Properties, *, secrets: bool, resources: bool, unknowns: bool) -> struct_pb2.Struct:
    """Write properties for a receiver that may not take everything.

    Args:
        properties: What to send.
        secrets: Whether it takes secrets; else they are sent bare.
        resources: Whether it takes resource references; else it gets their id, or the URN of a component.
        unknowns: Whether it takes unknowns; else whatever is unknown is left out.
    """
    sent = {key: _bare(value, secrets=secrets, resources=resources) for key, value in properties.items()}
    if not unknowns:
        sent = without_unknowns(sent)
    struct = struct_pb2.Struct()
    _fill(struct, {key: tag(value, _write_secret) for key, value in sent.items()})
    return struct


def _bare(value: Value, *, secrets: bool, resources: bool) -> Value:
    """Replace what the receiver does not take."""
    match value:
        case list():
            return [_bare(item, secrets=secrets, resources=resources) for item in value]
        case dict():
            return {key: _bare(item, secrets=secrets, resources=resources) for key, item in value.items()}
        case Secret():
            inner = _bare(value.value, secrets=secrets, resources=resources)
            return Secret(inner) if secrets else inner
        case ResourceReference() if not resources:
            return value.urn if value.id is None else value.id
        case _:
            return value


def _write_secret(secret: Secret, place: str) -> Json:
    return {signatures.KEY: signatures.SECRET, "value": tag(secret.value, _write_secret, place)}


def _read_secret(json: Mapping[str, Json], place: str) -> Value:
    return Secret(untag(json.get("value"), _read_secret, place))


def _fill(struct: struct_pb2.Struct, properties: Mapping[str, Json]) -> None:
    for key, value in properties.items():
        _set(struct.fields[key], value)


def _set(target: struct_pb2.Value, value: Json) -> None:
    match value:
        case None:
            target.null_value = struct_pb2.NULL_VALUE
        case bool():
            target.bool_value = value
        case str():
            target.string_value = value
        case list():
            target.list_value.SetInParent()
            for item in value:
                _set(target.list_value.values.add(), item)
        case dict():
            target.struct_value.SetInParent()
            _fill(target.struct_value, value)
        case _:
            target.number_value = value


def _object(struct: struct_pb2.Struct) -> dict[str, Json]:
    return {key: _json(struct.fields[key]) for key in sorted(struct.fields)}


def _json(value: struct_pb2.Value) -> Json:
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
            return _object(value.struct_value)
        case _:
            return None
