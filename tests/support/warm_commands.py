"""`credfleet`, and scripts beside it, as processes of their own that are forked from one which imported all.

Most of the processor time of a short command is that of its imports. Whoever sends signals to a command
starts it by itself: one that is forked has another process group.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from pulumi_sandbox.services import start_zygote
from pulumi_sandbox.zygotes.address import FOLDER, forked

CREDFLEET: Final = Path(sys.executable).with_name("credfleet")

_IMPORTED: Final = (
    "asyncio",
    "grpc.aio",
    "kubernetes.client",
    "operations.main",
    "operations.pool.access",
    "operations.pool.status",
    "operations.sandbox.updates",
    "pulumi_sandbox.engine.deploy.deployment",
)


def warm(script: Path, *words: str, environment: Mapping[str, str]) -> list[str]:
    """Return the command line that has a script forked, or runs it where nobody forks in this environment."""
    command = [sys.executable, "-u", "-P", str(script), *words]
    if sys.platform != "linux" or FOLDER not in os.environ:
        return command
    folder = Path(os.environ[FOLDER]).with_name("commands")
    _have_forked(folder, tuple(sorted(environment.items())))
    return forked(command, {**environment, FOLDER: str(folder)})


@cache
def _have_forked(folder: Path, environment: tuple[tuple[str, str], ...]) -> None:
    """Start what forks, once per environment; until it listens, commands run by themselves."""
    start_zygote(folder, modules=_IMPORTED, environment=dict(environment), die_with_parent=True)
