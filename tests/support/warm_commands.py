"""`credfleet`, scripts beside it, and what they deploy, forked from processes which have imported it all.

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

from operations.cli.forking import MODULES

CREDFLEET: Final = Path(sys.executable).with_name("credfleet")

_IMPORTED: Final = {
    "commands": MODULES,
    "programs": (
        "asyncio",
        "dill",
        "grpc.aio",
        "kubernetes.client",
        "pulumi_sandbox.engine.plugins.language_host",
        "components.aso_credentials.identity",
        "components.fleet",
        "components.settings.stack",
        "components.wiring.pull_secrets",
        "pulumi.policy",
    ),
}
"""What they import, in their order."""
_STARTED: Final[set[Path]] = set()


def warm(script: Path, *words: str, environment: Mapping[str, str]) -> list[str]:
    """Return the command line that has a script forked, or runs it where nobody forks in this environment."""
    command = [sys.executable, "-u", "-P", str(script), *words]
    return forked(command, forking("commands", environment))


def forking(what: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment whose commands, or programs and hosts, are forked by one process for all like it.

    Until that listens, and where nobody forks, they run by themselves.
    """
    if sys.platform != "linux" or FOLDER not in os.environ:
        return {**environment}
    folder = Path(os.environ[FOLDER]).with_name(what)
    address = socket_of(folder, Path(sys.executable), environment)
    if address not in _STARTED:
        _STARTED.add(address)
        start_zygote(folder, modules=_IMPORTED[what], environment=environment, die_with_parent=True)
    return {**environment, FOLDER: str(folder)}
