"""Loopback ports: free ones to choose from, and who holds one that is taken."""

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
"""Ports the kernel gives to no outgoing connection, so that a stopped server finds its port free again."""

_PATIENCE = 2.0
"""Seconds for one answer. A stranger on the port may never answer; a busy server is asked again."""


_NOBODY_SEEN: Final = "a process of another user listens on it, or a connection to elsewhere has it"


class PortTakenError(SandboxError):
    """A port the sandbox needs belongs to another process."""

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
    """Return the body of a server's 200; None for any other answer or none at all.

    authority: the file of the CA of a server that speaks HTTPS.
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
    """Return a port that was written down. Raises ValueError for what is none."""
    if not isinstance(given, int) or given not in range(1, 2**16):
        raise ValueError(given)
    return given


def free_ports(count: int) -> list[int]:
    """Choose ports that are free now. Another process may still be quicker to take one."""
    shuffled = random.sample(_BELOW_EPHEMERAL, len(_BELOW_EPHEMERAL))
    return [*islice(filter(is_free, shuffled), count)]


def is_free(port: int) -> bool:
    """Try to listen on the port, as the servers would."""
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError:
        return False
    return True


def port_owner(port: int) -> str | None:
    """Name the process that listens on `port`; None if none does, or one whose sockets we may not see.

    Its arguments are left out: they may hold secrets.
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            sockets = process.net_connections("tcp")
            if any(each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in sockets):
                return f"{(process.cmdline() or ['a process'])[0]} (pid {process.pid})"
    return None
