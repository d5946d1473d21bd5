"""Certificate files named in a configuration, replaced by their content before validation."""

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
    """Replace the names of certificate files by their content; yield a problem for each unreadable file.

    `root`: base of relative paths. A value with a problem is removed, so that the rest can be validated.
    """
    yield from _read_in(document.get(_SECTION), (), root)


def _read_in(part: Any, path: tuple[str | int, ...], root: Path) -> Iterator[Problem]:
    if isinstance(part, list):
        for index, each in enumerate(part):
            yield from _read_in(each, (*path, index), root)
    if not isinstance(part, dict):
        return
    for step, each in [*part.items()]:
        if step != _FIELD or not isinstance(each, dict):
            yield from _read_in(each, (*path, step), root)
            continue
        del part[step]
        reason: object = "it names no file"
        if each.keys() == {"file"} and isinstance(each["file"], str):
            try:
                part[step] = base64.b64encode((root / each["file"]).read_bytes()).decode()
                continue
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", error)
        yield Problem(
            config_path(_SECTION, *path, step),
            f"its certificates cannot be read ({reason})",
            "write {file: PATH} of a file in PEM, relative to Pulumi.yaml, or their base64",
        )
