"""What a live object says about the fields that were declared."""

from __future__ import annotations

import re
from typing import Final

from sandbox.engine.values import Properties, Value
from sandbox.providers.kubernetes import kinds, objects

_FREE_KEYS: Final = frozenset(
    {"annotations", "binaryData", "data", "labels", "matchLabels", "nodeSelector", "parameters", "stringData"}
)
_QUANTITY: Final = re.compile(r"[+-]?\d*\.?\d+([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?")


def declared_part(live: Properties, inputs: Properties) -> Properties:
    """Return what is live of what was declared: the shape of the inputs, with the values of the live object.

    Fields nobody declared are left out, be they defaults or those of other managers: they are no drift. Lists
    are compared place by place. Where the server only keeps another form of what was declared (a quantity
    rewritten, an empty field of a built-in kind dropped) the declared form stands.
    """
    return _object(live, inputs, typed=kinds.is_built_in(objects.text(inputs.get("apiVersion"))))


def _object(live: Properties, inputs: Properties, *, typed: bool) -> Properties:
    """`typed`: the server reads these fields into a type of its own, and writes them in that type's form."""
    part: Properties = {}
    for key, declared in inputs.items():
        if key in live:
            part[key] = _value(live[key], declared, typed=typed and key not in _FREE_KEYS)
        elif typed and _is_empty(declared):
            part[key] = declared
    return part


def _value(live: Value, declared: Value, *, typed: bool) -> Value:
    if isinstance(live, dict) and isinstance(declared, dict):
        return _object(live, declared, typed=typed)
    if isinstance(live, list) and isinstance(declared, list):
        return [_value(item, like, typed=typed) for item, like in zip(live, declared, strict=False)]
    return declared if typed and _is_same_quantity(live, declared) else live


def _is_empty(value: Value) -> bool:
    return value is None or value is False or value == 0 or value in ("", [], {})


def _is_same_quantity(live: Value, declared: Value) -> bool:
    if not isinstance(live, str) or isinstance(declared, bool) or not isinstance(declared, str | int | float):
        return False
    if live == declared or not _QUANTITY.fullmatch(live) or not _QUANTITY.fullmatch(str(declared)):
        return False
    from kubernetes.utils.quantity import parse_quantity

    return parse_quantity(live) == parse_quantity(str(declared))
