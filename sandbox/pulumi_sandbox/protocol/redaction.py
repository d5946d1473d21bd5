"""Keeping known secrets out of texts made elsewhere: a provider's error, a line the program printed."""

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import suppress
from typing import Final
from urllib.parse import quote, quote_plus

from pulumi_sandbox.protocol.values import MASK, Secret, Value, reveal

_SHORTEST: Final = 5
"""Characters; anything shorter would blot out innocent words and protects nothing."""

_SHORTEST_CODED: Final = 6

_WORD: Final = re.compile(r"[A-Z]?[a-z]{1,15}|[0-9]{1,11}")
_NOT_IN_A_NAME: Final = r"(?<![\w-])(?<!\w\.){}(?![\w-])(?!\.\w)"
_KEY_LIKE_A_TOKEN: Final = re.compile(r"(?=.*[0-9])[^_]{12,}")
_AFTER_A_SCHEME: Final = re.compile(r"[a-z0-9+.-]+:(?P<rest>.+)", re.DOTALL)

_BASE64: Final = r"[A-Za-z0-9+/_-]"
_CODED: Final = re.compile(
    rf"(?:(?:{_BASE64}{{60,76}}(?:\s+|\\[nr]))+{_BASE64}*|{_BASE64}{{{_SHORTEST_CODED},}})={{0,2}}"
)
"""A word that may be base64, and the lines it was folded into, as files of keys and mails are."""

_ESCAPE: Final = re.compile("%..")
_FOLD: Final = re.compile(r"\s+|\\[nr]")
_TO_STANDARD: Final = str.maketrans("-_", "+/")


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _as_go_does(text: str) -> str:
    shown = json.dumps(text, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        shown = shown.replace(character, f"\\u{ord(character):04x}")
    return shown[1:-1]


_QUOTED: Final[tuple[Callable[[str], str], ...]] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    _as_go_does,
    lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    lambda text: repr(text)[1:-1],
)
_WRITTEN: Final[tuple[Callable[[str], str], ...]] = (
    html.escape,
    lambda text: quote(_bytes(text), safe=""),
    lambda text: quote(_bytes(text)),
    lambda text: quote_plus(_bytes(text)),
    lambda text: _ESCAPE.sub(lambda found: found[0].lower(), quote(_bytes(text), safe="")),
    lambda text: _bytes(text).hex(),
    lambda text: _bytes(text).hex().upper(),
)


class Redactor:
    """Replaces every known secret in a text by `[secret]`, however it is written there.

    Known are the quotings of JSON (Python's, Go's, PHP's, once and twice), of URLs, HTML and Python, hex,
    and base64 of the secret or of anything it is a part of, with either alphabet, padded, unpadded or folded.
    Of a secret that is a JSON document or has several lines, each text, number and line counts by itself,
    unless it is also held in the open: the ids in a credential are none of its secrets, nor are the names of
    its fields. A secret that reads like a word (`orders`) is taken out as one, not within a name
    (`orders-api`).
    """

    __slots__ = ("_coded", "_forms")

    def __init__(self, secrets: Set[str], in_the_open: Set[str] = frozenset()) -> None:
        parts = {part for secret in secrets for part in _parts(secret)}
        quoted = {form for part in parts for form in _quoted(part)} - in_the_open | secrets
        hidden = {form for form in quoted if len(form) >= _SHORTEST}
        forms = {form for part in hidden for form in _forms(part)} - in_the_open | hidden
        self._forms = _Known(forms, _SHORTEST)
        coded = {digits for part in hidden for digits in _within_base64(part)}
        self._coded = _Known(coded, _SHORTEST_CODED)

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        if found := self._forms.within(text):
            text = re.sub("|".join(map(_pattern, sorted(found, key=len, reverse=True))), MASK, text)
        return _CODED.sub(self._uncoded, text)

    def _uncoded(self, match: re.Match[str]) -> str:
        word = _FOLD.sub("", match[0]).translate(_TO_STANDARD)
        return MASK if self._coded.within(word) else match[0]


class _Known:
    """Texts that are looked for in others, by how they begin: there may be thousands."""

    __slots__ = ("_by_beginning", "_width")

    def __init__(self, known: Iterable[str], shortest: int) -> None:
        self._width = shortest
        self._by_beginning: dict[str, list[str]] = {}
        for text in known:
            self._by_beginning.setdefault(text[:shortest], []).append(text)

    def within(self, text: str) -> Set[str]:
        """Return those that a text contains."""
        return {
            known
            for at in range(len(text) - self._width + 1)
            for known in self._by_beginning.get(text[at : at + self._width], ())
            if text.startswith(known, at)
        }


def texts_of(value: Value) -> tuple[Set[str], Set[str]]:
    """Return every text that is a secret in a value, or within one; and every text that is in the open there.

    What the same value also holds in the open is no secret: Google's provider marks the labels of a resource,
    all of them, beside the ones it was given.
    """
    texts = {True: set[str](), False: set[str]()}
    for text, secret in _marked_texts(value, secret=False):
        texts[secret].add(text)
    return texts[True] - texts[False], texts[False]


def _marked_texts(value: Value, *, secret: bool) -> Iterator[tuple[str, bool]]:
    if isinstance(value, Secret):
        yield from _marked_texts(reveal(value), secret=True)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _marked_texts(item, secret=secret)
    elif isinstance(value, list):
        for item in value:
            yield from _marked_texts(item, secret=secret)
    elif isinstance(value, str):
        yield value, secret


def _parts(secret: str) -> Iterator[str]:
    yield secret
    for part in _inside(secret):
        if part != secret:
            yield from _parts(part)


def _inside(secret: str) -> Iterator[str]:
    yield from secret.splitlines()
    if rest := _AFTER_A_SCHEME.fullmatch(secret):
        yield rest["rest"]
    with suppress(ValueError, RecursionError):
        yield from _texts_in(json.loads(secret, parse_int=str, parse_float=str))
    with suppress(ValueError):
        yield base64.b64decode(secret, validate=True).decode()


def _texts_in(document: object) -> Iterator[str]:
    if isinstance(document, dict):
        yield from filter(_KEY_LIKE_A_TOKEN.fullmatch, document)
        document = list(document.values())
    if isinstance(document, list):
        for item in document:
            yield from _texts_in(item)
    elif isinstance(document, str):
        yield document


def _quoted(part: str) -> Iterator[str]:
    yield part
    for quoting in _QUOTED:
        yield quoting(part)


def _forms(part: str) -> Iterator[str]:
    yield from _quoted(part)
    for write in _WRITTEN:
        yield write(part)


def _within_base64(part: str) -> Iterator[str]:
    """Return the digits of base64 that a text has to itself, at each of the three places in a longer one."""
    raw = _bytes(part)
    for before in range(3):
        digits = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        whole = digits[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
        if len(whole) >= _SHORTEST_CODED:
            yield whole


def _pattern(form: str) -> str:
    pattern = re.escape(form)
    return _NOT_IN_A_NAME.format(pattern) if _WORD.fullmatch(form) else pattern
