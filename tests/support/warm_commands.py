"""`credfleet`, forked from a process which has imported what its commands need.

Most of the processor time of a short command is that of its imports. Whoever sends signals to a command
starts it by itself: one that is forked has another process group.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pulumi_sandbox.services import start_zygote
from pulumi_sandbox.zygotes.address import FOLDER, forked, socket_of

CREDFLEET: Final = Path(sys.executable).with_name("credfleet")

_IMPORTED: Final = (
    "asyncio",
    "grpc.aio",
    "jinja2",
    "kubernetes.client",
    "operations.main",
    "operations.config.commands",
    "operations.pool.access",
    "operations.pool.commands",
    "operations.pool.status",
    "operations.sandbox.commands",
    "operations.sandbox.updates",
    "pulumi.automation",
)
"""What commands import, in their order."""
_STARTED: Final[set[Path]] = set()


def warm(script: Path, *words: str, environment: Mapping[str, str]) -> list[str]:
    """Return the command line that has a script forked, or runs it where nobody forks in this environment."""
    command = [sys.executable, "-u", "-P", str(script), *words]
    if sys.platform != "linux" or FOLDER not in os.environ:
        return command
    folder = Path(os.environ[FOLDER]).with_name("commands")
    address = socket_of(folder, Path(sys.executable), environment)
    if address not in _STARTED:
        _STARTED.add(address)
        start_zygote(folder, modules=_IMPORTED, environment=environment, die_with_parent=True)
    return forked(command, {**environment, FOLDER: str(folder)})
