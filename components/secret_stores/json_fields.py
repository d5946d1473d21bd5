"""The fields of a value that is a JSON object, as External Secrets Operator takes them, by `encoding/json`.

Source: docs/design/store-facts.md, gathered keys. Bytes are handled as Latin-1 characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Final

from components.secret_stores.gjson import unescaped

_DEEPEST: Final = 10_000
"""Levels of objects and lists in one another that Go's `json.Valid` accepts."""

_TOKEN: Final = re.compile(
    r'[ \t\r\n]*+([\[\]{},:]|"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
    r"|-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+|true|false|null)"
)
_BLANKS: Final = " \t\r\n"


def object_fields(content: bytes) -> Mapping[str, bytes] | None:
    """Return the fields of a JSON object as Go's `encoding/json` reads raw values; None for no object.

    Text is unescaped and null empty, all else stays as it is written. Of a repeated key the last counts. None
    also for text that is no UTF-8, which Go would replace.
    """
    try:
        content.decode()
    except UnicodeDecodeError:
        return None
    raw = content.decode("latin-1")
    if not raw.lstrip(_BLANKS).startswith("{"):
        return None
    fields = _fields(raw)
    if not fields and re.sub(rf"[{_BLANKS}]", "", raw) != "{}":
        return None
    return {key.encode("latin-1").decode("utf-8", "replace"): _raw(value) for key, value in fields}


def _raw(value: str) -> bytes:
    if value == "null":
        return b""
    written = value.encode("latin-1")
    return _SURROGATE.sub("\ufffd", json.loads(written)).encode() if value[0] == '"' else written


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def _fields(raw: str) -> Sequence[tuple[str, str]]:
    """Return the fields of an object or list as they are written; none for what is neither, or no JSON."""
    fields: list[tuple[str, str]] = []
    marks: list[str] = []
    expected, key, begin = _Next.VALUE, "", 0
    for part, start, end in _tokens(raw):
        inside = marks[-1] if marks else ""
        if expected in _VALUES and part not in (",", ":", "]", "}"):
            begin = start if len(marks) == 1 else begin
            if part in ("{", "["):
                marks.append(part)
                expected = _Next.FIRST_KEY if part == "{" else _Next.FIRST_VALUE
                if len(marks) > _DEEPEST:
                    return ()
                continue
            expected = _Next.MARK
        elif expected in _KEYS and part[0] == '"':
            key = unescaped(part[1:-1]) if len(marks) == 1 else key
            expected = _Next.COLON
            continue
        elif expected is _Next.COLON and part == ":":
            expected = _Next.VALUE
            continue
        elif expected is _Next.MARK and part == "," and inside:
            expected = _Next.KEY if inside == "{" else _Next.VALUE
            continue
        elif inside + part in ("{}", "[]") and expected in _ENDS:
            marks.pop()
            expected = _Next.MARK
            if not marks:
                continue
        else:
            return ()
        if len(marks) == 1:
            fields.append((key if marks[0] == "{" else str(len(fields)), raw[begin:end]))
    return () if marks or expected is not _Next.MARK else fields


class _Next(Enum):
    """What a document goes on with."""

    VALUE = auto()
    FIRST_VALUE = auto()
    KEY = auto()
    FIRST_KEY = auto()
    COLON = auto()
    MARK = auto()


_VALUES: Final = (_Next.VALUE, _Next.FIRST_VALUE)
_KEYS: Final = (_Next.KEY, _Next.FIRST_KEY)
_ENDS: Final = (_Next.MARK, _Next.FIRST_KEY, _Next.FIRST_VALUE)


def _tokens(raw: str) -> Iterator[tuple[str, int, int]]:
    """Yield each token with its place; where there is none that JSON has, what is no token."""
    at, last = 0, len(raw.rstrip(_BLANKS))
    while at < last:
        found = _TOKEN.match(raw, at)
        if found is None:
            yield " ", at, last
            return
        at = found.end()
        yield found[1], found.start(1), at
