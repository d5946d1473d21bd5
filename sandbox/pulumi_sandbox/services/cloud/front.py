"""What stands before every service: its journal, its faults, and the paths by which both are reached.

`GET /sandbox/service` names the service. `GET|DELETE /sandbox/requests` shows or empties the journal;
`GET|POST|DELETE /sandbox/faults` shows, adds (a `Fault` as JSON) or forgets faults.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pulumi_sandbox.services.cloud.faults import Fault, Faults
from pulumi_sandbox.services.cloud.journal import Journal, Request

_OWN_PATHS = "/sandbox/"


class Service:
    """A stand-in service as an ASGI app, with handles for a test in the same process."""

    def __init__(self, app: ASGIApp, refusal: Callable[[int], Response], own: Sequence[Route] = ()) -> None:
        """Stand before an app.

        Args:
            app: The service itself.
            refusal: Gives the service's own way to refuse with an HTTP status.
            own: Further paths below `/sandbox/`.
        """
        self.name = ""  # what `GET /sandbox/service` answers: whoever serves it as a process sets it
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
            await _hang_up(scope)


async def _hang_up(scope: Scope) -> None:
    """Close the connection by what `serving` has put into its state."""
    scope["state"]["hang_up"]()
    await asyncio.sleep(0)


def _own_paths(service: Service) -> list[Route]:
    async def name(_: HttpRequest) -> Response:
        return JSONResponse({"service": service.name})

    async def requests(_: HttpRequest) -> Response:
        return JSONResponse([asdict(request) for request in service.journal.requests])

    async def forget_requests(_: HttpRequest) -> Response:
        service.journal.clear()
        return Response(status_code=204)

    async def faults(_: HttpRequest) -> Response:
        return JSONResponse([asdict(fault) for fault in service.faults.waiting])

    async def add_fault(request: HttpRequest) -> Response:
        try:
            service.faults.add(Fault.from_json(await request.json()))
        except (TypeError, ValueError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        return Response(status_code=204)

    async def forget_faults(_: HttpRequest) -> Response:
        service.faults.clear()
        return Response(status_code=204)

    return [
        Route("/sandbox/service", name),
        Route("/sandbox/requests", requests),
        Route("/sandbox/requests", forget_requests, methods=["DELETE"]),
        Route("/sandbox/faults", faults),
        Route("/sandbox/faults", add_fault, methods=["POST"]),
        Route("/sandbox/faults", forget_faults, methods=["DELETE"]),
    ]
