"""What stands before every service: its journal, its faults, and the paths by which both are reached.

`GET /sandbox/service` names the service. `GET|DELETE /sandbox/requests` shows or empties the journal;
`POST /sandbox/faults` adds a `Fault`, as JSON.
"""

from __future__ import annotations

import asyncio
import re
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


_OWN_PATHS = "/sandbox/"


class Service:
    """An emulator service as an ASGI app, with handles for a test in the same process."""

    def __init__(self, app: ASGIApp, refusal: Callable[[int], Response], own: Sequence[Route] = ()) -> None:
        """Stand before an app. refusal: refuses with an HTTP status; own: more paths below `/sandbox/`."""
        self.name = ""  # what `GET /sandbox/service` answers: what serves it as a process sets it
        self.faults: list[Fault] = []  # those that wait for their requests, in the order they were asked for
        self._moments = count(1)
        self._ended: deque[Request] = deque(maxlen=_KEPT)
        self._app = app
        self._refusal = refusal
        self._own = Starlette(routes=[*_own_paths(self), *own])

    @property
    def requests(self) -> list[Request]:
        """The latest requests, in the order in which they began."""
        return sorted([*self._ended], key=lambda request: request.began)

    def forget_requests(self) -> None:
        """Empty the journal."""
        self._ended.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, as its fault says if it meets one."""
        if scope["path"].startswith(_OWN_PATHS):
            await self._own(scope, receive, send)
        else:
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path, query = scope["method"], scope["path"], scope["query_string"].decode()
        began, status = next(self._moments), None
        fault = self._take_fault(method, path) or Fault()

        async def answer(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            if message["type"] == "http.response.body":  # noted before it is answered: who reads on finds it
                seen = None if fault.lost else status
                self._ended.append(Request(began, next(self._moments), method, path, query, seen))
            if not fault.lost:
                await send(message)

        app = self._app if fault.status is None else self._refusal(fault.status)
        await asyncio.sleep(fault.seconds)
        await app(scope, receive, answer)
        if fault.lost:
            scope["state"]["hang_up"]()  # which its connection has put there
            await asyncio.sleep(0)

    def _take_fault(self, method: str, path: str) -> Fault | None:
        """Return the fault a request meets, and count it down."""
        for index, fault in enumerate(self.faults):
            if fault.method in (None, method) and re.search(fault.path, path):
                left = replace(fault, times=fault.times - 1)
                self.faults[index : index + 1] = [left] if left.times > 0 else []
                return fault
        return None


def _own_paths(service: Service) -> list[Route]:
    async def name(_: HttpRequest) -> Response:
        return JSONResponse({"service": service.name})

    async def requests(_: HttpRequest) -> Response:
        return JSONResponse([asdict(request) for request in service.requests])

    async def forget_requests(_: HttpRequest) -> Response:
        service.forget_requests()
        return Response(status_code=204)

    async def add_fault(request: HttpRequest) -> Response:
        try:
            fault = Fault(**await request.json())
            re.compile(fault.path)
        except (TypeError, ValueError, re.error) as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        service.faults.append(fault)
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
