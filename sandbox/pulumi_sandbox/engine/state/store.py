"""Where a stack's state lives: the file backend of the genuine CLI, which runs on the same files unaware.

`.pulumi/meta.yaml`, `.pulumi/stacks/PROJECT/STACK.json` and its `.bak`, locks beside them. The CLI's optional
companions (`.attrs`, history, backups) are not written.
"""

from __future__ import annotations

import json
from collections.abc import Set
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from pulumi_sandbox import files
from pulumi_sandbox.engine.model.resource import Snapshot
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.state.checkpoint import Encoder, compact, decode, features, verify
from pulumi_sandbox.engine.state.lock import Owner, locked
from pulumi_sandbox.errors import SandboxError

_UNDERSTOOD: Final = frozenset({"hooks", "taint", "replaceWith"})


def state_path(backend: Path, project: str, stack: str) -> Path:
    """Return the file that holds a stack's state."""
    return backend / ".pulumi" / "stacks" / project / f"{stack}.json"


class Store:
    """One stack's state in a backend directory."""

    def __init__(self, backend: Path, project: str, stack: str, crypter: PassphraseCrypter) -> None:
        self._backend = backend
        self._project = project
        self._stack = stack
        self._crypter = crypter
        self._encoder = Encoder(crypter)
        self._backed_up = False

    @property
    def path(self) -> Path:
        """The file of the state."""
        return state_path(self._backend, self._project, self._stack)

    def locked(self) -> AbstractContextManager[tuple[Owner, ...]]:
        """Hold the stack's lock; see `lock.locked`."""
        return locked(self._backend, self._project, self._stack)

    def load(self) -> Snapshot:
        """Return the state; an empty one for a stack that has none yet.

        Raises SandboxError `state-unreadable`, `state-unsupported`, `state-invalid`, or one of
        `checkpoint.decode`.
        """
        self._refuse_other_layouts()
        try:
            file = json.loads(self.path.read_text())
            file["checkpoint"]["stack"]  # also that of a stack without resources names it
            deployment = file["checkpoint"].get("latest")
            if deployment is not None:
                deployment["manifest"]["time"]
            asked = set(file.get("features") or ())
        except FileNotFoundError:
            return Snapshot()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise SandboxError(
                code="state-unreadable",
                place=str(self.path),
                cause="it is no checkpoint",
                mend=f"restore it from {self.path.name}.bak beside it",
            ) from None
        self._refuse_unknown_features(file.get("version"), asked)
        snapshot = Snapshot() if deployment is None else decode(deployment, self._crypter)
        verify(snapshot)
        return snapshot

    def save(self, snapshot: Snapshot) -> None:
        """Replace the state; the first time, what was there before this run is kept as `.bak`.

        Raises SandboxError `disk-full`, the old state being unharmed; or `state-invalid`, when it breaks a
        rule (it is written all the same, since it may record resources that exist).
        """
        meta = self._backend / ".pulumi" / "meta.yaml"
        if not meta.exists():
            files.replace(meta, "version: 1\n")
        if not self._backed_up and self.path.exists():
            _replace(self.path.with_name(f"{self.path.name}.bak"), self.path.read_text())
        self._backed_up = True
        _replace(self.path, self._text(snapshot))
        verify(snapshot)

    def export(self, snapshot: Snapshot) -> str:
        """Return the state as `pulumi stack import` takes it, secrets encrypted."""
        return f'{{{_version(snapshot)},"deployment":{self._encoder.deployment(snapshot)}}}'

    def _text(self, snapshot: Snapshot) -> str:
        name = compact(f"organization/{self._project}/{self._stack}")
        latest = self._encoder.deployment(snapshot)
        return f'{{{_version(snapshot)},"checkpoint":{{"stack":{name},"latest":{latest}}}}}'

    def _refuse_other_layouts(self) -> None:
        meta = self._backend / ".pulumi" / "meta.yaml"
        if meta.exists() and meta.read_text().split() != ["version:", "1"]:
            raise SandboxError(
                code="state-unsupported",
                place=str(meta),
                cause="this backend has another layout than version 1",
                mend="run `pulumi state upgrade` with the Pulumi CLI",
            )
        for compressed in self.path.parent.glob(f"{self.path.name}.*"):
            if compressed.suffix in (".gz", ".zst"):
                raise SandboxError(
                    code="state-unsupported",
                    place=str(compressed),
                    cause="this engine reads and writes uncompressed states only",
                    mend="run any update with the Pulumi CLI without PULUMI_DIY_BACKEND_GZIP",
                )

    def _refuse_unknown_features(self, version: object, asked: Set[str]) -> None:
        unknown = sorted(map(str, asked - _UNDERSTOOD))
        if version not in (0, 3, 4):
            unknown.append(f"version {version}")
        if unknown:
            raise SandboxError(
                code="state-unsupported",
                place=str(self.path),
                cause=f"it needs what this engine has not: {', '.join(unknown)}",
                mend="use the Pulumi CLI for this stack",
            )


def _replace(path: Path, text: str) -> None:
    """Replace a file and drop what the CLI noted about its former content."""
    files.replace(path, text)
    path.with_name(f"{path.name}.attrs").unlink(missing_ok=True)


def _version(snapshot: Snapshot) -> str:
    needed = features(snapshot)
    return f'"version":4,"features":{compact([*needed])}' if needed else '"version":3'
