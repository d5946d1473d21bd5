"""What a property of a value is: the bytes that External Secrets Operator (ESO) takes out of it with gjson.

Source: docs/design/store-facts.md, values. As gjson does, this reads what is no JSON as far as it looks like
some. Bytes are handled as Latin-1 characters, so that text which is no UTF-8 passes unchanged, as it does
there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from math import inf, isinf, isnan, nan
from typing import Final, TypeAlias

_PATH_MARK: Final = re.compile(r"[!-,./;-@\[-^`{-~]")
"""What gjson's `Escape` escapes in a part of a path."""

_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_KEY_OR_END: Final = re.compile(r'["}]')
_VALUE: Final = re.compile(r'["{\[ntf+\-0-9iIN]')
_VALUE_OR_END: Final = re.compile(r'["{\[ntf+\-0-9iIN\]]')
_NUMBER: Final = re.compile(r".[^\x00- ,\]}]*", re.DOTALL)
_LITERAL: Final = re.compile(r".[a-z]*", re.DOTALL)
_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{\[(]|[}\])]', re.DOTALL)
_DIGITS: Final = "[0-9](?:_?[0-9])*"
_DECIMAL: Final = re.compile(rf"[+-]?(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?")
_INFINITE: Final = re.compile(r"([+-]?)inf(inity)?", re.IGNORECASE)
_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]*")
_PIECE: Final = re.compile(
    r'[^\\\x00-\x1f]+|\\(?P<short>[\\/bfnrt"])'
    r"|\\u(?P<high>[dD][89a-fA-F][0-9a-fA-F]{2})(?:\\u(?P<low>.{4}))?|\\u(?P<one>.{4})",
    re.DOTALL,
)
_SHORT: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HEX: Final = re.compile(r"[0-9a-fA-F]{4}")
_HIGH_HALF: Final = 0xD800
_LOW_HALF: Final = 0xDC00

_Read: TypeAlias = tuple[int, str | None]
"""Where reading goes on, and what was looked for as it is written, if it was found."""


def field_of(content: bytes, *names: str) -> bytes | None:
    """Return the field of a document under these names, one inside the other; None without one.

    A list has its fields under numbers. Of a repeated key the first counts. Text is unescaped; objects, lists
    and whole numbers stay as they are written, other numbers lose exponent and zeros at the end, null is
    empty.
    """
    raw = content.decode("latin-1")
    path = [name.encode().decode("latin-1") for name in names]
    if path[:2] == ["", ""] and len(path) > 2:
        _, found = _in_list(raw, 0, path[2:])
    elif (start := re.search(r"[{\[]", raw)) is None:
        return None
    else:
        _, found = _READERS[start[0]](raw, start.end(), path)
    return None if found is None else _shown(found).encode("latin-1")


def as_path(name: str) -> str:
    """Write the name of one field as the path that means it, and nothing else, to gjson."""
    return _PATH_MARK.sub(r"\\\g<0>", name)


def _in_object(raw: str, at: int, path: Sequence[str]) -> _Read:
    while (mark := _KEY_OR_END.search(raw, at)) is not None:
        if mark[0] == "}":
            return mark.end(), None
        key = _STRING.match(raw, mark.start())
        value = key and _VALUE.search(raw, key.end())
        if key is None or value is None:
            break
        at, found = _value(raw, value.start(), path, meant=_unescaped(key[1]) == path[0])
        if found is not None or at < 0:
            return at, found
    return -1, None


def _in_list(raw: str, at: int, path: Sequence[str]) -> _Read:
    wanted = int(path[0]) % 2**64 if re.fullmatch("[0-9]+", path[0]) else -1
    index = 0
    while (mark := _VALUE_OR_END.search(raw, at)) is not None:
        if mark[0] == "]":
            return mark.end(), None
        at, found = _value(raw, mark.start(), path, meant=index == wanted)
        if found is not None or at < 0:
            return at, found
        index += 1
    return -1, None


_NAMES: Final = {"t": "true", "f": "false", "n": "null"}
"""What a word is taken for, by its first letter."""

_READERS: Final = {"{": _in_object, "[": _in_list}


def _value(raw: str, at: int, path: Sequence[str], *, meant: bool) -> _Read:
    """Read a value; meant: whether it, or what is in it, is what is looked for."""
    first = raw[at]
    if first in "{[":
        if meant and len(path) > 1:
            return _READERS[first](raw, at + 1, path[1:])
        end = _closed(raw, at)
    elif first == '"':
        string = _STRING.match(raw, at)
        if string is None:
            return -1, None
        end = string.end()
    else:
        is_word = first in "tf" or (first == "n" and raw[at + 1 : at + 2] in ("u", ""))
        found = (_LITERAL if is_word else _NUMBER).match(raw, at)
        end = at + 1 if found is None else found.end()
        if is_word and meant and len(path) == 1:
            return end, _NAMES[first]
    return end, raw[at:end] if meant and len(path) == 1 else None


def _closed(raw: str, at: int) -> int:
    """Return where an object or list ends; brackets of any kind close one another."""
    depth = 0
    for bracket in _BRACKET.finditer(raw, at):
        depth += 0 if bracket[0][0] == '"' else 1 if bracket[0] in "{[(" else -1
        if depth == 0:
            return bracket.end()
    return len(raw)


def _shown(raw: str) -> str:
    if raw[0] == '"':
        return _unescaped(raw[1:-1])
    if raw[0] in "{[":
        return raw
    if raw in _NAMES.values():
        return raw.removeprefix("null")
    return raw if _WHOLE_NUMBER.fullmatch(raw) else _written(_number(raw))


def _number(raw: str) -> float:
    """Return a number as Go's `ParseFloat` reads it; zero for none."""
    if _DECIMAL.fullmatch(raw):
        return float(raw)
    if _INFINITE.fullmatch(raw):
        return -inf if raw[0] == "-" else inf
    return nan if raw.lower() == "nan" else 0.0


def _written(number: float) -> str:
    if isnan(number):
        return "NaN"
    if isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    text = f"{Decimal(repr(number)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _unescaped(text: str) -> str:
    """Return what a text says, up to where it says nothing.

    Half of a surrogate pair takes the escape behind it along.
    """
    if "\\" not in text:
        return text
    said: list[str] = []
    at = 0
    while (piece := _PIECE.match(text, at)) is not None:
        at = piece.end()
        said.append(_meant(piece))
    return "".join(said)


def _meant(piece: re.Match[str]) -> str:
    if piece["short"] is not None:
        return _SHORT.get(piece["short"], piece["short"])
    if piece["high"] is not None:
        high, low = int(piece["high"], 16), _code(piece["low"] or "")
        whole = high < _LOW_HALF <= low < _LOW_HALF + 0x400
        code = 0x10000 + (high - _HIGH_HALF << 10) + low - _LOW_HALF if whole else 0xFFFD
    elif piece["one"] is not None:
        code = _code(piece["one"])
    else:
        return piece[0]
    return chr(code).encode().decode("latin-1")


def _code(digits: str) -> int:
    return int(digits, 16) if _HEX.fullmatch(digits) else 0
