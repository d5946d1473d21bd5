"""Inputs in the form the API keeps them in, so that what is declared can be compared with what is live."""

import base64
import binascii
from typing import Final

from pulumi_sandbox.protocol.values import Properties, Value, contains_unknown
from pulumi_sandbox.providers.kubernetes import objects

_READ_ONLY: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "uid",
    }
)


def folded(inputs: Properties) -> Properties:
    """Return the inputs as the API would keep them.

    What only the server writes is left out of the metadata. A Secret's `stringData` becomes base64 in `data`,
    which it overrides, and `data` is written in canonical base64; a Secret with unknown parts waits for them
    to be known. A definition of a kind loses its status and a `preserveUnknownFields: false`, which the API
    drops.
    """
    if isinstance(inputs.get("metadata"), dict):
        inputs = objects.with_metadata(inputs, **dict.fromkeys(_READ_ONLY))
    if objects.is_secret(inputs) and not contains_unknown(inputs):
        return _secret(inputs)
    if objects.is_custom_resource_definition(inputs):
        return _definition(inputs)
    return inputs


def _secret(inputs: Properties) -> Properties:
    data, string_data = inputs.get("data"), inputs.get("stringData")
    if not isinstance(string_data, dict) or not string_data:
        return (
            {**inputs, "data": {key: _canonical(item) for key, item in data.items()}}
            if isinstance(data, dict)
            else inputs
        )
    encoded: Properties = {
        key: base64.b64encode(str(item).encode()).decode() for key, item in string_data.items()
    }
    rest = {key: value for key, value in inputs.items() if key != "stringData"}
    return {**rest, "data": {**(data if isinstance(data, dict) else {}), **encoded}}


def _canonical(item: Value) -> Value:
    if not isinstance(item, str):
        return item
    try:
        return base64.b64encode(base64.b64decode("".join(item.split()), validate=True)).decode()
    except (binascii.Error, ValueError):
        return item


def _definition(inputs: Properties) -> Properties:
    spec = inputs.get("spec")
    if isinstance(spec, dict) and spec.get("preserveUnknownFields") is False:
        inputs = {
            **inputs,
            "spec": {key: value for key, value in spec.items() if key != "preserveUnknownFields"},
        }
    return {key: value for key, value in inputs.items() if key != "status"}
