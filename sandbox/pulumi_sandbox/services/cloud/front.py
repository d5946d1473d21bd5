"""What stands before every service: its journal, its faults, and the paths by which both are reached.

`GET /sandbox/service` names the service. `GET|DELETE /sandbox/requests` shows or empties the journal;
`POST /sandbox/faults` adds a `Fault`, as JSON.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from pulumi_sandbox.services.ports import LOOPBACK


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the next requests that match.

    path: a regular expression, searched in the path. method: None for any. times: how many requests it meets.
    seconds: wait so long first. status: refuse with this HTTP status, so that the service never sees the
    request. lost: let the service do its work, then close the connection instead of answering.
    """

    path: str = ""
    method: str | None = None
    times: int = 1
    seconds: float = 0.0
    status: int | None = None
    lost: bool = False

    def meets(self, method: str, path: str) -> bool:
        """Whether a request is one of those."""
        return self.method in (None, method) and re.search(self.path, path) is not None


class Faults:
    """Faults that wait for their requests, in the order they were asked for."""

    def __init__(self) -> None:
        self.waiting: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Let a fault wait."""
        self.waiting.append(fault)

    def clear(self) -> None:
        """Forget those that still wait."""
        self.waiting.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """Return the fault a request meets, and count it down."""
        for index, fault in enumerate(self.waiting):
            if fault.meets(method, path):
                left = replace(fault, times=fault.times - 1)
                self.waiting[index : index + 1] = [left] if left.times > 0 else []
                return fault
        return None


_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Neither its body nor its headers are kept: they hold secrets.

    began, ended: places in the one order of all beginnings and ends. status: None when its answer was lost.
    """

    began: int
    ended: int
    method: str
    path: str
    query: str
    status: int | None


class Journal:
    """The latest requests, in the order in which they ended."""

    def __init__(self) -> None:
        self._moments = count(1)
        self._requests: deque[Request] = deque(maxlen=_KEPT)

    def moment(self) -> int:
        """Return the next place in the order."""
        return next(self._moments)

    def add(self, request: Request) -> None:
        """Note a request that has ended."""
        self._requests.append(request)

    def clear(self) -> None:
        """Forget all."""
        self._requests.clear()

    @property
    def requests(self) -> list[Request]:
        """All that are kept, in the order in which they began."""
        return sorted([*self._requests], key=lambda request: request.began)


_OWN_PATHS = "/sandbox/"


class Service:
    """An emulator service as an ASGI app, with handles for a test in the same process."""

    def __init__(self, app: ASGIApp, refusal: Callable[[int], Response], own: Sequence[Route] = ()) -> None:
        """Stand before an app. refusal: refuses with an HTTP status; own: more paths below `/sandbox/`."""
        self.name = ""  # what `GET /sandbox/service` answers: what serves it as a process sets it
        self.faults = Faults()
        self.journal = Journal()
        self._app = app
        self._refusal = refusal
        self._own = Starlette(routes=[*_own_paths(self), *own])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, as its fault says if it meets one."""
        if scope["path"].startswith(_OWN_PATHS):
            await self._own(scope, receive, send)
        else:
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path, query = scope["method"], scope["path"], scope["query_string"].decode()
        began, status = self.journal.moment(), None
        fault = self.faults.take(method, path) or Fault()

        async def answer(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            if message["type"] == "http.response.body":  # noted before it is answered: who reads on finds it
                seen = None if fault.lost else status
                self.journal.add(Request(began, self.journal.moment(), method, path, query, seen))
            if not fault.lost:
                await send(message)

        app = self._app if fault.status is None else self._refusal(fault.status)
        await asyncio.sleep(fault.seconds)
        await app(scope, receive, answer)
        if fault.lost:
            scope["state"]["hang_up"]()  # which its connection has put there
            await asyncio.sleep(0)


def _own_paths(service: Service) -> list[Route]:
    async def name(_: HttpRequest) -> Response:
        return JSONResponse({"service": service.name})

    async def requests(_: HttpRequest) -> Response:
        return JSONResponse([asdict(request) for request in service.journal.requests])

    async def forget_requests(_: HttpRequest) -> Response:
        service.journal.clear()
        return Response(status_code=204)

    async def add_fault(request: HttpRequest) -> Response:
        try:
            fault = Fault(**await request.json())
            re.compile(fault.path)
        except (TypeError, ValueError, re.error) as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        service.faults.add(fault)
        return Response(status_code=204)

    return [
        Route("/sandbox/service", name),
        Route("/sandbox/requests", requests),
        Route("/sandbox/requests", forget_requests, methods=["DELETE"]),
        Route("/sandbox/faults", add_fault, methods=["POST"]),
    ]


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


def server_for(service: ASGIApp, certificate: Path | None = None) -> uvicorn.Server:
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
