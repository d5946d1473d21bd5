"""Whether ASO can prove itself with a certificate: the rules of the Azure SDK for Go, which it uses.

Its function `azidentity.ParseCertificates` takes PEM only without a password, and PKCS12 only in its oldest
form. Held to the function itself by `tests/witness/test_azure.py`.
"""

from __future__ import annotations

import base64
import binascii
import re
import warnings
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate


_SHA1: Final = bytes.fromhex("2b0e03021a")
_ENCRYPTED_KEY: Final = bytes.fromhex("2a864886f70d010c0a0102")
_OTHER_BAGS: Final = (bytes.fromhex("2a864886f70d010c0a0101"), bytes.fromhex("2a864886f70d010c0a0104"))
"""A key that is not encrypted, and a certificate revocation list."""
_PBES2: Final = bytes.fromhex("2a864886f70d01050d")
_CIPHER: Final = re.compile(re.escape(bytes.fromhex("2a864886f70d010c01")) + b"(.)", re.DOTALL)
_CIPHERS: Final = (b"\x03", b"\x06")
"""Triple DES and 40-bit RC2. All of these are object ids, as they stand in a file of PKCS12."""


def is_of_oldest_form(content: bytes) -> bool:
    """Whether Go's `x/crypto/pkcs12` reads it: a MAC by SHA-1, the old ciphers, no bag but two kinds."""
    is_old = all(cipher in _CIPHERS for cipher in _CIPHER.findall(content)) and _PBES2 not in content
    return is_old and _SHA1 in content and not any(bag in content for bag in _OTHER_BAGS)


_BEGIN: Final = b"-----BEGIN "
_END: Final = b"\n-----END "
_DASHES: Final = b"-----"


