"""YAML files that people write: read as maps, and written back with their comments."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulumi_sandbox import files
from pulumi_sandbox.documents import Document, Unreadable, read_file

if TYPE_CHECKING:
    from ruamel.yaml import YAML


def load_map(path: Path) -> Document:
    """Return a file's map, with the place of each entry; an empty map for an empty file.

    Raises SandboxError: `file-missing`, `file-unreadable`, or `yaml-invalid`, with the place but not its text
    (a secret?).
    """
    document = read_file(path)
    if document.data is None:
        return Document({}, document.mark)
    if not isinstance(document.data, dict):
        raise Unreadable(document.mark, "it holds no map of keys", "write `key: value` lines")
    return document


def load_yaml(path: Path) -> dict[str, Any]:
    """Return a file's map; raises as `load_map`."""
    return load_map(path).data


def load_editable(path: Path) -> dict[str, Any]:
    """Return the map of a file that `load_map` has read, with what `save_yaml` needs to keep its form."""
    from ruamel.yaml.error import YAMLError

    try:
        return _yaml().load(path.read_text(encoding="utf-8-sig")) or {}
    except (YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        at = load_map(path).mark._replace(line=mark.line + 1 if mark else 1)
        raise Unreadable(
            at,
            "it could be read, but not be written back as it is",
            "edit it by hand, or write this line anew",
        ) from None


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
