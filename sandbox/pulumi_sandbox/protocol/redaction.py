"""Keeping known secrets out of texts made elsewhere: a provider's error, a line the program printed."""

import base64
import html
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import suppress
from itertools import accumulate
from typing import Final
from urllib.parse import quote, quote_plus, unquote

from pulumi_sandbox.protocol.values import MASK, Secret, Value, reveal

_SHORTEST: Final = 5
"""Characters; anything shorter would blot out innocent words and protects nothing."""

_SHORTEST_CODED: Final = 6

_WORD: Final = r"(?:[A-Z]?[a-z]{1,15}(?:[A-Z][a-z]{2,15}){0,3}|[A-Z]{2,12})[0-9]{0,2}"
_NAME: Final = re.compile(
    rf"(?!.{{41}})(?!(?:[^0-9]*[0-9]){{3}}){_WORD}(?:[-_](?:{_WORD}|[0-9]{{1,2}})){{0,5}}|[0-9]{{1,11}}"
)
"""Words with two digits at most at their ends, or a number: hardly any random token reads so."""

_NOT_IN_A_NAME: Final = r"(?:(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{{4}})|(?<![\w-])(?<!\w\.)){}(?![\w-])(?!\.\w)"
_KEY_LIKE_A_TOKEN: Final = re.compile(r"(?=.*[0-9])[^_]{12,}")
_AFTER_A_SCHEME: Final = re.compile(r"[a-z0-9+.-]+:(?P<rest>\S.*)", re.DOTALL)
_PASSWORD_IN_A_URL: Final = re.compile(r"://[^\s/?#:@]*:(?P<password>[^\s/?#]+)@")
_FIELD: Final = re.compile(r"(?:- +)*[\"']?(?P<name>[\w.-]+)[\"']?:(?: +(?P<value>.*))?")
_FIELD_OF_A_SECRET: Final = re.compile(r"(?i)auth|cred|key|pass|pin$|pwd|secret|token")
_ADDRESS: Final = re.compile(r"[a-z]+://[\w.:-]+/?")

_BASE64: Final = r"[A-Za-z0-9+/_-]"
_SPACE: Final = r"(?:\s|\\+[nr])"
_CODED: Final = re.compile(
    rf"{_BASE64}{{{_SHORTEST_CODED},}}"
    rf"(?:(?:(?<={_BASE64}{{60}}){_SPACE}+|[ \t]*(?:[\r\n]|\\+[nr]){_SPACE}*){_BASE64}+)*={{0,2}}"
)
"""A word that may be base64, and the lines it was folded into, as files of keys and mails are."""

_ESCAPE: Final = re.compile("%..")
_ESCAPE_OF_JSON: Final = re.compile(r"\\(?:u[0-9a-f]{4}|.)")
_FOLD: Final = re.compile(rf"({_SPACE}+)")
_MASKED_LINES: Final = re.compile(rf"{re.escape(MASK)}(?:{_SPACE}+{re.escape(MASK)})+")
_TO_STANDARD: Final = str.maketrans("-_", "+/")

_OF_A_URL: Final = r"A-Za-z0-9;,/?:@&=+$_.!~*'()#\-"
_QUOTED_IN_A_URL: Final = re.compile(rf"(?<![{_OF_A_URL}%])[{_OF_A_URL}]*+%[{_OF_A_URL}%]+")
_TIMES_QUOTED: Final = 3


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _as_go_does(text: str) -> str:
    shown = json.dumps(text, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        shown = shown.replace(character, f"\\u{ord(character):04x}")
    return shown[1:-1]


def _as_dotnet_does(text: str) -> str:
    shown = json.dumps(text)[1:-1].replace('\\"', "\\u0022")
    for character in "<>&'+`\x7f":
        shown = shown.replace(character, f"\\u{ord(character):04x}")
    return _in_capitals(shown)


def _in_capitals(shown: str) -> str:
    return _ESCAPE_OF_JSON.sub(
        lambda found: f"\\u{found[0][2:].upper()}" if found[0][1] == "u" else found[0], shown
    )


_QUOTED: Final[tuple[Callable[[str], str], ...]] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    _as_go_does,
    _as_dotnet_does,
    lambda text: _in_capitals(json.dumps(text)[1:-1]),
    lambda text: _in_capitals(_as_go_does(text)),
    lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    lambda text: repr(text)[1:-1],
)
_WRITTEN: Final[tuple[Callable[[str], str], ...]] = (
    html.escape,
    lambda text: quote(_bytes(text), safe=""),
    lambda text: quote(_bytes(text)),
    lambda text: quote_plus(_bytes(text)),
    lambda text: _ESCAPE.sub(lambda found: found[0].lower(), quote(_bytes(text), safe="")),
)


