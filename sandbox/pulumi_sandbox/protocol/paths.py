"""Property paths: how options and diffs name a place inside a resource's properties (`a.b[0]["c.d"].*`)."""

from __future__ import annotations

import re
from typing import Final, TypeAlias, cast

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties, Secret, Value, conceal, reveal

Path: TypeAlias = tuple[str | int, ...]
"""Keys of objects and indices of lists, outermost first; the key `*` stands for any of them."""

_ELEMENT: Final = re.compile(
    r"""\.?\["(?P<quoted>(?:\\"|[^"])*)"\] | \.?\[(?P<index>\d+|\*)\] | \.?(?P<name>[^.\[]+)""", re.VERBOSE
)


def parse(text: str) -> Path:
    """Read a path as the engine writes it.

    Raises SandboxError `path-invalid`, for a bracket or quote left open, an empty name, or a leading dot.
    """
    elements: list[str | int] = []
    at = 0
    while at < len(text):
        found = None if text.startswith(".") else _ELEMENT.match(text, at)
        if found is None:
            raise SandboxError(
                code="path-invalid",
                place=f"property path {text!r}",
                cause=f"it cannot be read from character {at + 1} on",
                mend='write names with dots, indices and odd names in brackets: a.b[0]["c.d"]',
            )
        if found["quoted"] is not None:
            elements.append(found["quoted"].replace('\\"', '"'))
        elif found["index"] is not None:
            elements.append("*" if found["index"] == "*" else int(found["index"]))
        else:
            elements.append(found["name"])
        at = found.end()
    return tuple(elements)


def render(path: Path) -> str:
    """Write a path; `parse` reads it back."""
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
    """Whether `path` is what `pattern` names, or lies inside it."""
    return len(pattern) <= len(path) and all(
        wanted in ("*", element) for wanted, element in zip(pattern, path, strict=False)
    )


def get(value: Value, path: Path) -> tuple[bool, Value]:
    """Return whether there is something at the path, and what; secrets on the way are looked into."""
    for element in path:
        while isinstance(value, Secret):
            value = value.value
        match value, element:
            case dict(), str() if element in value:
                value = value[element]
            case list(), int() if element < len(value):
                value = value[element]
            case _:
                return False, None
    return True, value


def reset(old: Properties, new: Properties, path: Path) -> Properties | None:
    """Return `new` with what lies at `path` taken from `old`: the rule of ignoreChanges.

    None means the path is missing on one side: an element would have to be added or removed on the way.
    A value that was secret in `old` stays secret.
    """
    try:
        return cast(Properties, _reset(old, new, path, secret=False))
    except _PathMissingError:
        return None


class _PathMissingError(Exception):
    pass


def _reset(old: Value, new: Value, path: Path, *, secret: bool) -> Value:
    """Descend on both sides; `secret`: something around `old`, but nothing around `new`, is secret."""
    if isinstance(new, Secret):
        return Secret(_reset(reveal(old), new.value, path, secret=False))
    if isinstance(old, Secret):
        return _reset(old.value, new, path, secret=True)
    element, rest = path[0], path[1:]
    if isinstance(old, dict) and isinstance(new, dict) and isinstance(element, str):
        return _reset_keys(old, new, element, rest, secret=secret)
    if isinstance(old, list) and isinstance(new, list) and (isinstance(element, int) or element == "*"):
        return _reset_items(old, new, element, rest, secret=secret)
    container = dict if isinstance(element, str) else list
    leaf = not rest and isinstance(new, dict | list)
    if leaf if element == "*" else isinstance(old, container) == isinstance(new, container):
        return new
    if not rest and isinstance(element, str) and isinstance(new, dict):
        return {key: item for key, item in new.items() if key != element}
    raise _PathMissingError


def _reset_keys(old: Properties, new: Properties, element: str, rest: Path, *, secret: bool) -> Properties:
    if not rest:
        kept = {} if element == "*" else {key: item for key, item in new.items() if key != element}
        taken = old if element == "*" else {key: item for key, item in old.items() if key == element}
        return kept | {key: conceal(item) if secret else item for key, item in taken.items()}
    result = dict(new)
    for key in old if element == "*" else [element]:
        if key in new:
            result[key] = _reset(old.get(key), new[key], rest, secret=secret)
        elif key in old:
            raise _PathMissingError
    return result


def _reset_items(
    old: list[Value], new: list[Value], element: str | int, rest: Path, *, secret: bool
) -> list[Value]:
    if element == "*":
        if len(old) != len(new):
            raise _PathMissingError
        indices = range(len(old))
    else:
        indices = [int(element)]
    result = list(new)
    for index in indices:
        if index < len(old) and index < len(new):
            taken = conceal(old[index]) if secret else old[index]
            result[index] = _reset(old[index], new[index], rest, secret=secret) if rest else taken
        elif rest or index < len(old) or index < len(new):
            raise _PathMissingError
    return result
