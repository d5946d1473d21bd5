"""JSON text read and written byte for byte as Go's `encoding/json` does.

Korifi decodes credentials into `map[string]any` and encodes them again; a consumer that compares, signs or
hashes the result notices any changed byte. A remark reports each value that Go changes silently.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, TypeAlias

from components.documents import DEEPEST_JSON, TooDeep, read_json
from components.errors import CredfleetError, Problem
from components.naming import config_path

Path: TypeAlias = tuple[str | int, ...]

_KEY_SHOWN: Final = 60
_INTEGER = re.compile(r"-?[0-9]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_ENDS: Final = {ord(each): f"\\u{ord(each):04x}" for each in "\u2028\u2029"}
_OF_HTML: Final = {ord(each): f"\\u{ord(each):04x}" for each in "&<>"} | _LINE_ENDS
"""Characters of strings that Go escapes and Python does not, with and without `SetEscapeHTML`."""


class Numbers(StrEnum):
    """Treatment of numbers.

    FLOAT: convert to a 64-bit float, as in Go. EXACT: integers keep their digits, other numbers are
    converted.
    """

    FLOAT = "float"
    EXACT = "exact"


@dataclass(frozen=True, slots=True, repr=False)
class Number:
    """Number as its JSON text; while parsing, also a word such as NaN."""

    text: str


JsonValue: TypeAlias = "bool | str | Number | list[JsonValue] | dict[str, JsonValue] | None"


@dataclass(frozen=True, slots=True)
class Document:
    """Parsed document, and remarks where parsing changed it."""

    value: JsonValue = field(repr=False)
    remarks: tuple[Problem, ...] = ()


def key_path(path: Path) -> str:
    """Return a path in a document: `user.name`, `hosts[0]["my key"]`; `credentials` for the root."""
    shown = [key if len(str(key)) <= _KEY_SHOWN else f"{str(key)[:_KEY_SHOWN]}…" for key in path]
    return config_path("", *shown).partition(":")[2].removeprefix(".") or "credentials"


def read(text: bytes, numbers: Numbers = Numbers.FLOAT) -> Document:
    """Parse one JSON document strictly: UTF-8, one value, no NaN, every number within a 64-bit float.

    As in Go, the last of repeated keys wins and an unpaired surrogate becomes U+FFFD; both get a remark, as
    does an integer that the float rounds. Bytes that are not UTF-8, which Go would replace, are rejected.
    Raises CredfleetError.
    """
    try:
        characters = text.decode()
    except UnicodeDecodeError as error:
        raise _invalid(
            (),
            f"byte {error.start} is not UTF-8, so the characters meant are unknown",
            "save the JSON text as UTF-8",
        ) from None
    if not characters.strip(" \t\r\n"):
        raise _invalid((), "they are empty", "give a JSON object, {} for no credentials at all")
    try:
        raw = read_json(
            characters,
            object_pairs_hook=tuple,
            parse_int=Number,
            parse_float=Number,
            parse_constant=Number,
        )
    except TooDeep:
        raise _invalid((), f"they are nested deeper than {DEEPEST_JSON} levels", "flatten them") from None
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        problem = (
            f"text follows the JSON document at {at}"
            if error.msg == "Extra data"
            else f"they are not JSON at {at}"
        )
        raise _invalid((), problem, "give exactly one JSON object") from None
    reader = _Reader(numbers)
    return Document(reader.settle(raw, ()), tuple(reader.remarks))


def without_surrogates(text: str) -> str:
    """Return a string as Go reads it: unpaired surrogates become U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def write(value: JsonValue) -> str:
    """Encode a value like `json.Marshal`: keys sorted by bytes, no spaces, `&`, `<`, `>` escaped."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).translate(_OF_HTML)
        case Number():
            return value.text
        case list():
            return f"[{','.join(map(write, value))}]"
        case dict():
            return write_struct({key: value[key] for key in sorted(value)})


def write_struct(members: Mapping[str, JsonValue]) -> str:
    """Encode an object in the order of its keys, like a Go struct."""
    return f"{{{','.join(f'{write(key)}:{write(value)}' for key, value in members.items())}}}"


def write_texts(texts: Mapping[str, bytes]) -> bytes:
    """Encode a map of strings like `json.Encoder` with `SetEscapeHTML(false)`.

    Bytes that are not UTF-8 become U+FFFD.
    """
    said = {key: value.decode(errors="surrogateescape") for key, value in texts.items()}
    members = (f"{_quoted(key)}:{_quoted(said[key])}" for key in sorted(said))
    return f"{{{','.join(members)}}}".encode()


def _quoted(text: str) -> str:
    escaped = json.dumps(text, ensure_ascii=False).translate(_LINE_ENDS)
    return _SURROGATE.sub(r"\\ufffd", escaped)


@dataclass(slots=True)
class _Reader:
    numbers: Numbers
    remarks: list[Problem] = field(default_factory=list[Problem])

    def settle(self, raw: Any, path: Path) -> JsonValue:
        match raw:
            case Number():
                return self._number(raw.text, path)
            case tuple():
                return self._object(raw, path)
            case list():
                return [self.settle(each, (*path, index)) for index, each in enumerate(raw)]
            case str():
                return self._text(raw, path)
            case _:
                return raw

    def _object(self, pairs: Iterable[tuple[str, Any]], path: Path) -> dict[str, JsonValue]:
        settled: dict[str, JsonValue] = {}
        for given, raw in pairs:
            key = self._text(given, (*path, given))
            if key in settled:
                self._remark(
                    (*path, key), "the key is given more than once, and only the last counts", "keep one"
                )
            settled[key] = self.settle(raw, (*path, key))
        return settled

    def _text(self, given: str, path: Path) -> str:
        text = without_surrogates(given)
        if text != given:
            self._remark(
                path,
                "half a surrogate pair is no character and becomes U+FFFD",
                "write the character itself, or both halves",
            )
        return text

    def _number(self, literal: str, path: Path) -> Number:
        is_integer = _INTEGER.fullmatch(literal) is not None
        if is_integer and self.numbers is Numbers.EXACT:
            return Number(literal)
        number = float(literal)
        if not math.isfinite(number):
            raise _invalid(
                path,
                "the number is none that JSON has, or too large for a 64-bit float",
                "give a finite number, or a string",
            )
        if is_integer and int(number) != int(literal):
            self._remark(
                path,
                "the integer is rounded, because it does not fit a 64-bit float",
                "give it as a string, or keep its digits with numbers: exact",
            )
        return Number(_float_text(number))

    def _remark(self, path: Path, problem: str, fix: str) -> None:
        self.remarks.append(Problem(key_path(path), problem, fix))


def _float_text(number: float) -> str:
    """Format a float as Go does: shortest digits; an exponent below 1e-6 and from 1e21 on."""
    shortest = Decimal(repr(number)).normalize()
    has_exponent = number != 0 and not 1e-6 <= abs(number) < 1e21
    return f"{shortest:e}" if has_exponent else f"{shortest:f}"


def _invalid(path: Path, problem: str, fix: str) -> CredfleetError:
    return CredfleetError(code="credentials-invalid", place=key_path(path), problem=problem, fix=fix)
