"""The language host of a review: it runs the branch's program shut in behind a gate, and our policy pack.

The CLI starts it from its PATH, which holds nothing else. What it is to do stands in the file that TASK names
(`Task`).
"""

# ruff: noqa: N802 - gRPC finds the methods by the names the protocol gives them

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Final

import grpc
from pulumi.runtime.proto import language_pb2
from pulumi_sandbox import language_host

from operations.review.gate import OPTIONS, Gate
from operations.review.rules_gate import behind_gate
from operations.review.task import TASK, Task

_LONGEST_LINE: Final = 1 << 16
_MOST_AT_ONCE: Final = 1000
"""Calls of a program, which has fewer threads."""


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
