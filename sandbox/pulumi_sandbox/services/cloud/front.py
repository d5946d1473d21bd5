"""The front of every service: its journal, its faults, and the paths to access both.

`GET /sandbox/service` returns the service's name. `GET|DELETE /sandbox/requests` returns or clears the
journal; `POST /sandbox/faults` adds a `Fault`, as JSON.
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
    """A fault for the next requests that match.

    path: a regular expression, searched in the path. method: None for any. times: number of affected
    requests. seconds: delay. status: respond with this HTTP status, without passing the request to the
    service. lost: let the service process the request, then close the connection without a response.
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
    """A request. Neither its body nor its headers are stored, as they contain secrets.

    began, ended: positions in a common order of all starts and ends. status: None if its response was lost.
    """

    began: int
    ended: int
    method: str
    path: str
    query: str
    status: int | None


_OWN_PATHS = "/sandbox/"


class Service:
    """An emulator service as an ASGI app, with access for tests in the same process."""

    def __init__(self, app: ASGIApp, refusal: Callable[[int], Response], own: Sequence[Route] = ()) -> None:
        """Wrap an app. refusal: returns a response for an HTTP status; own: more paths below `/sandbox/`."""
        self.name = ""  # the response of `GET /sandbox/service`, set when it is served as a process
        self.faults: list[Fault] = []  # waiting for their requests, in the order of addition
        self._moments = count(1)
        self._ended: deque[Request] = deque(maxlen=_KEPT)
        self._app = app
        self._refusal = refusal
        self._own = Starlette(routes=[*_own_paths(self), *own])

    @property
    def requests(self) -> list[Request]:
        """The latest requests, in the order in which they started."""
        return sorted([*self._ended], key=lambda request: request.began)

    def forget_requests(self) -> None:
        """Clear the journal."""
        self._ended.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, with its fault if there is one."""
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
            if message["type"] == "http.response.body":  # recorded first, so that clients can read it
                seen = None if fault.lost else status
                self._ended.append(Request(began, next(self._moments), method, path, query, seen))
            if not fault.lost:
                await send(message)

        app = self._app if fault.status is None else self._refusal(fault.status)
        await asyncio.sleep(fault.seconds)
        await app(scope, receive, answer)
        if fault.lost:
            scope["state"]["hang_up"]()  # provided by its connection
            await asyncio.sleep(0)

    def _take_fault(self, method: str, path: str) -> Fault | None:
        """Return the fault for a request, if any, and decrement its count."""
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
    """A connection that a service can close without a response: uvicorn itself would respond with 500."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn has it
        super().connection_made(transport)
        self.app_state = {**self.app_state, "hang_up": transport.abort}

    def shutdown(self) -> None:
        """Close an idle connection at once: a TLS shutdown would wait for a client that might be gone."""
        is_busy = self.cycle and not self.cycle.response_complete
        super().shutdown()
        if not is_busy:
            self.transport.abort()


def server_for(service: ASGIApp, certificate: Path | None = None) -> uvicorn.Server:
    """Return the server of a service; `certificate`: PEM file of certificate and key, for HTTPS."""
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
