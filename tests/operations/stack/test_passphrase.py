"""Encryption with a passphrase, as the Pulumi CLI has it."""

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from components.errors import CredfleetError
from operations.stack.passphrase import PassphraseCrypter

PASSPHRASE = "correct horse"

# Written by the CLI, v3.272.0: `stack init`, then `config set --secret tok s3cret-token`.
_GENUINE_PASSPHRASE = "genuine"
_GENUINE_SALT = "v1:fmj6JWGpARc=:v1:h9OzMqf93Mlj9l8O:Ruf8Fy7T50uoKWCOWamtdyuLiLh1hg=="
_GENUINE_VALUE = "v1:hbDgb8xZJCi0SN7K:wxAlfdzNdIAffQ4rZFwCmmmvcYtRhRN9Ycg1AQ=="


@pytest.fixture(scope="module")
def crypter() -> PassphraseCrypter:
    """Return the crypter of `PASSPHRASE`, whose key takes long to derive."""
    return PassphraseCrypter.new(PASSPHRASE)


def test_what_the_cli_encrypted_is_read():
    crypter = PassphraseCrypter.open(_GENUINE_SALT, _GENUINE_PASSPHRASE)
    assert crypter.decrypt(_GENUINE_VALUE) == "s3cret-token"


def test_a_value_is_sealed_as_the_format_says(crypter: PassphraseCrypter):
    version, salt, *probe = crypter.salt.split(":")
    key = hashlib.pbkdf2_hmac("sha256", PASSPHRASE.encode(), base64.b64decode(salt), 1_000_000, 32)

    def opened(sealed: list[str]) -> bytes:
        mark, nonce, text = sealed
        assert mark == "v1"
        return AESGCM(key).decrypt(base64.b64decode(nonce), base64.b64decode(text), None)

    assert version == "v1"
    assert len(base64.b64decode(salt)) == 8
    assert opened(probe) == b"pulumi"
    assert opened(crypter.encrypt("hé").split(":")) == "hé".encode()


def test_a_wrong_passphrase_is_told_before_anything_is_read(crypter: PassphraseCrypter):
    with pytest.raises(CredfleetError) as caught:
        PassphraseCrypter.open(crypter.salt, "wrong")
    assert caught.value.code == "wrong-passphrase"


@pytest.mark.parametrize("salt", ["", "v1:", "v1:c2FsdA==", "v2:c2FsdA==:v1:x:y", "v1:??:v1:x:y"])
def test_a_salt_that_is_none_is_refused(salt: str):
    with pytest.raises(CredfleetError) as caught:
        PassphraseCrypter.open(salt, "any")
    assert caught.value.code == "salt-unreadable"


@pytest.mark.parametrize("damaged", ["", "v1:AAAA", "v1:AAAAAAAAAAAAAAAA:AAAA", "v2:x:y", "v1:?:?"])
def test_a_damaged_ciphertext_is_told(damaged: str, crypter: PassphraseCrypter):
    with pytest.raises(CredfleetError) as caught:
        crypter.decrypt(damaged)
    assert caught.value.code == "ciphertext-unreadable"
