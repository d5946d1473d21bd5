"""Whether ASO can prove itself with a certificate: the rules of the Azure SDK for Go, which it uses.

Its function `azidentity.ParseCertificates` takes PEM only without a password, and PKCS12 only as Go's own
reader of it does: with a SHA-1 MAC and triple DES or RC2.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate

_PRIVATE_KEY = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.+?-----END \1-----", re.DOTALL)
_SHA1 = bytes.fromhex("06052b0e03021a")
_PBES2 = bytes.fromhex("06092a864886f70d01050d")
"""Object ids as they stand in a PKCS12 file: of the MAC that Go reads, of the encryption that it does not."""


def certificate_fault(content: bytes, password: bytes | None) -> str | None:
    """Return what is wrong with a certificate in PEM or PKCS12, None when it can be used.

    password: of a PKCS12 file. The text holds no part of the content.
    """
    from cryptography.exceptions import UnsupportedAlgorithm

    is_pem = b"-----BEGIN" in content
    if is_pem and password:
        return "it is PEM, and with a password the SDK takes it for PKCS12: leave the password out"
    try:
        found = _pem(content) if is_pem else _pkcs12(content, password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "it can be parsed neither as PEM with an unencrypted key nor as PKCS12 with the password given"
    if not is_pem and (_SHA1 not in content or _PBES2 in content):
        return "it is PKCS12 the SDK cannot read: export it by `openssl pkcs12 -export -legacy`, or give PEM"
    return _fault_of(*found)


def _fault_of(keys: list[PrivateKeyTypes], certificates: list[Certificate]) -> str | None:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    if len(keys) > 1:
        return "it holds more than one private key, and the SDK chooses none"
    if not keys:
        return "it holds no private key, and without one nothing can be proved"
    if not certificates:
        return "it holds a private key, but no certificate"
    if not isinstance(keys[0], RSAPrivateKey):
        return "its private key is no RSA key, and Entra takes no other"
    if keys[0].public_key() not in [each.public_key() for each in certificates]:
        return "its private key belongs to another certificate"
    return None


def _pem(content: bytes) -> tuple[list[PrivateKeyTypes], list[Certificate]]:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificates

    found = [match[0] + b"\n" for match in _PRIVATE_KEY.finditer(content)]
    keys = [load_pem_private_key(key, password=None) for key in found]
    return keys, load_pem_x509_certificates(content) if b"-----BEGIN CERTIFICATE-----" in content else []


def _pkcs12(content: bytes, password: bytes | None) -> tuple[list[PrivateKeyTypes], list[Certificate]]:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates

    key, certificate, others = load_key_and_certificates(content, password or None)
    return [key] if key else [], [each for each in (certificate, *others) if each is not None]
