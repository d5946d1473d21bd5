"""Certificates that a stack's file names instead of holding them: `caBundle: {file: certs/corporate.pem}`."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from components.errors import Problem
from components.naming import config_path

_FIELD: Final = "caBundle"
_SECTION: Final = "secretStores"


def read_certificates(document: dict[str, Any], root: Path) -> Iterator[Problem]:
    """Put the certificates of files where a configuration names them, and yield those that cannot be read.

    root: what paths are relative to. A part with a problem is taken out, so that the rest can be judged.
    """
    yield from _read_in(document.get(_SECTION), (), root)


def _read_in(part: Any, path: tuple[str | int, ...], root: Path) -> Iterator[Problem]:
    if isinstance(part, list):
        for index, each in enumerate(part):
            yield from _read_in(each, (*path, index), root)
    elif isinstance(part, dict):
        for name, each in [*part.items()]:
            if name == _FIELD and isinstance(each, dict):
                yield from _read_at(part, (*path, name), root)
            else:
                yield from _read_in(each, (*path, name), root)


def _read_at(around: dict[str, Any], path: tuple[str | int, ...], root: Path) -> Iterator[Problem]:
    try:
        around[_FIELD] = base64.b64encode((root / _file_of(around.pop(_FIELD))).read_bytes()).decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        yield Problem(
            config_path(_SECTION, *path),
            f"its certificates cannot be read ({reason})",
            "write {file: PATH} of a file in PEM, relative to Pulumi.yaml, or their base64",
        )


def _file_of(given: dict[str, Any]) -> str:
    match given:
        case {"file": str(path), **others} if not others:
            return path
        case _:
            raise ValueError("it names no file")
