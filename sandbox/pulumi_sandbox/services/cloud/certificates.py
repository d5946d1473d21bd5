"""The certificate of a stand-in that speaks HTTPS, and the file by which clients trust it.

The authority can vouch for loopback only, and its key is thrown away once it has signed one certificate: to
trust it gives nobody anything to pretend with.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pulumi_sandbox import files

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
            from pulumi_sandbox.services.cloud.signing import signed

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
