"""Which certificates the Azure SDK for Go takes, held to what `azidentity.ParseCertificates` documents."""

from __future__ import annotations

from components.aso_credentials.certificate import certificate_fault
from tests.support.cases import cases
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


@cases(
    "content, password",
    {
        "PEM": (pem(), None),
        "key first": (only_key() + without_key(), None),
        "PEM with an empty password": (pem(), b""),
        "PKCS12 with a password": (pkcs12(PASSWORD), PASSWORD),
    },
)
def test_a_certificate_with_its_key_can_be_used(content: bytes, password: bytes | None) -> None:
    assert certificate_fault(content, password) is None


@cases(
    "content, password, words",
    {
        "no key": (without_key(), None, "no private key"),
        "key alone": (only_key(), None, "no certificate"),
        "key of another": (without_key() + only_key(rsa_key(1)), None, "another certificate"),
        "encrypted PEM": (without_key() + only_key(None, PASSWORD), None, "unencrypted"),
        "two keys": (pem() + only_key(rsa_key(1)), None, "more than one"),
        "PEM with a password": (pem(), PASSWORD, "leave the password out"),
        "PKCS12 of AES and SHA-256": (modern_pkcs12(PASSWORD), PASSWORD, "-legacy"),
        "PKCS12 without a MAC": (modern_pkcs12(), None, "-legacy"),
        "wrong password": (pkcs12(PASSWORD), b"wrong", "password given"),
        "no password": (pkcs12(PASSWORD), None, "password given"),
        "empty": (b"", None, "can be parsed neither"),
        "cut off": (b"-----BEGIN CERTIFICATE-----\nx", None, "lines are not as they were"),
        "folded to blanks": (pem().replace(b"\n", b" "), None, "lines are not as they were"),
        "on one line": (pem().replace(b"\n", b""), None, "lines are not as they were"),
        "indented": (b"  " + pem().replace(b"\n", b"\n  "), None, "lines are not as they were"),
        "a leading blank": (b" " + pem(), None, "lines are not as they were"),
        "a byte order mark": (b"\xef\xbb\xbf" + pem(), None, "lines are not as they were"),
        "no line between blocks": (pem().replace(b"-\n-", b"--"), None, "lines are not as they were"),
        "noise": (b"\xff\x00", None, "can be parsed neither"),
    },
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
    assert "not an RSA key" in str(certificate_fault(content, None))
