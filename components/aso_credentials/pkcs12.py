"""Which PKCS12 files Go's `x/crypto/pkcs12` reads: a frozen reader of the oldest form alone.

It takes two safes, a MAC by SHA-1, triple DES or 40-bit RC2, and bags that are certificates or encrypted
keys. Only the outer form is looked at here; what is in the safes needs the password.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

_DATA: Final = bytes.fromhex("2a864886f70d010701")
_ENCRYPTED_DATA: Final = bytes.fromhex("2a864886f70d010706")
_CIPHERS: Final = {bytes.fromhex("2a864886f70d010c0103"), bytes.fromhex("2a864886f70d010c0106")}
_ENCRYPTED_KEY: Final = bytes.fromhex("2a864886f70d010c0a0102")
_CERTIFICATE: Final = bytes.fromhex("2a864886f70d010c0a0103")
_SHA1: Final = bytes.fromhex("2b0e03021a")
"""Object ids, as they stand in the file."""

_PARTS_WITH_MAC: Final = 3


class _Part(NamedTuple):
    tag: int
    content: bytes

    def parts(self) -> list[_Part]:
        return list(_parts(self.content))


def keys_in(content: bytes) -> int | None:
    """Return how many keys lie open to a count, None for a file that Go does not read; raises ValueError.

    A key within an encrypted safe is not counted. ValueError: it is no PKCS12 at all.
    """
    try:
        (pfx,) = _parts(content)
        parts = pfx.parts()
        version, (kind, wrapped) = parts[0].content, parts[1].parts()
        (safe,) = wrapped.parts()
    except (IndexError, ValueError):
        raise ValueError("it is no PKCS12") from None
    try:
        if len(parts) != _PARTS_WITH_MAC or (version, kind.content) != (b"\x03", _DATA):
            return None
        digest = parts[2].parts()[0].parts()[0].parts()[0].content
        (safes,) = safe.parts()
        counted = [_keys_of(*each.parts()) for each in safes.parts()]
    except (IndexError, ValueError, TypeError):
        return None
    known = [count for count in counted if count is not None]
    return sum(known) if digest == _SHA1 and len(counted) == len(known) == 2 else None


def _keys_of(kind: _Part, wrapped: _Part) -> int | None:
    """Return how many keys are in a safe as far as can be seen, None for one that Go does not read."""
    (content,) = wrapped.parts()
    if kind.content == _ENCRYPTED_DATA:
        _, encrypted = content.parts()
        return 0 if encrypted.parts()[1].parts()[0].content in _CIPHERS else None
    if kind.content != _DATA:
        return None
    (bags,) = content.parts()
    keys = 0
    for bag in bags.parts():
        name, value, *_ = bag.parts()
        if name.content == _ENCRYPTED_KEY:
            (key,) = value.parts()
            if key.parts()[0].parts()[0].content not in _CIPHERS:
                return None
            keys += 1
        elif name.content != _CERTIFICATE:
            return None
    return keys


def _parts(text: bytes) -> Iterator[_Part]:
    """Yield the values that follow one another in DER; raises IndexError or ValueError."""
    at = 0
    while at < len(text):
        tag, length = text[at], text[at + 1]
        at += 2
        if length >= 0x80:
            size = length - 0x80
            length = int.from_bytes(text[at : at + size])
            at += size
            if not size or length < 0x80:
                raise ValueError("a length is not as DER has it")
        if at + length > len(text):
            raise ValueError("it is cut off")
        yield _Part(tag, text[at : at + length])
        at += length
