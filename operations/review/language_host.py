"""The language host of a review: it runs the branch's program confined behind a gate, and our policy pack.

The CLI starts it from its PATH, which contains nothing else. Its instructions are in the file that TASK names
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
from typing import Any, Final

import grpc
from pulumi.runtime.proto import analyzer_pb2, language_pb2
from pulumi_sandbox import language_host

from components.seals import COULD_NOT
from operations.review.confinement import TASK, Task
from operations.review.gate import OPTIONS, Gate, forward, path_of

_JUDGING: Final = ("Analyze", "AnalyzeStack")
_THREADS: Final = 16
_HOST: Final = "127.0.0.1"


class _RulesGate(grpc.GenericRpcHandler):
    """Forwards all calls, and marks rules that could not decide in the responses."""

    def __init__(self, port: int) -> None:
        self._pack = grpc.insecure_channel(f"{_HOST}:{port}", options=OPTIONS)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        call = path_of(handler_call_details)

        def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
            answer = forward(self._pack, call, request, context)
            return _softened(answer) if call.rpartition("/")[2] in _JUDGING else answer

        return grpc.unary_unary_rpc_method_handler(answer)


def _softened(answer: bytes) -> bytes:
    judged = analyzer_pb2.AnalyzeResponse.FromString(answer)
    for each in judged.diagnostics:
        if COULD_NOT in each.message:
            each.enforcementLevel = analyzer_pb2.ADVISORY
    return judged.SerializeToString()


def behind_gate(
    printed: Iterator[language_pb2.RunPluginResponse],
) -> Iterator[language_pb2.RunPluginResponse]:
    """Serve a gate for a pack that prints its port, and replace that by the gate's port."""
    first = b""
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=OPTIONS)
    for each in printed:
        if each.WhichOneof("output") != "stdout" or b"\n" in first:
            yield each
            continue
        first += each.stdout
        port, newline, rest = first.partition(b"\n")
        if newline:
            server.add_generic_rpc_handlers((_RulesGate(int(port)),))
            own = server.add_insecure_port(f"{_HOST}:0")
            server.start()
            yield language_pb2.RunPluginResponse(stdout=f"{own}\n".encode() + rest)
    server.stop(None)


_LONGEST_LINE: Final = 1 << 16
_MOST_AT_ONCE: Final = 1000
"""Maximum number of parallel calls; a program has fewer threads."""


class ReviewHost(language_host.LanguageHost):
    """Runs programs confined, and policy packs like any host."""

    def Run(self, request: language_pb2.RunRequest, context: Any) -> Any:
        """Run the program; record that this host did, and its exit code if time is left."""
        task = Task.read(Path(os.environ[TASK]))
        ended = Path(task.ended)
        ended.touch()
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
        output = processes[0].stdout
        while output is not None and (line := output.readline(_LONGEST_LINE)):
            if gate.hear(len(line)):
                sys.stdout.buffer.write(line)
                sys.stdout.flush()
        code = processes[0].wait()
        server.stop(None)
        ended.write_text(str(code), encoding="utf-8")
        if not gate.hear(0):
            return language_pb2.RunResponse(error="it printed too much, and the rest is left out")
        return language_host.ended(code)

    def RunPlugin(self, request: language_pb2.RunPluginRequest, context: Any) -> Iterator[Any]:
        """Run our own policy pack."""
        return behind_gate(super().RunPlugin(request, context))


if __name__ == "__main__":
    language_host.main(ReviewHost)
