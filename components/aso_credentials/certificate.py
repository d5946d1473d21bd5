"""Check of a client certificate for ASO: the formats that the Azure SDK for Go accepts reliably.

Its function `azidentity.ParseCertificates` accepts PEM only without a password, and PKCS12 only in its oldest
form. `tests/witness/test_azure.py` compares this module with the function. Malformed certificates are
rejected, whatever the function does with them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate

_SHA1: Final = bytes.fromhex("2b0e03021a")
_OTHER_BAGS: Final = (bytes.fromhex("2a864886f70d010c0a0101"), bytes.fromhex("2a864886f70d010c0a0104"))
"""Object ids of an unencrypted key and of a certificate revocation list."""
_PBES2: Final = bytes.fromhex("2a864886f70d01050d")
_CIPHER: Final = re.compile(re.escape(bytes.fromhex("2a864886f70d010c01")) + b"(.)", re.DOTALL)
_CIPHERS: Final = (b"\x03", b"\x06")
"""Last bytes for triple DES and 40-bit RC2. These constants are object ids as encoded in PKCS12 files."""

_ARMOUR: Final = b"-----BEGIN"
_BLOCK: Final = re.compile(
    rb"^-----BEGIN ([A-Z0-9 ]+)-----[ \t]*\r?\n[A-Za-z0-9+/=\s]+\n-----END \1-----[ \t]*\r?$", re.MULTILINE
)
_KEYS: Final = (b"PRIVATE KEY", b"RSA PRIVATE KEY")


class CertificateFault(StrEnum):
    """Problem of a certificate; the messages contain no part of it."""

    UNREADABLE = (
        "it can be parsed neither as PEM with an unencrypted key nor as PKCS12 with the password given"
    )
    FOLDED = (
        "it is PEM whose lines are not as they were: each block begins and ends with a line of its own, with"
        " nothing in front, and holds base64 alone"
    )
    LOCKED_PEM = "it is PEM, and with a password the SDK takes it for PKCS12: leave the password out"
    NEWER_PKCS12 = (
        "it is PKCS12 the SDK cannot read: export it by `openssl pkcs12 -export -legacy`, or give PEM"
    )
    SEVERAL_KEYS = "it holds more than one private key, and the SDK chooses none"
    NO_CERTIFICATE = "it holds no certificate that begins on a line of its own"
    NO_KEY = "it holds no private key, or none that is unencrypted, and without one nothing can be proved"
    NOT_RSA = "its private key is not an RSA key, and Entra takes no other"
    OTHER_KEY = "its private key belongs to another certificate"


class _Unfit(Exception):  # noqa: N818 - never leaves this module
    """Fault found while reading the keys."""


def certificate_fault(content: bytes, password: bytes | None) -> CertificateFault | None:
    """Return the problem of a PEM or PKCS12 certificate, None if it is usable.

    `password`: of a PKCS12 file.
    """
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # about invalid DER
            read = _of_pem if _ARMOUR in content else _of_pkcs12
            keys, certificates = read(content, password or None)
    except _Unfit as unfit:
        return CertificateFault(str(unfit))
    except (ValueError, TypeError, UnsupportedAlgorithm, UserWarning):
        return CertificateFault.UNREADABLE
    return next(_mismatches(keys, certificates), None)


def _mismatches(
    keys: Sequence[PrivateKeyTypes], certificates: Sequence[Certificate]
) -> Iterator[CertificateFault]:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    if not certificates:
        yield CertificateFault.NO_CERTIFICATE
    if not keys:
        yield CertificateFault.NO_KEY
    elif len(keys) > 1:
        yield CertificateFault.SEVERAL_KEYS
    elif not isinstance(keys[0], RSAPrivateKey):
        yield CertificateFault.NOT_RSA
    elif keys[0].public_key() not in [each.public_key() for each in certificates]:
        yield CertificateFault.OTHER_KEY


def _of_pem(content: bytes, password: bytes | None) -> tuple[list[PrivateKeyTypes], list[Certificate]]:
    """Return keys and certificates of all blocks; blocks of other types are ignored."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificate

    if password:
        raise _Unfit(CertificateFault.LOCKED_PEM)
    blocks = [(found[1], found[0]) for found in _BLOCK.finditer(content)]
    if len(blocks) != content.count(_ARMOUR):
        raise _Unfit(CertificateFault.FOLDED)
    keys = [load_pem_private_key(block, None) for kind, block in blocks if kind in _KEYS]
    return keys, [load_pem_x509_certificate(block) for kind, block in blocks if kind == b"CERTIFICATE"]


def _of_pkcs12(content: bytes, password: bytes | None) -> tuple[list[PrivateKeyTypes], list[Certificate]]:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates

    text = (password or b"").decode(errors="replace")
    if any(sign == "\0" or sign > "\uffff" for sign in text):  # the library would panic at a zero byte
        raise _Unfit(CertificateFault.UNREADABLE)
    key, certificate, others = load_key_and_certificates(content, password)
    if not _is_of_oldest_form(content):
        raise _Unfit(CertificateFault.NEWER_PKCS12)
    return [key] if key else [], [each for each in (certificate, *others) if each is not None]


def _is_of_oldest_form(content: bytes) -> bool:
    """Return whether Go's `x/crypto/pkcs12` reads it: MAC by SHA-1, old ciphers, only two kinds of bags."""
    is_old = all(cipher in _CIPHERS for cipher in _CIPHER.findall(content)) and _PBES2 not in content
    return is_old and _SHA1 in content and not any(bag in content for bag in _OTHER_BAGS)
