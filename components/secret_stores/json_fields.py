"""Extraction of a property or of all fields from a JSON value, as External Secrets Operator does it.

Source: `getDataByProperty` of ESO 2.9.0, and gjson. A value that is not UTF-8 JSON has neither.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from math import isinf
from typing import Any, Final

from components.go_json import without_surrogates

_PATH_MARK: Final = re.compile(r"[!-,./;-@\[-^`{-~]")
"""Characters of a path component that gjson's `Escape` escapes."""

_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]+")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def is_json(content: bytes) -> bool:
    """Return whether the content is JSON that is not nested too deeply to parse."""
    return _valid(content) is not None


def object_fields(content: bytes) -> Mapping[str, bytes] | None:
    """Return the fields of a JSON object as Go's `encoding/json` does; None if it is not an object.

    Strings are unescaped, null is empty, and other values keep their JSON text. The last of repeated keys
    wins. In strings each unpaired surrogate becomes U+FFFD.
    """
    written = _valid(content)
    if written is None or not written.startswith("{"):
        return None
    return {key: without_surrogates(_said(raw)).encode() for key, raw in _fields(written)}


def field_of(content: bytes, *names: str) -> bytes | None:
    """Return the field at a path of names; None if not found.

    List items have their index as name. The first of repeated keys wins. Strings are unescaped; objects,
    lists and integers keep their JSON text; other numbers lose exponent and trailing zeros; null is empty.
    None for a string with an unpaired surrogate.
    """
    document = _valid(content)
    written = None if document is None else next(_inside(document, names), None)
    if written is None:
        return None
    text = _number(written) if written[0] in "-0123456789" else _said(written)
    return None if _SURROGATE.search(text) else text.encode()


def as_path(name: str) -> str:
    """Return a field name escaped as a gjson path that matches only this field."""
    return _PATH_MARK.sub(r"\\\g<0>", name)


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


_DECODER: Final = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refuse)
"""Validates JSON and finds the end of a value; a number of any length stays as written."""


def _valid(content: bytes) -> str | None:
    """Return JSON text without surrounding whitespace; None if invalid."""
    try:
        written = content.decode().strip(" \t\r\n")
        _DECODER.decode(written)
    except (ValueError, RecursionError):
        return None
    return written


def _fields(written: str) -> Iterator[tuple[str, str]]:
    """Yield the names and raw JSON values of an object or list."""
    opening = written[:1]
    if opening not in ("{", "["):
        return
    at, index = _after_blanks(written, 1), 0
    while written[at] not in "}]":
        key = str(index)
        if opening == "{":
            _, end = _DECODER.raw_decode(written, at)
            key = without_surrogates(json.loads(written[at:end]))
            at = _after_blanks(written, _after_blanks(written, end) + len(":"))
        _, end = _DECODER.raw_decode(written, at)
        yield key, written[at:end]
        at, index = _after_blanks(written, end), index + 1
        if written[at] == ",":
            at = _after_blanks(written, at + 1)


def _inside(written: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the raw values at a path of names; several if a key is repeated."""
    if not names:
        yield written
        return
    for key, raw in _fields(written):
        if key == names[0]:
            yield from _inside(raw, names[1:])


def _after_blanks(written: str, at: int) -> int:
    found = _BLANKS.match(written, at)
    return found.end() if found else at


def _said(written: str) -> str:
    """Return a string unescaped, null as an empty string, and any other value as its JSON text."""
    if written[0] == '"':
        return json.loads(written)
    return "" if written == "null" else written


def _number(written: str) -> str:
    """Format a number as gjson does: integers unchanged, others as a 64-bit float without exponent."""
    if _WHOLE_NUMBER.fullmatch(written):
        return written
    number = float(written)
    if isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    text = f"{Decimal(repr(number)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
