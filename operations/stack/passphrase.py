"""Passphrase encryption in the format of the Pulumi CLI, so that either can read what the other wrote.

Key: PBKDF2-HMAC-SHA256, 1,000,000 rounds, 32 bytes. Value: `v1:NONCE:SEALED`, both base64, AES-256-GCM
without associated data. The salt's text is `v1:SALT:` and the encryption of a known word, by which a wrong
passphrase is detected.
"""

from __future__ import annotations

import hashlib
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from components.errors import CredfleetError

_ROUNDS: Final = 1_000_000
_PROBE: Final = "pulumi"
_VARIABLE: Final = "PULUMI_CONFIG_PASSPHRASE"


class PassphraseCrypter:
    """Encrypts and decrypts texts with one passphrase and salt."""

    __slots__ = ("_cipher", "salt")

    def __init__(self, *, key: bytes, salt: str) -> None:
        """Use `new` or `open`, which derive the key."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(key)
        self.salt = salt

    @classmethod
    def new(cls, passphrase: str) -> PassphraseCrypter:
        """Create one with a new salt. Takes about 0.3 s of one core, without holding the GIL."""
        salt = os.urandom(8)
        crypter = cls(key=_derive(passphrase, salt), salt="")
        crypter.salt = f"v1:{_text(salt)}:{crypter.encrypt(_PROBE)}"
        return crypter

    @classmethod
    def open(cls, salt: str, passphrase: str, place: str = _VARIABLE) -> PassphraseCrypter:
        """Create one with the salt of a stack file or a state. Takes as long as `new`.

        place: the source of the passphrase. Raises CredfleetError `wrong-passphrase`, or `salt-unreadable` if
        the text is not such a salt.
        """
        version, _, rest = salt.partition(":")
        encoded, _, probe = rest.partition(":")
        try:
            raw = b64decode(encoded, validate=True)
        except ValueError:
            raw = b""
        if version != "v1" or not raw or not probe:
            raise CredfleetError(
                code="salt-unreadable",
                place="encryptionsalt",
                problem="it is not of the form v1:SALT:v1:NONCE:SEALED",
                fix="restore the line from version control; nothing encrypted can be read without it",
            )
        crypter = cls(key=_derive(passphrase, raw), salt=salt)
        try:
            fits = crypter.decrypt(probe) == _PROBE
        except CredfleetError:
            fits = False
        if not fits:
            raise CredfleetError(
                code="wrong-passphrase",
                place=place,
                problem="the passphrase does not fit this stack's encryptionsalt",
                fix="unset it if the stack is dev, otherwise set the passphrase it was made with"
                if place.startswith(_VARIABLE)
                else f"set {_VARIABLE} to the passphrase it was made with",
            )
        return crypter

    def encrypt(self, plaintext: str) -> str:
        """Return the ciphertext."""
        nonce = os.urandom(12)
        return f"v1:{_text(nonce)}:{_text(self._cipher.encrypt(nonce, plaintext.encode(), None))}"

    def decrypt(self, ciphertext: str) -> str:
        """Return the plaintext.

        Raises CredfleetError `ciphertext-unreadable` if it is damaged or was encrypted with another
        passphrase.
        """
        from cryptography.exceptions import InvalidTag

        version, _, rest = ciphertext.partition(":")
        nonce, _, sealed = rest.partition(":")
        try:
            if version == "v1":
                return self._cipher.decrypt(b64decode(nonce), b64decode(sealed), None).decode()
        except (InvalidTag, ValueError):
            pass
        raise CredfleetError(
            code="ciphertext-unreadable",
            place="an encrypted value",
            problem="it was damaged, or encrypted under another passphrase or salt",
            fix="restore the value, or set it again with `pulumi config set --secret`",
        )


def _derive(passphrase: str, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, _ROUNDS, 32)


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def name_source(public: Path | None, environment: Mapping[str, str] = os.environ) -> str:
    """Return the source of `find_passphrase`: a variable, or the file of the public passphrase."""
    if _VARIABLE in environment:
        return _VARIABLE
    return f"{_VARIABLE}_FILE" if environment.get(f"{_VARIABLE}_FILE") else str(public or _VARIABLE)


def find_passphrase(
    stack: str, public: Path | None = None, environment: Mapping[str, str] = os.environ
) -> str:
    """Return the passphrase of a stack.

    It is the value of PULUMI_CONFIG_PASSPHRASE, the content of the file named by
    PULUMI_CONFIG_PASSPHRASE_FILE, or the public one. Raises CredfleetError `passphrase-missing`.
    """
    passphrase = environment.get("PULUMI_CONFIG_PASSPHRASE")
    if passphrase is not None:
        return passphrase
    named = environment.get("PULUMI_CONFIG_PASSPHRASE_FILE")
    path = Path(named) if named else public
    if path and path.is_file():
        with suppress(OSError, UnicodeDecodeError):
            return path.read_text(encoding="utf-8").strip()
    raise CredfleetError(
        code="passphrase-missing",
        place=str(path) if named else f"stack {stack}",
        problem="this file is not there, or cannot be read as UTF-8"
        if named
        else "its secrets are encrypted, and no passphrase is given",
        fix="set PULUMI_CONFIG_PASSPHRASE, or PULUMI_CONFIG_PASSPHRASE_FILE to a file that holds it",
    )
