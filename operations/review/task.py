"""What the hosts of a review are told: the variables that name their files, and how to run a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from operations.review.confinement import Confinement

LANGUAGE_HOST: Final = f"{__package__}.language_host"
DYNAMIC_HOST: Final = f"{__package__}.dynamic_host"
TASK: Final = "CREDFLEET_REVIEW_TASK"
"""The variable that names the file of a task."""
CONFIGURED: Final = "CREDFLEET_REVIEW_CONFIGURED"
"""The variable that names the file for the configuration of dynamic providers."""
PROJECT: Final = "PULUMI_PROJECT"


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
    confinement: dict[str, Any] | None

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read what `write` wrote."""
        return cls(**json.loads(file.read_bytes()))

    def write(self, file: Path) -> None:
        """Write it down."""
        file.write_text(json.dumps(asdict(self)), encoding="utf-8")

    def start(self, words: list[str], config: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start the executor with these words and variables."""
        command = [sys.executable, "-u", self.executor, *words]
        if self.confinement is not None:
            shut = Confinement.of(self.confinement)
            variables = {**shut.environment, **config}
            return replace(shut, environment=variables).start(Path(self.folder), command)
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={**os.environ, **config},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
