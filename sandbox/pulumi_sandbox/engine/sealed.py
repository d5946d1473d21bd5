"""A stack whose secrets nobody here can decrypt: its state as it was recorded, and texts that stand in.

What a stack file holds encrypted is decrypted to what a function says of its ciphertext. What stands in for
the secrets of the state was put there when it was recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from pulumi_sandbox.engine.model.resource import Snapshot
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.state.checkpoint import Encoder, decode, verify


class StandIns(PassphraseCrypter):
    """Decrypts nothing: what stands in for a ciphertext is said by a function of it."""

    __slots__ = ("_stand_in",)

    def __init__(self, stand_in: Callable[[str], str]) -> None:
        """Take the function."""
        self._stand_in = stand_in
        self.salt = ""

    def encrypt(self, plaintext: str, *, place: str = "") -> str:
        """Return it as it is: it stands in already."""
        del place
        return plaintext

    def decrypt(self, ciphertext: str, *, place: str = "") -> str:
        """Return what stands in."""
        del place
        return self._stand_in(ciphertext)


def recorded(deployment: Mapping[str, Any], stand_in: Callable[[str], str] = str) -> Snapshot:
    """Read a deployment whose secrets are written in plain, or as what stands in for them.

    stand_in: of a secret that is encrypted after all.

    Raises:
        SandboxError: as `decode` and `verify`.
    """
    found = {key: value for key, value in deployment.items() if key != "secrets_providers"}
    snapshot = decode(found, StandIns(stand_in))
    verify(snapshot)
    return snapshot


def written(snapshot: Snapshot) -> dict[str, Any]:
    """Write a deployment whose secrets stand in for others."""
    text = json.loads(Encoder(StandIns(str)).deployment(snapshot))
    return {key: value for key, value in cast("dict[str, Any]", text).items() if key != "secrets_providers"}
