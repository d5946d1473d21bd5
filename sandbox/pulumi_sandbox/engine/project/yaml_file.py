"""YAML files that people write: read with their comments, written back with them."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulumi_sandbox import files
from pulumi_sandbox.errors import SandboxError

if TYPE_CHECKING:
    from ruamel.yaml import YAML


def load_yaml(path: Path) -> dict[str, Any]:
    """Return a file's mapping; an empty one for an empty file.

    Raises SandboxError `file-missing`; or `yaml-invalid`, with the line but not its text (a secret?).
    """
    from ruamel.yaml.error import MarkedYAMLError

    try:
        document = _yaml().load(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise SandboxError(
            code="file-missing",
            place=str(path),
            cause="there is no such file",
            mend="run the command in the project's directory, or name the stack that exists",
        ) from None
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        what = (
            "the same key stands twice" if "duplicate key" in str(error.problem) else "it is not valid YAML"
        )
        raise SandboxError(
            code="yaml-invalid", place=f"{path}:{line}", cause=what, mend="correct this line"
        ) from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise SandboxError(
            code="yaml-invalid",
            place=f"{path}:1",
            cause="it holds no mapping",
            mend="write `key: value` lines",
        )
    return document


def save_yaml(path: Path, document: dict[str, Any]) -> None:
    """Replace the file, keeping comments, order and quotes of what was loaded."""
    text = io.StringIO()
    _yaml().dump(document, text)
    files.replace(path, text.getvalue())


@cache
def _yaml() -> YAML:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 2**16  # a ciphertext stays on its line
    return yaml
