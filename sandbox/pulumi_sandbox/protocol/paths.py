"""Property paths: how options and diffs name a place inside a resource's properties (`a.b[0]["c.d"].*`)."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Secret, Value

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
                problem=f"it cannot be read from character {at + 1} on",
                fix='write names with dots, indices and odd names in brackets: a.b[0]["c.d"]',
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
