"""How untrusted programs are confined by `confined.py`, and the instructions for the hosts of a review."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

LANGUAGE_HOST: Final = f"{__package__}.language_host"
DYNAMIC_HOST: Final = f"{__package__}.dynamic_host"
TASK: Final = "CREDFLEET_REVIEW_TASK"
"""Variable with the path of a task's file."""
CONFIGURED: Final = "CREDFLEET_REVIEW_CONFIGURED"
"""Variable with the path of the file for the configuration of dynamic providers."""
PROJECT: Final = "PULUMI_PROJECT"


@dataclass(frozen=True, slots=True)
class Confinement:
    """The access of a confined program, whose only network is its own loopback.

    readable, writable: the only files and folders that it sees; hidden: folders in these that appear empty.
    environment: all its variables. seconds: limit of both wall clock and CPU time; size: bytes of memory per
    process. nests: whether it can confine other programs.
    """

    readable: tuple[Path, ...]
    writable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: int = 180
    size: int = 6 << 30
    nests: bool = False


def start(
    shut: Confinement | None,
    folder: Path,
    command: list[str],
    variables: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[bytes]:
    """Start a command with additional variables, confined unless it is our own.

    Its messages must be read from its output.
    """
    environment, given = {**os.environ, **variables}, b""
    if shut is not None:
        script = Path(__file__).with_name("confined.py")
        command = [sys.executable, "-I", "-S", str(script), *command]
        inside = {**asdict(shut), "environment": {**shut.environment, **variables}, "folder": folder}
        environment, given = {"TMPDIR": tempfile.gettempdir()}, json.dumps(inside, default=str).encode()
    process = subprocess.Popen(
        command,
        cwd=folder if shut is None else None,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=shut is not None,
    )
    told, process.stdin = process.stdin, None
    if told is not None:
        with told:
            told.write(given)
    return process


@dataclass(frozen=True, slots=True)
class Task:
    """How to run a program: its folder and entry point there, and the SDK's executor for it.

    socket: of the gate. notes: the file for declared resources. ended: the file for its exit code.
    confinement: None for a program of our own.
    """

    folder: str
    entry: str
    executor: str
    socket: str
    notes: str
    ended: str
    confinement: Confinement | None

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read a task written by `write`."""
        given: dict[str, Any] = json.loads(file.read_bytes())
        shut = given.pop("confinement")
        return cls(**given, confinement=shut and Confinement(**shut))

    def write(self, file: Path) -> None:
        """Write the task to a file."""
        file.write_text(json.dumps(asdict(self), default=str), encoding="utf-8")

    def start(self, words: list[str], config: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start the executor with these arguments and variables."""
        command = [sys.executable, "-u", self.executor, *words]
        return start(self.confinement, Path(self.folder), command, config)
