"""The REST paths of Secret Manager below `/v1/`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from google.api_core import exceptions as errors
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pulumi_sandbox.services.cloud.front import Service
from pulumi_sandbox.services.cloud.secret_manager.callers import Callers, member_of, on_demand, refusal
from pulumi_sandbox.services.cloud.secret_manager.secrets import Asked, Secrets, SecretStore, State, shown

_PARENTS: Final = ("/v1/projects/{project}", "/v1/projects/{project}/locations/{location}")
_SECRET: Final = "/secrets/{secret}"  # noqa: S105 - a path
_VERSION: Final = f"{_SECRET}/versions/{{version}}"

Answer: TypeAlias = Callable[[Asked], Any]
"""Handler of a request; returns a message of protobuf or proto-plus."""


def make_app(folder: Path) -> Service:
    """Return the service for the data in a folder (created if missing).

    A request needs a bearer token, which identifies the caller (`callers.py`). `PUT /sandbox/callers` grants
    a member permissions, as `{"member": …, "permissions": […]}`; `GET /sandbox/callers?member=…` lists those
    that it has used. Raises SandboxError `state-unreadable`.
    """
    secrets, callers = Secrets(SecretStore(folder)), Callers()

    async def allow(request: Request) -> Response:
        given = await request.json()
        callers.allow(given["member"], given["permissions"])
        return Response(status_code=204)

    async def used(request: Request) -> Response:
        return JSONResponse(callers.used(request.query_params["member"]))

    def route(path: str, method: str, permission: str, answer: Answer) -> Route:
        """Return a route for callers with a permission on the resource in the path."""

        async def serve(request: Request) -> Response:
            given, header = dict(request.path_params), request.headers.get("authorization")
            member_of(header)
            parent = secrets.parent(given.pop("project"), given.pop("location", None))
            policy = secrets.present_policy(parent, given.get("secret", ""))
            callers.check(header, permission, request.url.path.removeprefix("/v1/"), policy)
            message = answer(Asked(parent, request.query_params, await request.body(), **given))
            return JSONResponse(shown(message))

        return Route(path, serve, methods=[method])

    turn = secrets.set_state
    served: list[tuple[str, str, str, Answer]] = [
        ("POST", "/secrets", "secrets.create", secrets.create),
        ("GET", "/secrets", "secrets.list", secrets.list),
        ("POST", f"{_SECRET}:addVersion", "versions.add", secrets.add_version),
        ("GET", f"{_SECRET}:getIamPolicy", "secrets.getIamPolicy", secrets.policy),
        ("POST", f"{_SECRET}:setIamPolicy", "secrets.setIamPolicy", secrets.set_policy),
        ("GET", f"{_SECRET}/versions", "versions.list", secrets.list_versions),
        ("GET", f"{_VERSION}:access", "versions.access", secrets.access),
        ("POST", f"{_VERSION}:enable", "versions.enable", partial(turn, State.ENABLED)),
        ("POST", f"{_VERSION}:disable", "versions.disable", partial(turn, State.DISABLED)),
        ("POST", f"{_VERSION}:destroy", "versions.destroy", partial(turn, State.DESTROYED)),
        ("GET", _VERSION, "versions.get", secrets.get_version),
        ("GET", _SECRET, "secrets.get", secrets.get),
        ("PATCH", _SECRET, "secrets.update", secrets.update),
        ("DELETE", _SECRET, "secrets.delete", secrets.delete),
    ]
    routes = [
        route(parent + path, method, permission, answer)
        for parent in _PARENTS
        for method, path, permission, answer in served
    ]
    handlers: Any = {errors.GoogleAPICallError: _refused, HTTPException: _not_served}
    own = [Route("/sandbox/callers", used), Route("/sandbox/callers", allow, methods=["PUT"])]
    return Service(Starlette(routes=routes, exception_handlers=handlers), on_demand, own)


async def _refused(_: Request, error: errors.GoogleAPICallError) -> Response:
    return refusal(error)


async def _not_served(request: Request, _: Exception) -> Response:
    return refusal(errors.NotFound(f"{request.method} {request.url.path} is not served here."))
