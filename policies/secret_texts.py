"""Finds secrets inside texts by their digests only.

A text becomes a row: the digests of its words and signs in order. A text contains a secret if its row
contains the secret's row, whatever signs surround the secret or belong to it; a single word of it is no
match. Whitespace, line breaks and backslashes are ignored, so nested JSON or a YAML block has the row of its
content.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_CODE: Final = re.compile(r"(?<!\\)\\+u([0-9a-fA-F]{4})")
_PART: Final = re.compile(r"(?:\\+[nrt]?|\s)+|(\w+(?:[.-]+\w+)*|.)")
_ESCAPE: Final = re.compile(r"\\[nrtu]")
"""An escaped blank or character, or a backslash before a word as in `DOMAIN\\name`; both are tried."""
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/]{11,}")
_SHOWN: Final = re.compile(
    r"\s*(?:-----BEGIN (?P<kind>CERTIFICATE|PUBLIC KEY)-----[\w+/=\s]*-----END (?P=kind)-----\s*)+"
    r"|(?P<address>(?:[a-z][a-z0-9+.-]*://|urn:)[\w./:~+,-]*)",
    re.IGNORECASE,
)
_NAMES: Final = re.compile(r"\w[\w.-]*(?::[\w./-]+){2,}|[\w\s./@,+~-]+(?::\d+)?|\[[\w\s./@,+~\"-]*\]")
_RANDOM: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])(?=[A-Za-z]*\d)[A-Za-z0-9]{10,}"
    r"|(?=[0-9]*[a-z])(?=[a-z]*\d)[a-z0-9]{25,})(?![A-Za-z0-9])"
)
"""Words that look random: with letters in both cases and digits, or long ones of letters and digits."""

_WIDTH: Final = 16
_EDGE: Final = bytes(_WIDTH)


@dataclass(frozen=True, slots=True)
class Trace:
    """The stored form of a secret: its row, and the offset of its longest, most distinctive part."""

    row: bytes
    longest: int


class Digests:
    """Makes rows with a key that exists only in this process."""

    def __init__(self) -> None:
        """Generate the key."""
        self._key: Final = secrets.token_bytes(32)

    def rows(self, text: str) -> Iterator[bytes]:
        """Yield the row of a text, with an edge at each end, and those of base64 content in it."""
        for reading in _readings(text):
            yield _EDGE + b"".join(map(self._digest, _parts(reading))) + _EDGE

    def trace(self, secret: str, *, whole: bool) -> Trace | None:
        """Return the stored form of a secret; None if it has no letter or digit.

        whole: match several words only as a whole text, like the beginning of an address, which many
        addresses share.
        """
        parts = _parts(secret)
        if not any(character.isalnum() for part in parts for character in part):
            return None
        longest = max(range(len(parts)), key=lambda place: len(parts[place])) * _WIDTH
        row = b"".join(map(self._digest, parts))
        return Trace(_EDGE + row + _EDGE, longest + _WIDTH) if whole and parts[1:] else Trace(row, longest)

    def _digest(self, part: str) -> bytes:
        encoded = part.encode("utf-8", "surrogatepass")
        return hashlib.blake2s(encoded, key=self._key, digest_size=_WIDTH).digest()


class Traces:
    """Secrets to search for."""

    def __init__(self, traces: Iterable[Trace]) -> None:
        """Index the traces by their longest part."""
        self._by_longest: defaultdict[bytes, list[Trace]] = defaultdict(list)
        for trace in traces:
            self._by_longest[trace.row[trace.longest : trace.longest + _WIDTH]].append(trace)

    def stand_in(self, row: bytes) -> bool:
        """Return whether one of the secrets occurs in a text, given by its row."""
        for place in range(0, len(row), _WIDTH) if self._by_longest else ():
            for trace in self._by_longest.get(row[place : place + _WIDTH], ()):
                if place >= trace.longest and row.startswith(trace.row, place - trace.longest):
                    return True
        return False


def is_public(text: str) -> bool:
    """Return whether a text is public: a certificate, or an address without login or random word."""
    shown = _SHOWN.fullmatch(text)
    return shown is not None and (shown["address"] is None or not _RANDOM.search(text))


def is_ordinary(text: str) -> bool:
    """Return whether a text is public, or names what is usual beside secrets: users, hosts, files, roles."""
    return is_public(text) or (_NAMES.fullmatch(text) is not None and not _RANDOM.search(text))


def decode(text: str) -> str | None:
    """Return what a base64 text encodes, with or without padding; None if that is not a string."""
    bare = text.strip().rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def _readings(text: str) -> Iterator[str]:
    yield text
    if _ESCAPE.search(text):
        yield text.replace("\\", " ")
    for found in _ENCODED.findall(text):
        if (inner := decode(found)) is not None:
            yield from _readings(inner)


def _parts(text: str) -> list[str]:
    return [part for part in _PART.findall(_CODE.sub(lambda code: chr(int(code[1], 16)), text)) if part]
