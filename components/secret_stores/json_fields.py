"""What a property of a value is: the bytes that External Secrets Operator (ESO) takes out of JSON with gjson.

Source: docs/design/store-facts.md, values. Bytes are handled as Latin-1 characters, so that text which is no
UTF-8 passes unchanged, as it does there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum, auto
from math import isinf
from typing import Final

_DEEPEST: Final = 10_000
"""Levels of objects and lists in one another that Go's `json.Valid` accepts."""

_TOKEN: Final = re.compile(
    r'[ \t\r\n]*+([\[\]{},:]|"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
    r"|-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+|true|false|null)"
)
_BLANKS: Final = " \t\r\n"
_ESCAPE: Final = re.compile(
    r"\\u([dD][89a-fA-F]..)(?:\\u(....))?+|\\u(?P<one>....)|\\(?P<short>.)", re.DOTALL
)
_SHORT: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]*")
_PATH_MARK: Final = re.compile(r"[!-,./;-@\[-^`{-~]")
"""What gjson's `Escape` escapes in a part of a path."""

_HIGH_HALF: Final = 0xD800
_LOW_HALF: Final = 0xDC00


def field_of(content: bytes, *names: str) -> bytes | None:
    """Return the field of a JSON document under these names, one inside the other; None without one.

    A list has its fields under numbers. Of a repeated key the first counts. Text is unescaped; objects, lists
    and whole numbers stay as they are written, other numbers lose exponent and zeros at the end, null is
    empty. None also for what is no JSON document as Go has it.
    """
    found = _found(content.decode("latin-1"), [name.encode().decode("latin-1") for name in names])
    return None if found is None else _shown(found).encode("latin-1")


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


def as_path(name: str) -> str:
    """Write the name of one field as the path that means it, and nothing else, to gjson."""
    return _PATH_MARK.sub(r"\\\g<0>", name)


def _found(raw: str, names: Sequence[str]) -> str | None:
    if not names:
        return raw
    name = names[0]
    if raw.lstrip(_BLANKS).startswith("[") and name.isdigit():
        name = name.lstrip("0") or "0"
    for key, value in _fields(raw):
        if key == name and (found := _found(value, names[1:])) is not None:
            return found
    return None


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
            key = _unescaped(part) if len(marks) == 1 else key
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


def _shown(raw: str) -> str:
    if raw[0] == '"':
        return _unescaped(raw)
    if raw[0] in "{[tf" or _WHOLE_NUMBER.fullmatch(raw):
        return raw
    if raw == "null":
        return ""
    number = float(raw)
    if isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    text = f"{Decimal(repr(number)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _unescaped(text: str) -> str:
    """Return what a text in quotes says; half of a surrogate pair takes the escape behind it along."""
    return _ESCAPE.sub(_meant, text[1:-1])


def _meant(escape: re.Match[str]) -> str:
    if escape["short"] is not None:
        return _SHORT.get(escape["short"], escape["short"])
    if escape["one"] is not None:
        code = int(escape["one"], 16)
    else:
        high, low = int(escape[1], 16), int(escape[2] or "0", 16)
        whole = high < _LOW_HALF <= low < _LOW_HALF + 0x400
        code = 0x10000 + (high - _HIGH_HALF << 10) + low - _LOW_HALF if whole else 0xFFFD
    return chr(code).encode().decode("latin-1")
