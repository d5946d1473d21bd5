"""How a stand-in is served: one loopback socket, plain or with a certificate, by uvicorn."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pulumi_sandbox.services.cloud.front import Service
from pulumi_sandbox.services.ports import LOOPBACK


class _Connection(H11Protocol):
    """A connection that a service can close without an answer: uvicorn itself would answer 500."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn has it
        super().connection_made(transport)
        self.app_state = {**self.app_state, "hang_up": transport.abort}

    def shutdown(self) -> None:
        """Drop an idle connection at once: closing it in TLS' way waits for a client that may be gone."""
        is_busy = self.cycle and not self.cycle.response_complete
        super().shutdown()
        if not is_busy:
            self.transport.abort()


def server_for(service: Service, certificate: Path | None = None) -> uvicorn.Server:
    """Make the server of a service; `certificate` is a PEM file of certificate and key, for HTTPS."""
    return uvicorn.Server(
        uvicorn.Config(
            service,
            http=_Connection,
            lifespan="off",
            loop="asyncio",
            ws="none",
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=2,
            ssl_certfile=certificate,
        )
    )


def listen(port: int = 0) -> socket.socket:
    """Listen on a loopback port; 0 is any free one."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    return listening
