"""Where a stack's state lives: the file backend of the genuine CLI, which runs on the same files unaware.

`.pulumi/meta.yaml`, `.pulumi/stacks/PROJECT/STACK.json` and its `.bak`, locks beside them, and the history.
The CLI's other companions (`.attrs`, backups) are not written. While a run changes a large state, what it
does stands in `STACK.json.steps`, which the CLI does not know: that is folded into the state when the run
ends, or when the next begins.
"""

from __future__ import annotations

import json
import os
from collections.abc import Set
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, ClassVar, Final

from pulumi_sandbox import files
from pulumi_sandbox.engine.model.resource import Snapshot
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.project.project_file import NAME
from pulumi_sandbox.engine.state.checkpoint import Encoder, compact, decode, features, verify
from pulumi_sandbox.engine.state.lock import Owner, locked
from pulumi_sandbox.engine.state.moving import journal_of, refuse_unfinished
from pulumi_sandbox.engine.state.steps_file import StepsFile, digest, followed
from pulumi_sandbox.errors import SandboxError

_UNDERSTOOD: Final = frozenset({"hooks", "taint", "replaceWith"})


def state_path(backend: Path, project: str, stack: str) -> Path:
    """Return the file that holds a stack's state."""
    return backend / ".pulumi" / "stacks" / project / f"{stack}.json"


