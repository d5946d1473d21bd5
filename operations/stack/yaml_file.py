"""YAML files written by users: reads them as maps, and changes them with minimal differences."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

from components.documents import Document, Unreadable, read_file


def load_map(path: Path) -> Document:
    """Return a file's map, with the place of each entry; an empty map for an empty file.

    Raises Unreadable: `file-missing`, `file-unreadable`, or `yaml-invalid` with the place but not its text,
    which could be a secret.
    """
    document = read_file(path)
    if document.data is None:
        return Document({}, document.mark)
    if not isinstance(document.data, dict):
        raise Unreadable(document.mark, "it is not a map of keys", "write `key: value` lines")
    return document


def load_yaml(path: Path) -> dict[str, Any]:
    """Return a file's map; raises as `load_map`."""
    return load_map(path).data


def merge(former: str, document: dict[str, Any]) -> str:
    """Return a document as text, keeping order, quotes and comments where it equals the former text."""
    from ruamel.yaml import YAML

    lists = re.search(r"^( *)[^\s#-][^\n]*:\n(?:\s*#[^\n]*\n)*( *)- ", former, re.MULTILINE)
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 2**16  # ciphertexts stay on one line
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    if lists is not None and len(lists[2]) > len(lists[1]):
        yaml.indent(mapping=2, sequence=4, offset=2)
    text = io.StringIO()
    yaml.dump(_changed(yaml.load(former) or {}, document), text)
    return text.getvalue()


def _changed(former: Any, document: Any) -> Any:
    """Return a document with the comments of a former one where both are equal."""
    if not isinstance(former, dict) or not isinstance(document, dict):
        return former if former == document else document
    for key in former.keys() - document.keys():
        del former[key]
    for key, value in document.items():
        former[key] = _changed(former.get(key), value)
    return former
