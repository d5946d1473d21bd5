from __future__ import annotations

import pytest

from components.aso_credentials.certificate import certificate_fault
from tests.support.certificates import (
    certificate,
    curve_key,
    modern_pkcs12,
    only_key,
    pem,
    pkcs12,
    rsa_key,
    without_key,
)

PASSWORD = b"a password of tests"


@pytest.mark.parametrize(
    ("content", "password"),
    [
        pytest.param(pem(), None, id="M9-pem"),
        pytest.param(only_key() + without_key(), None, id="M9-key-first"),
        pytest.param(pem(), b"", id="pem-with-an-empty-password"),
        pytest.param(pkcs12(PASSWORD), PASSWORD, id="pkcs12-with-password"),
    ],
)
def test_a_certificate_with_its_key_can_be_used(content: bytes, password: bytes | None) -> None:
    assert certificate_fault(content, password) is None


@pytest.mark.parametrize(
    ("content", "password", "words"),
    [
        pytest.param(without_key(), None, "no private key", id="M10"),
        pytest.param(only_key(), None, "no certificate", id="key-alone"),
        pytest.param(without_key() + only_key(rsa_key(1)), None, "another certificate", id="key-of-another"),
        pytest.param(without_key() + only_key(None, PASSWORD), None, "unencrypted", id="encrypted-pem"),
        pytest.param(pem() + only_key(rsa_key(1)), None, "more than one", id="two-keys"),
        pytest.param(pem(), PASSWORD, "leave the password out", id="pem-with-a-password"),
        pytest.param(modern_pkcs12(PASSWORD), PASSWORD, "-legacy", id="pkcs12-of-aes-and-sha256"),
        pytest.param(modern_pkcs12(), None, "-legacy", id="pkcs12-without-a-mac"),
        pytest.param(pkcs12(PASSWORD), b"wrong", "password given", id="wrong-password"),
        pytest.param(pkcs12(PASSWORD), None, "password given", id="password-missing"),
        pytest.param(b"", None, "can be parsed neither", id="empty"),
        pytest.param(b"-----BEGIN CERTIFICATE-----\nx", None, "can be parsed neither", id="cut-off"),
        pytest.param(b"\xff\x00", None, "can be parsed neither", id="noise"),
    ],
)
def test_what_the_sdk_would_refuse_is_told_without_a_value(
    content: bytes, password: bytes | None, words: str
) -> None:
    fault = certificate_fault(content, password)
    assert words in str(fault)
    assert PASSWORD.decode() not in str(fault)


def test_a_key_that_is_not_rsa_is_refused() -> None:
    from cryptography.hazmat.primitives.serialization import Encoding

    content = certificate(curve_key()).public_bytes(Encoding.PEM) + only_key(curve_key())
    assert "no RSA key" in str(certificate_fault(content, None))
