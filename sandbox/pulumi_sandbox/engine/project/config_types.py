"""Keys of configuration as they are written, and types of values, as the genuine CLI judges both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pulumi_sandbox.protocol.values import Json

TYPES: Final = ("string", "integer", "boolean", "array", "object")

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


def full_key(project: str, key: str) -> str:
    """Return a key with its namespace, by default the project's; `NAMESPACE:config:NAME` is of old."""
    namespace, _, name = key.partition(":config:")
    if name and ":" not in namespace + name:
        return f"{namespace}:{name}"
    return key if ":" in key else f"{project}:{key}"


def fits(type_: str, items: Mapping[str, Any] | None, value: Json) -> bool:
    """Whether a value is of a type; items: the type of an array's elements, itself `{type, items}`."""
    match type_, value:
        case ("string", str()) | ("object", dict()) | ("boolean", bool() | "true" | "false"):
            return True
        case "integer", str():
            return _INTEGER.fullmatch(value) is not None and -(2**63) <= int(value) < 2**63
        case "integer", int() | float():
            return not isinstance(value, bool) and (isinstance(value, int) or value.is_integer())
        case "array", list() if items:
            return all(fits(items["type"], items.get("items"), item) for item in value)
        case _:
            return False


def type_name(type_: str, items: Mapping[str, Any] | None) -> str:
    """Return how a person reads a type."""
    return f"array<{type_name(items['type'], items.get('items'))}>" if type_ == "array" and items else type_
