"""One entry of a file that people write, of the type that it has to have."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeVar

from pulumi_sandbox.documents import Document, Step, Unreadable
from pulumi_sandbox.protocol.paths import render

_KINDS: Final = {str: "a text", bool: "true or false", list: "a list", dict: "a map"}

_T = TypeVar("_T", str, bool, list[Any], dict[str, Any])


def entry(written: Document, default: _T, *path: Step) -> _T:
    """Return what stands at a path of the file, or the default, of whose type it has to be.

    Raises Unreadable.
    """
    value: Any = written.data
    for step in path:
        if isinstance(value, list) and isinstance(step, int):
            value = value[step]
        else:
            value = value.get(step) if isinstance(value, dict) else None
    if value is None:
        return default
    if type(value) is not type(default):
        kind = _KINDS[type(default)]
        raise Unreadable(
            written.at(path), f"{render(path)} is not {kind}", f"write {kind} there, or remove it"
        )
    return value


def folder(written: Document, directory: Path, default: str, *path: Step) -> Path:
    """Return the folder that an entry names, whether it is there or not. Raises Unreadable."""
    named = directory / entry(written, default, *path)
    try:
        named.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError):
        raise Unreadable(
            written.at(path),
            f"{render(path)} names no folder that could be looked for",
            "name a folder there",
        ) from None
    return named
