"""Encryption with a passphrase (sandbox/docs/engine-facts.md, the format of the state)."""

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.errors import SandboxError

from sandbox.tests.engine.conftest import PASSPHRASE

# Written by the genuine CLI, v3.272.0: `stack init`, then `config set --secret tok s3cret-token`.
_GENUINE_PASSPHRASE = "genuine"
_GENUINE_SALT = "v1:fmj6JWGpARc=:v1:h9OzMqf93Mlj9l8O:Ruf8Fy7T50uoKWCOWamtdyuLiLh1hg=="
_GENUINE_VALUE = "v1:hbDgb8xZJCi0SN7K:wxAlfdzNdIAffQ4rZFwCmmmvcYtRhRN9Ycg1AQ=="


def test_what_the_genuine_cli_encrypted_is_read():
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


@given(st.text())
def test_any_text_can_be_encrypted_and_read_again(text: str):
    assert _CRYPTER.decrypt(_CRYPTER.encrypt(text)) == text


def test_an_unchanged_text_keeps_its_ciphertext_where_it_stands(crypter: PassphraseCrypter):
    first = crypter.encrypt("x", place="a")
    assert crypter.encrypt("x", place="a") == first
    assert crypter.encrypt("x", place="b") != first
    assert crypter.encrypt("y", place="a") != first


def test_a_ciphertext_that_was_read_is_carried_over():
    written = _CRYPTER.encrypt("carried", place="elsewhere")
    assert _CRYPTER.decrypt(written, place="here") == "carried"
    assert _CRYPTER.encrypt("carried", place="here") == written


def test_a_wrong_passphrase_is_told_before_anything_is_read(crypter: PassphraseCrypter):
    with pytest.raises(SandboxError) as caught:
        PassphraseCrypter.open(crypter.salt, "wrong")
    assert caught.value.code == "wrong-passphrase"


@pytest.mark.parametrize("salt", ["", "v1:", "v1:c2FsdA==", "v2:c2FsdA==:v1:x:y", "v1:??:v1:x:y"])
def test_a_salt_that_is_none_is_refused(salt: str):
    with pytest.raises(SandboxError) as caught:
        PassphraseCrypter.open(salt, "any")
    assert caught.value.code == "salt-unreadable"


@pytest.mark.parametrize("damaged", ["", "v1:AAAA", "v1:AAAAAAAAAAAAAAAA:AAAA", "v2:x:y", "v1:?:?"])
def test_a_damaged_ciphertext_is_told_with_its_place(damaged: str, crypter: PassphraseCrypter):
    with pytest.raises(SandboxError) as caught:
        crypter.decrypt(damaged, place="shop:token")
    assert caught.value.code == "ciphertext-unreadable"
    assert caught.value.place == "shop:token"


def test_another_salt_of_the_same_passphrase_can_be_opened(crypter: PassphraseCrypter):
    other = PassphraseCrypter.new(PASSPHRASE)
    assert crypter.reopened(other.salt).decrypt(other.encrypt("x")) == "x"
    assert crypter.reopened(crypter.salt) is crypter


_CRYPTER = PassphraseCrypter(passphrase="", key=bytes(32), salt="")
