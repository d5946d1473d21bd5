"""The language host of a review: it runs the branch's program shut in behind a gate, and our policy pack.

The CLI starts it from its PATH, which holds nothing else. What it is to do stands in the file that TASK names
(`Task`).
"""

# ruff: noqa: N802 - gRPC finds the methods by the names the protocol gives them

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Final, Self

import grpc
from pulumi.runtime.proto import language_pb2
from pulumi_sandbox import language_host

from operations.review.confinement import Confinement
from operations.review.gate import OPTIONS, Gate
from operations.review.rules_gate import behind_gate

TASK: Final = "CREDFLEET_REVIEW_TASK"
"""The variable that names the file."""
_LONGEST_LINE: Final = 1 << 16
_MOST_AT_ONCE: Final = 1000
"""Calls of a program, which has fewer threads."""


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


class ReviewHost(language_host.LanguageHost):
    """Runs programs as a review does, and policy packs as any host."""

    def Run(self, request: language_pb2.RunRequest, context: Any) -> Any:
        """Run the program; how it ended is written down as well, so it is known that this host ran it."""
        task = Task.read(Path(os.environ[TASK]))
        processes: list[subprocess.Popen[bytes]] = []

        def stop() -> None:
            for each in processes:
                each.kill()

        gate = Gate(request.monitor_address, self.engine, Path(task.notes), stop)
        server = grpc.server(ThreadPoolExecutor(_MOST_AT_ONCE), options=OPTIONS)
        server.add_generic_rpc_handlers((gate,))
        address = f"unix:{task.socket}"
        server.add_insecure_port(address)
        server.start()
        request.monitor_address = address
        request.pwd = request.info.root_directory = request.info.program_directory = task.folder
        request.info.entry_point = task.entry
        processes.append(task.start(*language_host.program_of(request, address)))
        if not context.add_callback(stop):  # the call was cancelled meanwhile
            stop()
        _relay(processes[0].stdout, gate)
        code = processes[0].wait()
        server.stop(None)
        Path(task.ended).write_text(str(code), encoding="utf-8")
        if not gate.hear(0):
            return language_pb2.RunResponse(error="it said too much, and the rest is left out")
        return language_host.ended(code)

    def RunPlugin(self, request: language_pb2.RunPluginRequest, context: Any) -> Iterator[Any]:
        """Run a policy pack of our own."""
        return behind_gate(super().RunPlugin(request, context))


def _relay(output: IO[bytes] | None, gate: Gate) -> None:
    """Print what the program prints, line by line, until it is too much."""
    while output is not None and (line := output.readline(_LONGEST_LINE)):
        if gate.hear(len(line)):
            sys.stdout.buffer.write(line)
            sys.stdout.flush()


if __name__ == "__main__":
    language_host.main(ReviewHost)
