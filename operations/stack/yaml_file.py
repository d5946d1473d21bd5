"""YAML files that people write: read as maps, and changed without what is as it was."""

from __future__ import annotations

import difflib
import io
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.documents import Document, Unreadable, read_file

if TYPE_CHECKING:
    from ruamel.yaml import YAML


def load_map(path: Path) -> Document:
    """Return a file's map, with the place of each entry; an empty map for an empty file.

    Raises Unreadable: `file-missing`, `file-unreadable`, or `yaml-invalid`, with the place but not its text
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


def merge(former: str, document: dict[str, Any]) -> str:
    """Return a document as text, lines that did not change as the former text has them, if that works out."""
    from ruamel.yaml.error import YAMLError

    lists = re.search(r"^( *)[^\s#-][^\n]*:\n(?:\s*#[^\n]*\n)*( *)- ", former, re.MULTILINE)
    yaml = _yaml(indented=lists is not None and len(lists[2]) > len(lists[1]))
    whole = _text(yaml, _changed(yaml.load(former) or {}, document))
    written, kept = former.splitlines(keepends=True), _text(yaml, yaml.load(former) or {}).splitlines()
    if len(written) != len(kept):
        return whole
    lines = whole.splitlines(keepends=True)
    blocks = difflib.SequenceMatcher(None, kept, whole.splitlines(), autojunk=False).get_opcodes()
    merged = "".join(
        line for op, i, j, m, n in blocks for line in (written[i:j] if op == "equal" else lines[m:n])
    )
    try:
        return merged if _text(yaml, yaml.load(merged)) == whole else whole
    except (YAMLError, ValueError):
        return whole


def _changed(former: Any, document: Any) -> Any:
    """Return a document with the comments of a former one wherever both have the same."""
    if not isinstance(former, dict) or not isinstance(document, dict):
        return former if former == document else document
    for key in former.keys() - document.keys():
        del former[key]
    for key, value in document.items():
        former[key] = _changed(former.get(key), value)
    return former


def _text(yaml: YAML, document: dict[str, Any]) -> str:
    text = io.StringIO()
    yaml.dump(document, text)
    return text.getvalue()


@cache
def _yaml(*, indented: bool = False) -> YAML:
    """Return what reads and writes YAML. indented: whether items of lists stand deeper than their key."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 2**16  # a ciphertext stays on its line
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    if indented:
        yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml
