"""The fields of a value that is a JSON object, as External Secrets Operator takes them, by `encoding/json`.

Source: docs/design/store-facts.md, gathered keys. Bytes are handled as Latin-1 characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Final

_DEEPEST: Final = 10_000
"""Levels of objects and lists in one another that Go's `json.Valid` accepts."""

_TOKEN: Final = re.compile(
    r'[ \t\r\n]*+([\[\]{},:]|"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
    r"|-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+|true|false|null)"
)
_BLANKS: Final = " \t\r\n"
_NONE: Final = ""
"""What stands for characters that are no token."""


def is_json(content: bytes) -> bool:
    """Whether Go's `json.Valid` accepts it."""
    return _fields(content.decode("latin-1")) is not None


def object_fields(content: bytes) -> Mapping[str, bytes] | None:
    """Return the fields of a JSON object as Go's `encoding/json` reads raw values; None for no object.

    Text is unescaped and null empty, all else stays as it is written. Of a repeated key the last counts. In
    text each byte that is no UTF-8, and each half of a surrogate pair, becomes U+FFFD.
    """
    raw = content.decode("latin-1")
    fields = _fields(raw) if raw.lstrip(_BLANKS).startswith("{") else None
    return None if fields is None else {_text(key): _value(value) for key, value in fields}


def _value(raw: str) -> bytes:
    if raw == "null":
        return b""
    return _text(raw).encode() if raw[0] == '"' else raw.encode("latin-1")


def _text(quoted: str) -> str:
    written = quoted.encode("latin-1").decode(errors="surrogateescape")
    return _SURROGATE.sub("\ufffd", json.loads(written))


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def _fields(raw: str) -> Sequence[tuple[str, str]] | None:
    """Return the fields of an object or list as they are written, none of another value; None for no JSON."""
    fields: list[tuple[str, str]] = []
    marks: list[str] = []
    expected, key, begin = _Next.VALUE, "", 0
    for part, start, end in _tokens(raw):
        inside = marks[-1] if marks else ""
        if expected in _VALUES and part not in (",", ":", "]", "}", _NONE):
            begin = start if len(marks) == 1 else begin
            if part in ("{", "["):
                marks.append(part)
                expected = _Next.FIRST_KEY if part == "{" else _Next.FIRST_VALUE
                if len(marks) > _DEEPEST:
                    return None
                continue
            expected = _Next.MARK
        elif expected in _KEYS and part[:1] == '"':
            key = part if len(marks) == 1 else key
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
            return None
        if len(marks) == 1:
            fields.append((key if marks[0] == "{" else str(len(fields)), raw[begin:end]))
    return None if marks or expected is not _Next.MARK else fields


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
            yield _NONE, at, last
            return
        at = found.end()
        yield found[1], found.start(1), at
