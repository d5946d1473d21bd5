"""A stack of the project here, at rest, and what it exports."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Json, Properties, masked

from operations.folders import Folders
from operations.stack.at_rest import StackAtRest, find_backend
from operations.stack.state import Snapshot


def stack_of(folders: Folders, stack: str, environment: Mapping[str, str] = os.environ) -> StackAtRest:
    """Read what the files say of a stack of the project; its state is that of PULUMI_BACKEND_URL, if named.

    Raises CredfleetError as `find_backend` and `StackAtRest.find`.
    """
    backend = find_backend(folders.backend, environment)
    return StackAtRest.find(folders.project, stack, backend_dir=backend)


def stack_here(stack: str) -> StackAtRest:
    """Read what the files say of a stack of the project here; raises as `Folders.find` and `stack_of`."""
    return stack_of(Folders.find(Path.cwd()), stack)


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
