"""Lets a policy pack go on where a rule could not decide: that is told, and the preview does not fail.

To the CLI every objection of a mandatory rule is a violation, after which it asks no rule on the whole stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import grpc
from pulumi.runtime.proto import analyzer_pb2, language_pb2

from components.seals import COULD_NOT
from operations.review.gate import OPTIONS, called, forward

_JUDGING: Final = ("Analyze", "AnalyzeStack")
_THREADS: Final = 16
_HOST: Final = "127.0.0.1"


class _RulesGate(grpc.GenericRpcHandler):
    """Hands all calls on, and softens what could not be decided in the answers."""

    def __init__(self, port: int) -> None:
        self._pack = grpc.insecure_channel(f"{_HOST}:{port}", options=OPTIONS)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        call = called(handler_call_details)

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
    """Serve a pack that tells its port in what it prints, and tell that of its gate instead."""
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
