"""How an untrusted program is shut in, by `confined.py`, and what the hosts of a review are told."""

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
"""The variable that names the file of a task."""
CONFIGURED: Final = "CREDFLEET_REVIEW_CONFIGURED"
"""The variable that names the file for the configuration of dynamic providers."""
PROJECT: Final = "PULUMI_PROJECT"


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a program that is shut in has; no network but a loopback of its own.

    readable: what it sees of the file system, read-only; writable: what else it sees; hidden: folders of that
    which are empty to it. environment: all of it. seconds, size: of wall clock and processor each, and bytes
    of memory of a process. nests: whether it may shut others in.
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
    """Start a command with these variables as well, shut in or, where it is our own, as it is.

    What it says is to be read from its output.
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
    """How to run a program: its folder, and what it is in it; the executor of the SDK that runs it.

    socket: where the gate listens. notes: the file for what is declared. ended: that for its exit code.
    confinement: how it is shut in; None for a program of our own.
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
        """Read what `write` wrote."""
        given: dict[str, Any] = json.loads(file.read_bytes())
        shut = given.pop("confinement")
        return cls(**given, confinement=shut and Confinement(**shut))

    def write(self, file: Path) -> None:
        """Write it down."""
        file.write_text(json.dumps(asdict(self), default=str), encoding="utf-8")

    def start(self, words: list[str], config: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start the executor with these words and variables."""
        command = [sys.executable, "-u", self.executor, *words]
        return start(self.confinement, Path(self.folder), command, config)
