"""Which zygote may fork for whom: one that has the same interpreter and the same environment."""

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FOLDER: Final = "PULUMI_SANDBOX_ZYGOTES"
"""The variable that names the folder of the zygotes; without it every process is started by itself."""

SERVER: Final = Path(__file__).with_name("server.py")
_LAUNCHER: Final = Path(__file__).with_name("launcher.py")
_FREE: Final = {"PWD", "OLDPWD", "SHLVL", "_", "COLUMNS", "LINES", "TERM", "MFLAGS"}
_FREE_KINDS: Final = ("MAKE", "PULUMI_", "PYTEST_")
"""Variables that no module reads while it is imported."""


def socket_of(folder: Path, python: Path, environment: Mapping[str, str]) -> Path:
    """Return where a zygote listens that has this interpreter's modules, imported in such an environment."""
    settings = [
        f"{key}={value}"
        for key, value in sorted(environment.items())
        if key not in _FREE and not key.startswith(_FREE_KINDS)
    ]
    words = "\0".join([str(python.parent.resolve()), *settings])
    return folder / f"{hashlib.sha256(os.fsencode(words)).hexdigest()[:16]}.sock"


def forked(command: list[str], environment: Mapping[str, str]) -> list[str]:
    """Return the command line that has `command` forked where a zygote may do it, and else becomes it."""
    folder = environment.get(FOLDER)
    address = socket_of(Path(folder), Path(command[0]), environment) if folder else ""
    return [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), str(address), *command]
