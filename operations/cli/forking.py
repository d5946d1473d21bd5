"""Commands that are forked from a process which has imported what they need, kept beside the sandbox (Linux).

None needs it: where it is not there, or one of its files has changed, a command imports for itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.folders import Folders
from pulumi_sandbox.zygotes.address import FOLDER, socket_of
from pulumi_sandbox.zygotes.launcher import run_forked

_OPERATIONS: Final = __name__.removesuffix(".cli.forking")
"""This package, whose name in the wheel is another one."""

MODULES: Final = (
    "asyncio",
    "grpc.aio",
    "jinja2",
    "kubernetes.client",
    *(
        f"{_OPERATIONS}.{name}"
        for name in (
            "main",
            "config.commands",
            "pool.access",
            "pool.commands",
            "pool.status",
            "sandbox.commands",
            "sandbox.updates",
        )
    ),
    "pulumi_sandbox.engine.deploy.deployment",
)
"""What commands import, in their order."""

_OF_A_COMPLETION: Final = ("COMP_", "_CREDFLEET_")
"""How variables begin by which a shell asks for a completion; no module reads them while it is imported."""

_OF_THIS_PROCESS: Final = ("/dev/fd/", "/proc/self/")
"""What a word names that is open here alone, as `<(…)` of a shell is."""

_GIVEN: Final = dict[str, str]()
"""The environment before a command has changed it; of one that is forked nothing: its process is there."""


def fork_command(script: Path) -> None:
    """Have the command line run by the process that is kept for it, as `script` would; return without one."""
    _GIVEN.update({key: text for key, text in os.environ.items() if not key.startswith(_OF_A_COMPLETION)})
    try:
        folder = Folders.find(Path.cwd()).commands
    except (OSError, SandboxError):
        return
    is_open_here = any(name in word for word in sys.argv for name in _OF_THIS_PROCESS)
    is_about_itself = any(word.startswith("-") for word in sys.argv[1:2])  # answered sooner than it is forked
    if sys.platform == "linux" and folder.is_dir() and not is_open_here and not is_about_itself:
        address = socket_of(folder, Path(sys.executable), _GIVEN)
        run_forked(str(address), [sys.executable, "-u", "-P", str(script), *sys.argv[1:]])


def keep_process(folders: Folders) -> None:
    """Have a process from which further commands are forked, where this one was not and might have been."""
    if sys.platform == "linux" and _GIVEN and FOLDER not in _GIVEN:
        from pulumi_sandbox.services import keep_zygote

        keep_zygote(folders.commands, modules=MODULES, environment=_GIVEN)
