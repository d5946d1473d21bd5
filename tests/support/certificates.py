"""Certificates made for tests, and thrown away."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import IPv4Address
from typing import Final, TypeAlias

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
_MACS: Final[Mapping[str, hashes.HashAlgorithm]] = {"sha1": hashes.SHA1(), "sha256": hashes.SHA256()}


@cache
def rsa_key(number: int = 0) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def curve_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def certificate(key: Key) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "credfleet test")])
    loopback = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.2"))])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .add_extension(loopback, critical=False)
        .sign(key, hashes.SHA256())
    )


def certificate_pem(key: Key) -> bytes:
    return certificate(key).public_bytes(Encoding.PEM)


def without_key() -> bytes:
    return certificate_pem(rsa_key())


def only_key(key: Key | None = None, password: bytes | None = None) -> bytes:
    return (key or rsa_key()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, _encryption(password))


def pem() -> bytes:
    return without_key() + only_key()


def pkcs1(password: bytes | None = None) -> bytes:
    """A key in the form of RSA alone, which is locked by a header."""
    return own_form(rsa_key(), password)


def own_form(key: Key, password: bytes | None = None) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, _encryption(password))


def noise(kind: bytes) -> bytes:
    return b"-----BEGIN " + kind + b"-----\nbm9pc2U=\n-----END " + kind + b"-----\n"


def in_one_line(text: bytes) -> bytes:
    """Return PEM whose content is not folded after 64 characters."""
    lines = text.splitlines()
    return b"".join(b"\n" + line + b"\n" if b"-----" in line else line for line in lines).lstrip()


def pkcs12(
    password: bytes,
    key: Key | None = None,
    *,
    mac: str = "sha1",
    chain: bool = False,
    name: bytes | None = b"c",
) -> bytes:
    """As `openssl pkcs12 -export -legacy` writes it: SHA-1 and triple DES."""
    builder = PrivateFormat.PKCS12.encryption_builder()
    legacy = builder.key_cert_algorithm(PBES.PBESv1SHA1And3KeyTripleDESCBC).hmac_hash(_MACS[mac])
    key = key or rsa_key()
    others = [certificate(rsa_key(1))] if chain else None
    return serialize_key_and_certificates(name, key, certificate(key), others, legacy.build(password))


def modern_pkcs12(password: bytes | None = None, *, mac: str = "sha256") -> bytes:
    """As OpenSSL writes it by default, or without encryption: the SDK of ASO reads neither."""
    modern = PrivateFormat.PKCS12.encryption_builder().key_cert_algorithm(PBES.PBESv2SHA256AndAES256CBC)
    encryption = modern.hmac_hash(_MACS[mac]).build(password) if password else NoEncryption()
    return serialize_key_and_certificates(b"c", rsa_key(), certificate(rsa_key()), None, encryption)


def _encryption(password: bytes | None) -> KeySerializationEncryption:
    return NoEncryption() if password is None else BestAvailableEncryption(password)
