"""Certificates made for tests, and thrown away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import PBES, serialize_key_and_certificates
from cryptography.x509.oid import NameOID

Key: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@cache
def rsa_key(number: int = 0) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def curve_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def certificate(key: Key) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "credfleet test")])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )


def without_key() -> bytes:
    return certificate(rsa_key()).public_bytes(Encoding.PEM)


def only_key(key: Key | None = None, password: bytes | None = None) -> bytes:
    return (key or rsa_key()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, _encryption(password))


def pem() -> bytes:
    return without_key() + only_key()


def pkcs12(password: bytes) -> bytes:
    """As `openssl pkcs12 -export -legacy` writes it: SHA-1 and triple DES."""
    builder = PrivateFormat.PKCS12.encryption_builder()
    legacy = builder.key_cert_algorithm(PBES.PBESv1SHA1And3KeyTripleDESCBC).hmac_hash(hashes.SHA1())
    return _pkcs12(legacy.build(password))


def modern_pkcs12(password: bytes | None = None) -> bytes:
    """As OpenSSL writes it by default, or without encryption: the SDK of ASO reads neither."""
    return _pkcs12(_encryption(password))


def _pkcs12(encryption: KeySerializationEncryption) -> bytes:
    key = rsa_key()
    return serialize_key_and_certificates(b"c", key, certificate(key), None, encryption)


def _encryption(password: bytes | None) -> KeySerializationEncryption:
    return NoEncryption() if password is None else BestAvailableEncryption(password)
