"""What a property may be between a program, its providers and the state, and the questions asked about it.

Values are never changed in place: every function that alters one returns a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is encrypted at rest and never shown."""

    value: Value = field(repr=False)

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that only an update can tell."""

    def __repr__(self) -> str:
        return "[unknown]"


Plain: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
Value: TypeAlias = "Plain | Secret | Unknown"
"""Assets and references to resources are objects with a signature, as in JSON."""
Properties: TypeAlias = "dict[str, Value]"
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MASK: Final = "[secret]"
UNKNOWN: Final = Unknown()


def contains_secret(value: Value) -> bool:
    """Whether a secret is in the value, at any depth."""
    return _any(value, lambda part: isinstance(part, Secret))


def contains_unknown(value: Value) -> bool:
    """Whether an unknown is in the value, at any depth, inside secrets too."""
    return _any(value, lambda part: isinstance(part, Unknown))


def reveal(value: Value) -> Value:
    """Return the value with every secret, at any depth, replaced by what it holds."""
    if isinstance(value, Secret):
        return reveal(value.value)
    return _map(value, reveal)


def conceal(value: Value) -> Value:
    """Return the value as a secret; one that is a secret already stays as it is."""
    return value if isinstance(value, Secret) else Secret(value)


def conceal_keys(properties: Properties, keys: Iterable[str]) -> Properties:
    """Return the properties with those named in `keys` made secret; absent keys are passed over."""
    chosen = frozenset(keys)
    return {key: conceal(value) if key in chosen else value for key, value in properties.items()}


def conceal_like(properties: Properties, model: Properties) -> Properties:
    """Make secret again what a receiver of plain values returned, wherever `model` has a secret of that name.

    Objects are compared key by key, so a secret deep in an input conceals only its
    namesake in the output.
    """
    return {
        key: _conceal_like(value, model[key]) if key in model else value for key, value in properties.items()
    }


def text(value: Value) -> str:
    """Return a text as it is, anything else as the empty one."""
    return value if isinstance(value, str) else ""


def masked(value: Value) -> Json:
    """Return the value as JSON that may be shown: secrets are `[secret]`, at any depth."""
    match value:
        case Secret() | Unknown():
            return repr(value)
        case dict():
            return {key: masked(item) for key, item in value.items()}
        case list():
            return [masked(item) for item in value]
        case _:
            return value


def equal(left: Value, right: Value) -> bool:
    """Compare by content: secrets count as what they hold, a null property as an absent one.

    Numbers equal numbers only (`True` is not `1`), two unknowns are equal.
    """
    left, right = _bare(left), _bare(right)
    if isinstance(left, dict) and isinstance(right, dict):
        return all(equal(left.get(key), right.get(key)) for key in left.keys() | right.keys())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _bare(value: Value) -> Value:
    while isinstance(value, Secret):
        value = value.value
    return value


def _any(value: Value, test: Callable[[Value], bool]) -> bool:
    if test(value):
        return True
    match value:
        case Secret():
            return _any(value.value, test)
        case list():
            return any(_any(item, test) for item in value)
        case dict():
            return any(_any(item, test) for item in value.values())
        case _:
            return False


def _map(value: Value, change: Callable[[Value], Value]) -> Value:
    if isinstance(value, list):
        return [change(item) for item in value]
    if isinstance(value, dict):
        return {key: change(item) for key, item in value.items()}
    return value


def _conceal_like(value: Value, model: Value) -> Value:
    if isinstance(model, Secret):
        return conceal(value)
    if isinstance(value, dict) and isinstance(model, dict):
        return conceal_like(value, model)
    if isinstance(value, list) and isinstance(model, list):
        rest = value[len(model) :]
        return [_conceal_like(item, like) for item, like in zip(value, model, strict=False)] + rest
    return value