class Store:
    """One stack's state in a backend directory.

    path: the file of the state. large: how many characters a state has whose changes are written beside it.
    """

    large: ClassVar = 1 << 20

    def __init__(self, backend: Path, project: str, stack: str, crypter: PassphraseCrypter) -> None:
        self._backend = backend
        self._project = project
        self._stack = stack
        self._crypter = crypter
        self._encoder = Encoder(crypter)
        self.path: Final = state_path(backend, project, stack)
        self._path_of_steps: Final = self.path.with_name(f"{self.path.name}.steps")
        self._backed_up = False
        self._steps: StepsFile | None = None
        self._length = 0
        self._unfolded: Snapshot | None = None
        self._read: tuple[str, Snapshot] | None = None

    def beside(self, stack: str) -> Store:
        """Return the state of another stack of the project, encrypted with the same key."""
        return Store(self._backend, self._project, stack, self._crypter)

    @property
    def has_steps(self) -> bool:
        """Whether changes lie beside the state that the CLI does not know."""
        return self._path_of_steps.exists()

    @property
    def journal(self) -> Path:
        """The file that says which states of the project are being replaced together."""
        return journal_of(self._backend, self._project)

    def locked(self) -> AbstractContextManager[tuple[Owner, ...]]:
        """Hold the stack's lock; see `lock.locked`."""
        return locked(self._backend, self._project, self._stack)

    def load(self) -> Snapshot:
        """Return the state; an empty one for a stack that has none yet. The same texts are decoded once.

        Raises SandboxError `state-unreadable`, `state-unsupported`, `state-invalid`, `move-unfinished`, or
        one of `checkpoint.decode`.
        """
        self._refuse_other_layouts()
        refuse_unfinished(self.journal, self.path)
        try:
            text, steps = self._texts()
            known = digest(f"{text}\0{steps}")
            if self._read is not None and self._read[0] == known:
                return self._read[1]
            file = json.loads(text)
            file["checkpoint"]["stack"]  # also that of a stack without resources names it
            deployment = file["checkpoint"].get("latest")
            if deployment is not None:
                deployment["manifest"]["time"]
                deployment = self._followed(text, steps, deployment)
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
        self._read = known, snapshot
        return snapshot

    def state_of(self, name: str) -> Snapshot | None:
        """Return the state of any stack of this backend; None for one that is not there.

        name: as the CLI's file backend takes it, `stack`, `organization/stack` or
        `organization/project/stack`.
        Raises SandboxError `stack-name-invalid`, and as `load`.
        """
        match name.split("/"):
            case [stack] | [_, stack]:
                project = self._project
            case [_, project, stack]:
                pass
            case _:
                project = stack = ""
        cause = ""
        if "/" in name and stack and not name.startswith(("organization/", "/")):
            cause = "organization name must be 'organization'"
        elif not all(map(NAME.fullmatch, (project, stack))):
            cause = "names have 1 to 100 letters, digits, hyphens, underscores and periods"
        if cause:
            raise SandboxError(
                code="stack-name-invalid",
                place="its name",
                cause=cause,
                mend="write stack, or organization/project/stack",
            )
        other = Store(self._backend, project, stack, self._crypter)
        return other.load() if other.path.exists() else None

    def save(self, snapshot: Snapshot) -> None:
        """Replace the state; the first time, what was there before this run is kept as `.bak`.

        Of a large one only what is new is written, until that is as much again: `fold` writes it whole.
        Raises SandboxError `disk-full`, the old state being unharmed; or `state-invalid`, when it breaks a
        rule (it is written all the same, since it may record resources that exist).
        """
        steps, self._steps = self._steps, None
        if steps is None or steps.size >= self._length:
            self._write(snapshot)
        else:
            steps.save(snapshot, self._encoder.record)
            self._steps, self._unfolded = steps, snapshot

    def fold(self) -> None:
        """Write whole what is not: at the end of a run, and at the start, what a killed one left.

        Raises as `save` does, and as `load`.
        """
        snapshot = self._unfolded
        if snapshot is None and self._path_of_steps.exists():
            snapshot = self.load()
        if snapshot is not None:
            self._write(snapshot)
        self._steps = None

    def _write(self, snapshot: Snapshot) -> None:
        meta = self._backend / ".pulumi" / "meta.yaml"
        if not meta.exists():
            files.replace(meta, "version: 1\n")
        if not self._backed_up and self.path.exists():
            _replace(self.path.with_name(f"{self.path.name}.bak"), self.path.read_text())
        self._backed_up = True
        text = self._text(snapshot)
        if self._path_of_steps.exists():
            StepsFile.fold(self._path_of_steps, text)
        _replace(self.path, text)
        self._path_of_steps.unlink(missing_ok=True)
        self._unfolded, self._length = None, len(text)
        self._steps = StepsFile(self._path_of_steps, text, snapshot) if len(text) >= self.large else None
        verify(snapshot)

    def texts(self, snapshot: Snapshot) -> dict[Path, str]:
        """Return what `save` would write, by file, for states that change together; fold before.

        Raises SandboxError `state-invalid`.
        """
        verify(snapshot)
        kept = (
            {self.path.with_name(f"{self.path.name}.bak"): self.path.read_text()}
            if self.path.exists()
            else {}
        )
        return {**kept, self.path: self._text(snapshot)}

    def export(self, snapshot: Snapshot) -> str:
        """Return the state as `pulumi stack import` takes it, secrets encrypted."""
        return f'{{{_version(snapshot)},"deployment":{self._encoder.deployment(snapshot)}}}'

    def _text(self, snapshot: Snapshot) -> str:
        return _text_of(self._project, self._stack, snapshot, self._encoder)

    def _texts(self) -> tuple[str, str]:
        """Return the state and the steps behind it, of one moment: a run may be folding them."""
        while True:
            before, text, steps = self.path.stat(), self.path.read_text(), ""
            with suppress(FileNotFoundError):
                steps = self._path_of_steps.read_text()
            if os.path.samestat(before, self.path.stat()):
                return text, steps

    def _followed(self, text: str, steps: str, deployment: dict[str, Any]) -> dict[str, Any]:
        """Return what the state and the steps behind it come to."""
        found = followed(steps, text, deployment)
        if found is None:
            raise SandboxError(
                code="state-invalid",
                place=str(self._path_of_steps),
                cause="a run that was killed left it, and another tool has changed the state since",
                mend=f"restore {self.path.name} as that run left it; or delete this file and run refresh:"
                " what it alone records is no longer known then",
            )
        return found

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


def state_text(project: str, stack: str, snapshot: Snapshot, crypter: PassphraseCrypter) -> str:
    """Return the file of a state as the CLI's backends keep it."""
    return _text_of(project, stack, snapshot, Encoder(crypter))


def _text_of(project: str, stack: str, snapshot: Snapshot, encoder: Encoder) -> str:
    name, latest = compact(f"organization/{project}/{stack}"), encoder.deployment(snapshot)
    return f'{{{_version(snapshot)},"checkpoint":{{"stack":{name},"latest":{latest}}}}}'
