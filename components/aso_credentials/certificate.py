"""Whether ASO can prove itself with a certificate: the rules of the Azure SDK for Go, which it uses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate

_PRIVATE_KEY = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.+?-----END \1-----", re.DOTALL)


def certificate_fault(content: bytes, password: bytes | None) -> str | None:
    """Tell what is wrong with a certificate in PEM or PKCS12, None when it can be used.

    password: of a PKCS12 file; the SDK reads no encrypted key in PEM, whatever the password. What is told
    holds no part of the content.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    try:
        key, certificates = _pem(content) if b"-----BEGIN" in content else _pkcs12(content, password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "it can be parsed neither as PEM with an unencrypted key nor as PKCS12 with the password given"
    if key is None:
        return "it holds no private key, and without one nothing can be proved"
    if not certificates:
        return "it holds a private key, but no certificate"
    if not isinstance(key, RSAPrivateKey):
        return "its private key is no RSA key, and Entra takes no other"
    if key.public_key() not in [each.public_key() for each in certificates]:
        return "its private key belongs to another certificate"
    return None


def _pem(content: bytes) -> tuple[PrivateKeyTypes | None, list[Certificate]]:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificates

    found = _PRIVATE_KEY.search(content)
    key = load_pem_private_key(found[0] + b"\n", password=None) if found else None
    return key, load_pem_x509_certificates(content) if b"-----BEGIN CERTIFICATE-----" in content else []


def _pkcs12(content: bytes, password: bytes | None) -> tuple[PrivateKeyTypes | None, list[Certificate]]:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates

    key, certificate, others = load_key_and_certificates(content, password or None)
    return key, [each for each in (certificate, *others) if each is not None]
