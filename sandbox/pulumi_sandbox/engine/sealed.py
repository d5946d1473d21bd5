"""A stack whose secrets nobody here can decrypt: its state as it was recorded, and texts that stand in.

What a stack file holds encrypted is decrypted to what a function says of its ciphertext. What stands in for
the secrets of the state was put there when it was recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from pulumi_sandbox.engine.model.resource import Snapshot
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.project.program_config import ProgramConfig
from pulumi_sandbox.engine.state.checkpoint import Encoder, decode, verify
from pulumi_sandbox.engine.state.store import Store
from pulumi_sandbox.engine.workspace import StackAtRest, Workspace

_OPEN: Final = re.compile(r"(?<=127\.0\.0\.1):0(?![0-9])")


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


class _RecordedState(Store):
    """A state that is read only."""

    def __init__(self, folder: Path, project: str, stack: str, snapshot: Snapshot) -> None:
        super().__init__(folder, project, stack, StandIns(str))
        self._snapshot = snapshot

    def load(self) -> Snapshot:
        """Return it."""
        return self._snapshot


@dataclass(frozen=True, slots=True)
class _WithoutKeys(Workspace):
    """A stack that asks nobody, so that a port which its file leaves open may be any."""

    def config(self) -> ProgramConfig:
        """Return what the program is given, no port left open."""
        config = Workspace.config(self)
        return replace(config, values={key: _OPEN.sub(":1", text) for key, text in config.values.items()})


def without_keys(
    at_rest: StackAtRest, snapshot: Snapshot, stand_in: Callable[[str], str], folder: Path
) -> Workspace:
    """Return a stack to be previewed, with nothing that could decrypt. folder: for the logs."""
    store = _RecordedState(folder, at_rest.project.name, at_rest.stack, snapshot)
    return _WithoutKeys(at_rest.project, at_rest.stack, at_rest.stack_file, StandIns(stand_in), store)


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
