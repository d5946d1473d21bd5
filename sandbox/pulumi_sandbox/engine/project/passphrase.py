"""Encryption with a passphrase, in the genuine CLI's own form, so that either reads what the other wrote.

Key: PBKDF2-HMAC-SHA256, 1,000,000 rounds, 32 bytes. Value: `v1:NONCE:SEALED`, both base64, AES-256-GCM
without associated data. The salt's text is `v1:SALT:` and the encryption of a known word, which tells a wrong
passphrase.
See sandbox/docs/engine-facts.md, the format of the state.
"""

from __future__ import annotations

import base64
import hashlib
import os
from typing import Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Json

_ROUNDS: Final = 1_000_000
_PROBE: Final = "pulumi"


class PassphraseCrypter:
    """Encrypts and decrypts texts under one passphrase and salt.

    An unchanged text at an unchanged place keeps its ciphertext: a state nobody changed stays the same, byte
    for byte. No two places tell by their ciphertext that they hold the same.
    """

    __slots__ = ("_cipher", "_passphrase", "_sealed", "salt")

    def __init__(self, *, passphrase: str, key: bytes, salt: str) -> None:
        """Use `new` or `open`, which derive the key."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._passphrase = passphrase
        self._cipher = AESGCM(key)
        self._sealed: dict[tuple[str, str], str] = {}
        self.salt = salt

    @classmethod
    def new(cls, passphrase: str) -> PassphraseCrypter:
        """Start with a fresh salt. Takes about 0.3 s of one core, without holding the interpreter's lock."""
        salt = os.urandom(8)
        crypter = cls(passphrase=passphrase, key=_derive(passphrase, salt), salt="")
        crypter.salt = f"v1:{_text(salt)}:{crypter._seal(_PROBE)}"
        return crypter

    @classmethod
    def open(cls, salt: str, passphrase: str) -> PassphraseCrypter:
        """Continue with the salt of a stack file or a state. Takes as long as `new`.

        Raises SandboxError `wrong-passphrase`, or `salt-unreadable` when the text is no such salt.
        """
        version, _, rest = salt.partition(":")
        encoded, _, probe = rest.partition(":")
        try:
            raw = base64.b64decode(encoded, validate=True)
        except ValueError:
            raw = b""
        if version != "v1" or not raw or not probe:
            raise SandboxError(
                code="salt-unreadable",
                place="encryptionsalt",
                cause="it is not of the form v1:SALT:v1:NONCE:SEALED",
                mend="restore the line from version control; nothing encrypted can be read without it",
            )
        crypter = cls(passphrase=passphrase, key=_derive(passphrase, raw), salt=salt)
        if crypter._unseal(probe) != _PROBE:
            raise SandboxError(
                code="wrong-passphrase",
                place="PULUMI_CONFIG_PASSPHRASE",
                cause="the passphrase does not fit this stack's encryptionsalt",
                mend="unset it if the stack is dev, otherwise set the passphrase it was made with",
            )
        return crypter

    def reopened(self, salt: str) -> PassphraseCrypter:
        """Return the crypter of another salt under the same passphrase; itself if the salt is its own."""
        return self if salt == self.salt else PassphraseCrypter.open(salt, self._passphrase)

    @property
    def state(self) -> dict[str, Json]:
        """What a state records, to be opened with the passphrase alone."""
        return {"type": "passphrase", "state": {"salt": self.salt}}

    def encrypt(self, plaintext: str, *, place: str = "") -> str:
        """Return the ciphertext; the one seen before, when this place held this text before."""
        known = self._sealed.get((place, plaintext))
        if known is None:
            known = self._sealed[place, plaintext] = self._seal(plaintext)
        return known

    def decrypt(self, ciphertext: str, *, place: str = "") -> str:
        """Return the text and remember its ciphertext for this place.

        Raises SandboxError `ciphertext-unreadable`, when it was damaged or encrypted under another
        passphrase.
        """
        plaintext = self._unseal(ciphertext)
        if plaintext is None:
            raise SandboxError(
                code="ciphertext-unreadable",
                place=place or "an encrypted value",
                cause="it was damaged, or encrypted under another passphrase or salt",
                mend="restore the value, or set it again with `pulumi config set --secret`",
            )
        self._sealed[place, plaintext] = ciphertext
        return plaintext

    def _seal(self, plaintext: str) -> str:
        nonce = os.urandom(12)
        return f"v1:{_text(nonce)}:{_text(self._cipher.encrypt(nonce, plaintext.encode(), None))}"

    def _unseal(self, ciphertext: str) -> str | None:
        from cryptography.exceptions import InvalidTag

        version, _, rest = ciphertext.partition(":")
        nonce, _, sealed = rest.partition(":")
        if version != "v1":
            return None
        try:
            return self._cipher.decrypt(base64.b64decode(nonce), base64.b64decode(sealed), None).decode()
        except (InvalidTag, ValueError):
            return None


def _derive(passphrase: str, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, _ROUNDS, 32)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
