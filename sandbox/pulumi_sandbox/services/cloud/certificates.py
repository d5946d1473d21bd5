"""The certificate of an HTTPS emulator, and the file with which clients trust it.

It is self-signed, and only valid for loopback: trusting it does not allow anyone to impersonate others.
"""

import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pulumi_sandbox import files
from pulumi_sandbox.services.ports import LOOPBACK

_VALID = timedelta(days=365)


def signed(now: datetime) -> tuple[str, str]:
    """Return the PEM of a new self-signed certificate with its key, and of the certificate alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pulumi-sandbox")])
    alternatives = [x509.IPAddress(IPv4Address(LOOPBACK)), x509.DNSName("localhost")]
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    known_by = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _VALID)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(known_by, critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = certificate.public_bytes(serialization.Encoding.PEM).decode()
    return public + private.decode(), public


TRUST_VARIABLE = "SSL_CERT_FILE"
"""Variable with the authorities that OpenSSL and Go trust, instead of the system's."""

_RENEWED_BEFORE = timedelta(days=30)

_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Files with the system's authorities in Debian, Fedora, openSUSE and Alpine, as in Go."""


class Certificate:
    """The files of a certificate, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.serving = folder / "serving.pem"  # certificate and key of the server, private to its owner
        self.authority = folder / "authority.pem"  # the certificate alone
        self.trusted = folder / "trusted.pem"  # the system's authorities and this one: for `TRUST_VARIABLE`

    def renew(self) -> None:
        """Create the certificate, unless there is one that stays valid for a while."""
        if not self._is_valid():
            serving, authority = signed(datetime.now(UTC))
            files.replace(self.authority, authority)
            files.replace(self.serving, serving, mode=files.PRIVATE)

    def trust(self, environment: Mapping[str, str]) -> None:
        """Rewrite `trusted`: the authorities of the environment or the system, and this one."""
        named = environment.get(TRUST_VARIABLE) or ssl.get_default_verify_paths().openssl_cafile
        bundles = [Path(path) for path in (named, *_SYSTEM_BUNDLES)]
        found = (path for path in bundles if path != self.trusted and path.is_file())
        system = next(found, None)
        others = system.read_text(encoding="utf-8") if system else ""
        files.replace(self.trusted, f"{others.rstrip()}\n{self.authority.read_text(encoding='utf-8')}")

    def _is_valid(self) -> bool:
        try:
            authority = x509.load_pem_x509_certificate(self.authority.read_bytes())
            present = x509.load_pem_x509_certificate(self.serving.read_bytes())
            present.verify_directly_issued_by(authority)
        except (FileNotFoundError, ValueError, InvalidSignature):
            return False
        return present.not_valid_after_utc - datetime.now(UTC) > _RENEWED_BEFORE
