"""When a certificate is made anew, what it vouches for, and what trusts it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from pulumi_sandbox import files
from pulumi_sandbox.services.cloud.certificates import Certificate, signed


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    made = Certificate(tmp_path)
    made.renew()
    return made


def contents(certificate: Certificate) -> tuple[str, str]:
    return certificate.serving.read_text(), certificate.authority.read_text()


def outdate(certificate: Certificate) -> None:
    serving, authority = signed(datetime.now(UTC) - timedelta(days=340))
    files.replace(certificate.serving, serving)
    files.replace(certificate.authority, authority)


def part_with(certificate: Certificate) -> None:
    files.replace(certificate.authority, signed(datetime.now(UTC))[1])


def spoil(certificate: Certificate) -> None:
    files.replace(certificate.serving, "nonsense")


def test_one_that_stays_valid_is_kept(certificate: Certificate):
    before = contents(certificate)
    certificate.renew()
    assert contents(certificate) == before


@pytest.mark.parametrize("spoilt", [outdate, part_with, spoil], ids=["soon over", "another's", "no PEM"])
def test_one_that_is_of_no_use_is_made_anew(certificate: Certificate, spoilt: Callable[[Certificate], None]):
    spoilt(certificate)
    before = contents(certificate)
    certificate.renew()
    serving, authority = contents(certificate)
    assert before != (serving, authority)
    leaf = x509.load_pem_x509_certificate(serving.encode())
    leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.encode()))


def test_it_vouches_for_loopback_only_and_its_key_is_its_owners(certificate: Certificate):
    made = x509.load_pem_x509_certificate(certificate.authority.read_bytes())
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["127.0.0.1", "localhost"]
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert "PRIVATE KEY" not in certificate.authority.read_text()
    assert certificate.serving.stat().st_mode & 0o777 == 0o600


def test_what_is_trusted_is_what_was_trusted_before_and_this_authority(
    certificate: Certificate, tmp_path: Path
):
    other = Certificate(tmp_path / "other")
    other.renew()
    certificate.trust({"SSL_CERT_FILE": str(other.authority)})
    texts = (each.authority.read_text() for each in (other, certificate))
    assert certificate.trusted.read_text() == "".join(texts)


def test_trusting_again_from_an_environment_that_trusts_already_adds_nothing(
    certificate: Certificate,
):
    certificate.trust({})
    before = certificate.trusted.read_text()
    certificate.trust({"SSL_CERT_FILE": str(certificate.trusted)})
    assert certificate.trusted.read_text() == before
