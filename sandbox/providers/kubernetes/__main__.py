"""Run the provider: `python -m sandbox.providers.kubernetes ENGINE`; the first line printed is its port."""

from __future__ import annotations

import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import grpc

from sandbox.engine.protocol import CHANNEL_OPTIONS
from sandbox.providers.kubernetes.connection import Connection, import_client
from sandbox.providers.kubernetes.server import handler
from sandbox.providers.kubernetes.service import KubernetesService

_THREADS: Final = 64
"""Calls served at once: each holds a thread for its whole request or wait."""


def main() -> None:
    """Serve on a free loopback port until SIGTERM or SIGINT."""
    endings = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, endings)
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=CHANNEL_OPTIONS)
    server.add_generic_rpc_handlers((handler(KubernetesService(Connection)),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    import_client()
    signal.sigwait(endings)
    server.stop(grace=None)


if __name__ == "__main__":
    main()
