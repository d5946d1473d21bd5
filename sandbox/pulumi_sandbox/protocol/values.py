"""Property values between programs, providers and the state, and functions on them.

Values are never changed in place: functions that alter one return a new one. A path names a place inside the
properties of a resource: `a.b[0]["c.d"]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is encrypted at rest and never shown."""

    value: Value = field(repr=False)

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is known only during an update."""

    def __repr__(self) -> str:
        return "[unknown]"


Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | Secret | Unknown | None"
"""Assets and resource references are objects with a signature, as in JSON."""
Properties: TypeAlias = "dict[str, Value]"
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MASK: Final = "[secret]"
UNKNOWN: Final = Unknown()


def walk(value: Value, *, is_secret: bool = False) -> Iterator[tuple[Value, bool]]:
    """Yield the value and all nested values, and whether each is inside a secret."""
    yield value, is_secret
    if isinstance(value, Secret):
        yield from walk(value.value, is_secret=True)
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from walk(item, is_secret=is_secret)


def contains_secret(value: Value) -> bool:
    """Return whether the value contains a secret at any depth."""
    return any(isinstance(part, Secret) for part, _ in walk(value))


def contains_unknown(value: Value) -> bool:
    """Return whether the value contains an unknown at any depth, also inside secrets."""
    return any(isinstance(part, Unknown) for part, _ in walk(value))


def reveal(value: Value) -> Value:
    """Return the value with every secret, at any depth, replaced by its content."""
    value = _bare(value)
    if isinstance(value, list):
        return [reveal(item) for item in value]
    if isinstance(value, dict):
        return {key: reveal(item) for key, item in value.items()}
    return value


def conceal(value: Value) -> Value:
    """Return the value as a secret, unless it already is one."""
    return value if isinstance(value, Secret) else Secret(value)


def conceal_keys(properties: Properties, keys: Iterable[str]) -> Properties:
    """Return the properties with those named in `keys` as secrets; absent keys are ignored."""
    chosen = frozenset(keys)
    return {key: conceal(value) if key in chosen else value for key, value in properties.items()}


def conceal_like(properties: Properties, model: Properties) -> Properties:
    """Return plain properties with values as secrets wherever `model` has a secret of that name.

    Objects are compared key by key, so a secret deep in an input only conceals the value of the same name in
    the output.
    """
    return {
        key: _conceal_like(value, model[key]) if key in model else value for key, value in properties.items()
    }


def text(value: Value) -> str:
    """Return a text unchanged, anything else as an empty text."""
    return value if isinstance(value, str) else ""


def mapping(value: Value) -> Properties:
    """Return an object unchanged, anything else as an empty object."""
    return value if isinstance(value, dict) else {}


def mappings(value: Value) -> list[Properties]:
    """Return the objects of a list; empty for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def masked(value: Value) -> Json:
    """Return the value as JSON for display: secrets are `[secret]`, at any depth."""
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
    """Return whether values have equal content: secrets equal their content, null an absent property.

    Numbers only equal numbers (`True` is not `1`), two unknowns are equal.
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


def _conceal_like(value: Value, model: Value) -> Value:
    if isinstance(model, Secret):
        return conceal(value)
    if isinstance(value, dict) and isinstance(model, dict):
        return conceal_like(value, model)
    if isinstance(value, list) and isinstance(model, list):
        rest = value[len(model) :]
        return [_conceal_like(item, like) for item, like in zip(value, model, strict=False)] + rest
    return value


Path: TypeAlias = tuple[str | int, ...]
"""Keys of objects and indices of lists, outermost first; the key `*` matches any of them."""

_ELEMENT: Final = re.compile(
    r"""\.?\["(?P<quoted>(?:\\"|[^"])*)"\] | \.?\[(?P<index>\d+|\*)\] | \.?(?P<name>[^.\[]+)""", re.VERBOSE
)


def parse_path(text: str) -> Path:
    """Parse a path as the engine writes it; the engine rejects invalid ones."""
    elements: list[str | int] = []
    for found in _ELEMENT.finditer(text):
        if found["quoted"] is not None:
            elements.append(found["quoted"].replace('\\"', '"'))
        elif found["index"] is not None:
            elements.append("*" if found["index"] == "*" else int(found["index"]))
        else:
            elements.append(found["name"])
    return tuple(elements)


def render_path(path: Path) -> str:
    """Return a path as text, which `parse_path` can parse."""
    text = ""
    for element in path:
        if isinstance(element, int):
            text += f"[{element}]"
        elif re.fullmatch(r"\w+", element, re.ASCII):
            text += f".{element}" if text else element
        else:
            text += '["' + element.replace('"', '\\"') + '"]'
    return text


def covers(pattern: Path, path: Path) -> bool:
    """Return whether `path` matches `pattern`, or is inside of it."""
    return len(pattern) <= len(path) and all(
        wanted in ("*", element) for wanted, element in zip(pattern, path, strict=False)
    )


def get(value: Value, path: Path) -> tuple[bool, Value]:
    """Return whether a value exists at the path, and the value; also looks inside secrets."""
    for element in path:
        match _bare(value), element:
            case dict() as there, str() if element in there:
                value = there[element]
            case list() as there, int() if element < len(there):
                value = there[element]
            case _:
                return False, None
    return True, value


Kind: TypeAlias = Literal["add", "delete", "update"]


def differences(old: Value, new: Value, path: Path = ()) -> Iterator[tuple[Path, Kind]]:
    """Yield each place where the values differ, and how, in the order of their paths.

    Objects and lists are compared as deep as both sides have them; secrets by their content, so that a value
    that merely became secret is no difference; null equals an absent property.
    """
    old, new = _bare(old), _bare(new)
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from differences(old.get(key), new.get(key), (*path, key))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            if index >= len(new):
                yield (*path, index), "delete"
            elif index >= len(old):
                yield (*path, index), "add"
            else:
                yield from differences(old[index], new[index], (*path, index))
    elif not equal(old, new):
        yield path, "add" if old is None else "delete" if new is None else "update"