def pem_blocks(text: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield type and content of each block."""
    at = 0
    while (end := text.find(_END, at)) >= 0:
        after_end = end + len(_END)
        begin = text.rfind(_BEGIN, at, end)
        opens = begin == at or text[begin - 1 : begin] == b"\n"
        found = _block(text, begin + len(_BEGIN), end) if begin >= 0 and opens else None
        if found is None:
            at = after_end
        else:
            kind, content, at = found
            yield kind.decode(errors="replace"), content


def _block(text: bytes, start: int, end: int) -> tuple[bytes, bytes, int] | None:
    """Return type, content and where the next line begins, of what begins at `start` and may end at `end`."""
    first, body = _line(text, start)
    kind = first.removesuffix(_DASHES)
    headers = False
    while kind != first and body < len(text):
        line, after = _line(text, body)
        if b":" not in line:
            break
        headers, body = True, after
    closing = end + len(_END) + len(kind) + len(_DASHES)
    behind, following = _line(text, closing)
    closes = text[end + len(_END) : closing] == kind + _DASHES and not behind
    if kind == first or not closes or (headers and end < body):
        return None
    try:
        content = base64.b64decode(text[body : max(body, end)].translate(None, b" \t\r\n"), validate=True)
    except binascii.Error:
        return None
    return kind, content, following


def _line(text: bytes, start: int) -> tuple[bytes, int]:
    """Return the line from `start` on without blanks at its end, and where the next one begins."""
    line, newline, _ = text[start:].partition(b"\n")
    return line.removesuffix(b"\r" if newline else b"").rstrip(b" \t"), start + len(line) + len(newline)


_ARMOUR: Final = b"-----BEGIN"
_INTEGER: Final = 0x02
_FIRST_OF_PKCS1: Final = re.compile(rb"\x30(?:[\x00-\x7f]|\x81.|\x82..|\x83...)\x02\x01\x00(.)", re.DOTALL)


class CertificateFault(StrEnum):
    """What is wrong with a certificate; none of the texts holds a part of it."""

    UNREADABLE = (
        "it can be parsed neither as PEM with an unencrypted key nor as PKCS12 with the password given"
    )
    FOLDED = (
        "it is PEM whose lines are not as they were: each block begins and ends with a line of its own, with"
        " nothing in front, and the SDK passes over any other"
    )
    LOCKED_PEM = "it is PEM, and with a password the SDK takes it for PKCS12: leave the password out"
    NEWER_PKCS12 = (
        "it is PKCS12 the SDK cannot read: export it by `openssl pkcs12 -export -legacy`, or give PEM"
    )
    SEVERAL_KEYS = "it holds more than one private key, and the SDK chooses none"
    NO_CERTIFICATE = "it holds no certificate that begins on a line of its own"
    NO_KEY = "it holds no private key, or none that is unencrypted, and without one nothing can be proved"
    NOT_RSA = "its private key is no RSA key, and Entra takes no other"
    OTHER_KEY = "its private key belongs to another certificate"


class _Unfit(Exception):  # noqa: N818 - never leaves this module
    """A fault on the way to the keys."""


def certificate_fault(content: bytes, password: bytes | None) -> CertificateFault | None:
    """Return what is wrong with a certificate in PEM or PKCS12, None when it can be used.

    password: of a PKCS12 file.
    """
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    blocks = [] if password else [*pem_blocks(content)]
    try:
        keys, certificates = _of_pem(blocks) if blocks else _of_pkcs12(content, password)
    except _Unfit as unfit:
        return CertificateFault(str(unfit))
    if not certificates:
        return CertificateFault.NO_CERTIFICATE
    if not keys:
        return CertificateFault.NO_KEY
    if not isinstance(keys[0], RSAPrivateKey):
        return CertificateFault.NOT_RSA
    if keys[0].public_key() not in [each.public_key() for each in certificates]:
        return CertificateFault.OTHER_KEY
    return None


def _of_pem(blocks: Sequence[tuple[str, bytes]]) -> tuple[list[PrivateKeyTypes], list[Certificate]]:
    """Return keys and certificates of blocks; those of other types are passed over."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_private_key
    from cryptography.x509 import load_der_x509_certificate

    keys: list[PrivateKeyTypes] = []
    certificates: list[Certificate] = []
    for kind, content in blocks:
        try:
            if kind == "CERTIFICATE":
                certificates.append(load_der_x509_certificate(content))
            elif kind in ("PRIVATE KEY", "RSA PRIVATE KEY"):
                if keys:
                    raise _Unfit(CertificateFault.SEVERAL_KEYS)
                if kind == "RSA PRIVATE KEY" and not _is_pkcs1(content):
                    raise _Unfit(CertificateFault.UNREADABLE)
                keys.append(load_der_private_key(content, None))
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise _Unfit(CertificateFault.UNREADABLE) from None
    return keys, certificates


def _is_pkcs1(key: bytes) -> bool:
    """Whether a key is in the form of RSA alone: numbers follow its version, and no algorithm."""
    found = _FIRST_OF_PKCS1.match(key)
    return found is not None and found[1][0] == _INTEGER


def _is_two_byte_text(password: bytes) -> bool:
    """Whether Go writes a password as whoever made the file: of characters of two bytes, and none of zero."""
    try:
        text = password.decode()
    except UnicodeDecodeError:
        return False
    return "\0" not in text and max(text) <= "\uffff"


def _of_pkcs12(content: bytes, password: bytes | None) -> tuple[list[PrivateKeyTypes], list[Certificate]]:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates

    if _ARMOUR in content:
        raise _Unfit(CertificateFault.LOCKED_PEM if password else CertificateFault.FOLDED)
    if password and not _is_two_byte_text(password):
        raise _Unfit(CertificateFault.UNREADABLE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of what is no DER
            key, certificate, others = load_key_and_certificates(content, password or None)
    except (ValueError, TypeError, UnsupportedAlgorithm, UserWarning):
        raise _Unfit(CertificateFault.UNREADABLE) from None
    if not is_of_oldest_form(content):
        raise _Unfit(CertificateFault.NEWER_PKCS12)
    if content.count(_ENCRYPTED_KEY) > 1:
        raise _Unfit(CertificateFault.SEVERAL_KEYS)
    if key is not None and not isinstance(key, RSAPrivateKey):
        raise _Unfit(CertificateFault.NOT_RSA)
    return [key] if key else [], [each for each in (certificate, *others) if each is not None]
