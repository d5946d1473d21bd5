"""Loopback ports: selects free ones, and finds the process on one that is taken."""

import http.client
import random
import socket
import ssl
from collections.abc import Mapping
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Final

import psutil

from pulumi_sandbox.errors import SandboxError

LOOPBACK = "127.0.0.1"

_BELOW_EPHEMERAL = range(20_000, 32_000)
"""Ports that the kernel uses for no outgoing connection, so a stopped server finds its port free again."""

_PATIENCE = 2.0
"""Timeout of one answer in seconds. A different program might never answer; a busy server is retried."""


_NOBODY_SEEN: Final = "a process of another user listens on it, or a connection to elsewhere has it"


class PortTakenError(SandboxError):
    """A port that the sandbox needs belongs to another process."""

    def __init__(
        self,
        port: int,
        purpose: str,
        fix: str = "stop it, with `down` in its folder if it is another sandbox's, and run this again",
    ) -> None:
        found = port_owner(port)
        owner = f"{found} listens on it" if found else _NOBODY_SEEN
        super().__init__(
            code="port-taken",
            place=f"{LOOPBACK}:{port}",
            problem=f"{purpose} needs this port, but {owner}",
            fix=fix,
        )


def asked(
    port: int,
    path: str,
    *,
    authority: Path | None = None,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
) -> bytes | None:
    """Return the body of a server's 200 response; None otherwise.

    authority: the CA file of an HTTPS server.
    """
    try:
        if authority is None:
            connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_PATIENCE)
        else:
            trust = ssl.create_default_context(cafile=str(authority))
            connection = http.client.HTTPSConnection(LOOPBACK, port, timeout=_PATIENCE, context=trust)
        with closing(connection):
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            body = answer.read()
    except (OSError, http.client.HTTPException):
        return None
    return body if answer.status == http.client.OK else None


def port_of(given: object) -> int:
    """Return a recorded port. Raises ValueError if it is invalid."""
    if not isinstance(given, int) or given not in range(1, 2**16):
        raise ValueError(given)
    return given


def free_ports(count: int) -> list[int]:
    """Return ports that are currently free. Another process might still take one first."""
    shuffled = random.sample(_BELOW_EPHEMERAL, len(_BELOW_EPHEMERAL))
    return [*islice(filter(is_free, shuffled), count)]


def is_free(port: int) -> bool:
    """Return whether a server could listen on the port."""
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError:
        return False
    return True


def port_owner(port: int) -> str | None:
    """Return the process that listens on `port`; None if there is none, or it is not visible to us.

    Its arguments are omitted, as they can contain secrets.
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            sockets = process.net_connections("tcp")
            if any(each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in sockets):
                return f"{(process.cmdline() or ['a process'])[0]} (pid {process.pid})"
    return None