class Redactor:
    """Replaces every known secret in a text by `[secret]`, however it is written there.

    Known are the quotings of JSON (Python's, Go's, PHP's, .NET's, once and twice), of URLs (up to three
    times), HTML and Python, hex, and base64 of the secret or of anything it is a part of, with either
    alphabet, padded, unpadded or folded. Where a secret is base64 of what is no text, so are its bytes.
    Of a secret that is a JSON document or has several lines, each text, number and line counts by itself,
    unless it is also held in the open: the ids in a credential are none of its secrets, nor are the names of
    its fields. So do the password of a URL, and what a field of YAML holds, unless that is an address, or
    reads as a name and its field as no secret's.

    A secret that reads as a name (`orders`, `orders-db`, `OrdersApi2`) is taken out as one, not within a
    longer name (`orders-db-env`). So read up to six words joined by `-` or `_`, of 40 characters and two
    digits at most, at the ends of words or apart; a word is in lower case, capitalised, `LikeThis`, or of
    up to 12 capitals. What has other signs, capitals or digits within a word, or more digits
    (`hunter2-X9f`, keys, hex, GUIDs) is taken out everywhere.
    """

    __slots__ = ("_coded", "_forms")

    def __init__(self, secrets: Set[str], in_the_open: Set[str] = frozenset()) -> None:
        parts = {part for secret in secrets for part in _parts(secret)}
        quoted = {form for part in parts for form in _quoted(part)} - in_the_open | secrets
        hidden = {form for form in quoted if len(form) >= _SHORTEST}
        raw = {_bytes(part) for part in hidden} | set(_binary(hidden))
        forms = {form for part in hidden for form in _forms(part)} - in_the_open | hidden
        self._forms = _Known(forms | {form for part in raw for form in _hex(part)}, _SHORTEST)
        coded = {digits for part in raw for digits in _within_base64(part)}
        self._coded = _Known(coded, _SHORTEST_CODED)

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        shown = self._without(text)
        return _QUOTED_IN_A_URL.sub(self._unquoted, shown) if "%" in shown else shown

    def _without(self, text: str) -> str:
        if found := set(self._forms.within(text)):
            text = re.sub("|".join(map(_pattern, sorted(found, key=len, reverse=True))), MASK, text)
        return _CODED.sub(self._uncoded, text)

    def _uncoded(self, match: re.Match[str]) -> str:
        lines = _FOLD.split(match[0])
        word = "".join(lines[::2]).translate(_TO_STANDARD)
        starts = list(accumulate(map(len, lines[:-1:2]), initial=0))
        masked = set[int]()
        for start, end in self._coded.places(word):
            masked.update(range(bisect_right(starts, start) - 1, bisect_right(starts, end - 1)))
        for line in masked:
            lines[2 * line] = MASK
        return _MASKED_LINES.sub(MASK, "".join(lines)) if masked else match[0]

    def _unquoted(self, match: re.Match[str]) -> str:
        word = match[0]
        for _ in range(_TIMES_QUOTED):
            if (word := unquote(quoted := word)) == quoted:
                break
            if any(self._without(read) != read for read in {word, word.replace("+", " ")}):
                return MASK
        return match[0]


class _Known:
    """Texts that are looked for in others, by how they begin: there may be thousands."""

    __slots__ = ("_by_beginning", "_width")

    def __init__(self, known: Iterable[str], shortest: int) -> None:
        self._width = shortest
        self._by_beginning: dict[str, list[str]] = {}
        for text in known:
            self._by_beginning.setdefault(text[:shortest], []).append(text)

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where in a text one of them begins and ends."""
        for at in range(len(text) - self._width + 1):
            for known in self._by_beginning.get(text[at : at + self._width], ()):
                if text.startswith(known, at):
                    yield at, at + len(known)

    def within(self, text: str) -> Iterator[str]:
        """Yield those that a text contains."""
        return (text[start:end] for start, end in self.places(text))


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
    for line in secret.splitlines():
        yield from _on_a_line(line.strip())
    for found in _PASSWORD_IN_A_URL.finditer(secret):
        yield from (found["password"], unquote(found["password"]))
    if rest := _AFTER_A_SCHEME.fullmatch(secret):
        yield rest["rest"]
    with suppress(ValueError, RecursionError):
        yield from _texts_in(json.loads(secret, parse_int=str, parse_float=str))
    with suppress(ValueError):
        yield base64.b64decode(secret, validate=True).decode()


def _on_a_line(line: str) -> Iterator[str]:
    """Return what a line holds, apart from where it stands in a document of YAML."""
    if not (field := _FIELD.fullmatch(line)):
        yield line
    elif value := field["value"]:
        text = value[1:-1] if value[0] + value[-1] in {"''", '""'} else value
        if _FIELD_OF_A_SECRET.search(field["name"]) or not (
            _NAME.fullmatch(text) or _ADDRESS.fullmatch(text)
        ):
            yield from (value, text)


def _binary(parts: Iterable[str]) -> Iterator[bytes]:
    """Return the bytes that are no text, of the parts that are base64 of such and do not read as names."""
    for part in parts:
        with suppress(ValueError):
            raw = base64.b64decode(part, validate=True)
            if not _NAME.fullmatch(part) and not _is_text(raw):
                yield raw


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


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


def _hex(raw: bytes) -> tuple[str, str]:
    return raw.hex(), raw.hex().upper()


def _within_base64(raw: bytes) -> Iterator[str]:
    """Return the digits of base64 that are of these bytes alone, at each of the three places in others."""
    for before in range(3):
        digits = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        whole = digits[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
        if len(whole) >= _SHORTEST_CODED:
            yield whole


def _pattern(form: str) -> str:
    pattern = re.escape(form)
    return _NOT_IN_A_NAME.format(pattern) if _NAME.fullmatch(form) else pattern
