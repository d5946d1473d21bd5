"""A stack's state and configuration at rest: shown, carried out and in, changed; no engine runs."""

from __future__ import annotations

import json
from pathlib import Path

from pulumi_sandbox.engine import Snapshot, StackAtRest, Workspace, find_backend
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Json, Properties, masked

from operations.folders import Folders


def open_workspace(folders: Folders, stack: str) -> Workspace:
    """Open a stack of the project, as the Pulumi CLI's own variables say or else the sandbox's defaults.

    Raises:
        SandboxError: as `find_backend` and `Workspace.open`.
    """
    return Workspace.open(
        folders.project,
        stack,
        backend_dir=find_backend(folders.backend),
        public_passphrase=folders.public_passphrase(stack),
    )


def stack_here(stack: str) -> StackAtRest:
    """Read what the files say of a stack of the project around here; no key is needed.

    Raises:
        SandboxError: as `Folders.find`, `find_backend` and `StackAtRest.find`.
    """
    folders = Folders.find(Path.cwd())
    return StackAtRest.find(folders.project, stack, backend_dir=find_backend(folders.backend))


def outputs(snapshot: Snapshot) -> Properties:
    """Return what a stack exports."""
    stacks = (each for each in snapshot.resources if each.type == urns.ROOT_STACK_TYPE)
    return next((stack.outputs for stack in stacks), {})


def shown_outputs(snapshot: Snapshot) -> dict[str, Json]:
    """Return what a stack exports, secrets masked, in order of name."""
    return {key: masked(value) for key, value in sorted(outputs(snapshot).items())}


def as_text(value: Json) -> str:
    """Return a value as people read it: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else _ordered(value)


def _ordered(value: Json) -> str:
    """Write JSON with keys in order: a program's objects come in another order each time."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
