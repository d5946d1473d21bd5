#!/usr/bin/env python3
"""A plugin that says of itself which options it has: a list in the environment, or in the file beside it."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc


class Plugin(provider_pb2_grpc.ResourceProviderServicer):
    """Tells its schema, padded to more than a gRPC channel takes by default."""

    def __init__(self, options: list[str]) -> None:
        self._options = options

    def GetSchema(  # noqa: N802 - gRPC's name
        self, request: Any, context: Any
    ) -> provider_pb2.GetSchemaResponse:
        del request, context
        schema = {
            "provider": {"inputProperties": dict.fromkeys(self._options)},
            "description": " " * 5_000_000,
        }
        return provider_pb2.GetSchemaResponse(schema=json.dumps(schema))


def serve(options: list[str]) -> tuple[grpc.Server, int]:
    """Serve a plugin with these options."""
    server = grpc.server(ThreadPoolExecutor(1), options=[("grpc.max_send_message_length", -1)])
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Plugin(options), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


if __name__ == "__main__":
    running, at = serve(Path(sys.argv[0]).with_name("options").read_text().split())
    print(at, flush=True)  # noqa: T201
    running.wait_for_termination()
