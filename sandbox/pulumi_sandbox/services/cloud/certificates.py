"""The certificate of a stand-in that speaks HTTPS, and the file by which clients trust it.

The authority can vouch for loopback only, and its key is thrown away once it has signed one certificate: to
trust it gives nobody anything to pretend with.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pulumi_sandbox import files
from pulumi_sandbox.services.ports import LOOPBACK

_VALID = timedelta(days=365)


def signed(now: datetime) -> tuple[str, str]:
    """Return the PEM of a new certificate with its key, and that of the authority which signed it."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("pulumi-sandbox authority")
    identifier = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(
            x509.NameConstraints(
                [x509.IPAddress(IPv4Network("127.0.0.0/8")), x509.DNSName("localhost")], None
            ),
            critical=True,
        )
        .add_extension(identifier, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(_name("pulumi-sandbox"), authority_name, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(LOOPBACK)), x509.DNSName("localhost")]),
            critical=False,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return _pem(certificate) + private.decode(), _pem(authority)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _VALID)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


TRUST_VARIABLE = "SSL_CERT_FILE"
"""The variable by which OpenSSL and Go are told which authorities to trust, in place of the system's."""

_RENEWED_BEFORE = timedelta(days=30)

_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where Debian, Fedora, openSUSE and Alpine keep the system's authorities, as Go looks for them."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files of a certificate, in a folder."""

    folder: Path

    @property
    def serving(self) -> Path:
        """Certificate and key of the server, for its owner alone."""
        return self.folder / "serving.pem"

    @property
    def authority(self) -> Path:
        """The authority's certificate."""
        return self.folder / "authority.pem"

    @property
    def trusted(self) -> Path:
        """The authorities the system trusts, and this one: what `TRUST_VARIABLE` may name safely."""
        return self.folder / "trusted.pem"

    def renew(self) -> None:
        """Make the certificate, unless there is one that stays valid for a while."""
        if not self._is_valid():
            serving, authority = signed(datetime.now(UTC))
            files.replace(self.authority, authority)
            files.replace(self.serving, serving, mode=files.PRIVATE)

    def trust(self, environment: Mapping[str, str]) -> None:
        """Write `trusted` anew: what the environment, or else the system, trusts, and this authority."""
        named = environment.get(TRUST_VARIABLE) or ssl.get_default_verify_paths().openssl_cafile
        bundles = [Path(path) for path in (named, *_SYSTEM_BUNDLES)]
        found = (path for path in bundles if path != self.trusted and path.is_file())
        system = next(found, None)
        others = system.read_text(encoding="utf-8") if system else ""
        files.replace(self.trusted, f"{others.rstrip()}\n{self.authority.read_text(encoding='utf-8')}")

    def _is_valid(self) -> bool:
        from cryptography import x509
        from cryptography.exceptions import InvalidSignature

        try:
            authority = x509.load_pem_x509_certificate(self.authority.read_bytes())
            present = x509.load_pem_x509_certificate(self.serving.read_bytes())
            present.verify_directly_issued_by(authority)
        except (FileNotFoundError, ValueError, InvalidSignature):
            return False
        return present.not_valid_after_utc - datetime.now(UTC) > _RENEWED_BEFORE
