"""Stand-ins for cloud services in the test's own process, each on a free port, with handles for faults."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread
from typing import Any

import uvicorn
from pulumi_sandbox.services.cloud.certificates import Certificate
from pulumi_sandbox.services.cloud.front import Fault, Request, Service, server_for
from pulumi_sandbox.services.cloud.resource_manager.app import make_app as make_resource_manager
from pulumi_sandbox.services.cloud.secret_manager.app import make_app as make_secret_manager
from pulumi_sandbox.services.ports import LOOPBACK

from sandbox.tests.witness.contract import Contract, Witness

OWNER = {"Authorization": "Bearer an-owner"}
"""The header of a caller who may do anything."""

_CONTRACTS = Path(__file__).parents[1] / "witness" / "contracts"


@dataclass(frozen=True, slots=True)
class Served:
    """A service that runs. Ask it for faults by `service.faults`, look at requests by `service.journal`."""

    service: Service
    port: int
    scheme: str = "http"

    @property
    def authority(self) -> str:
        """Host and port, as a client's `api_endpoint` or a `metadataHost` has them."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def url(self) -> str:
        """Scheme, host and port, without a slash at the end."""
        return f"{self.scheme}://{self.authority}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service answers to a request."""

    status: int
    body: Any

    @property
    def refusal(self) -> tuple[int, str]:
        """The status, and the word for it: Google has it beside the number, Azure instead of it."""
        error = self.body["error"]
        return self.status, error.get("status") or error["code"]

    @property
    def message(self) -> str:
        """What people are told."""
        return str(self.body["error"]["message"])


@contextmanager
def served(
    service: Service,
    certificate: Path | None = None,
    *,
    contract: Contract | None = None,
    of_client: bool = False,
) -> Generator[Served]:
    """Serve a service from a thread until the block ends; nobody waits for its last moments.

    contract: what is said is held to it, at the end. of_client: as in `Contract.faults`.
    """
    witness = contract and Witness(service, contract, of_client=of_client)
    server = server_for(witness or service, certificate)
    listening = socket.create_server((LOOPBACK, 0))
    thread = Thread(target=lambda: asyncio.run(_serve(server, listening)), daemon=True)
    thread.start()
    try:
        yield Served(service, listening.getsockname()[1], "https" if certificate else "http")
    finally:
        server.should_exit = True
    if witness:
        assert not (faults := witness.faults), faults


async def _serve(server: uvicorn.Server, listening: socket.socket) -> None:
    """Serve to the end, and let go of connections that came or were busy as it ended."""
    await server.serve(sockets=[listening])
    for connection in server.server_state.connections:
        connection.transport.abort()
    await asyncio.sleep(0)


@contextmanager
def secret_manager(folder: Path) -> Generator[Served]:
    """Serve Secret Manager over a folder; `gcp:secretManagerCustomEndpoint` is `url + "/v1/"`."""
    with served(make_secret_manager(folder), contract=_google()) as running:
        yield running


@contextmanager
def resource_manager(folder: Path, federated_write: float = 0.1) -> Generator[Served]:
    """Serve Resource Manager over a folder; `azure-native:metadataHost` is `authority`.

    Clients trust it by the file that `trusted()` names.
    """
    service = make_resource_manager(folder, federated_write)
    with served(service, _certificate().serving, contract=_azure()) as running:
        yield running


def overlap(one: Request, other: Request) -> bool:
    """Whether both were being served at one time."""
    return one.began < other.ended and other.began < one.ended


@contextmanager
def nothing_asked(cloud: Served) -> Generator[None]:
    """Fail when the service is asked for anything meanwhile."""
    waiting = Fault(path="/", status=503, times=1000)
    cloud.service.faults.append(waiting)
    yield
    assert cloud.service.faults == [waiting]


def trusted() -> Path:
    """Return the file for SSL_CERT_FILE, REQUESTS_CA_BUNDLE or `verify=`."""
    return _certificate().authority


@cache
def _google() -> Contract:
    return Contract(_CONTRACTS / "secretmanager-v1.json")


@cache
def _azure() -> Contract:
    """Hold to contracts what they speak of: groups of resources are none of it."""
    files = (_CONTRACTS / f"azure-mgmt-{name}.json" for name in ("msi", "authorization"))
    return Contract(*files, about=r"/providers/Microsoft\.(ManagedIdentity|Authorization)/")


@cache
def _certificate() -> Certificate:
    certificate = Certificate(Path(mkdtemp(prefix="sandbox-certificate-")))
    certificate.renew()
    return certificate
