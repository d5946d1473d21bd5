"""The REST paths of Secret Manager below `/v1/`."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from google.cloud.secretmanager_v1.types import (
    AccessSecretVersionResponse,
    AddSecretVersionRequest,
    DestroySecretVersionRequest,
    ListSecretsResponse,
    ListSecretVersionsResponse,
    Secret,
    SecretVersion,
)
from google.iam.v1.iam_policy_pb2 import SetIamPolicyRequest
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pulumi_sandbox.services.cloud.front import Service
from pulumi_sandbox.services.cloud.secret_manager.refusals import Refusal, invalid, on_demand
from pulumi_sandbox.services.cloud.secret_manager.secrets import Asked, Secrets, State
from pulumi_sandbox.services.cloud.secret_manager.store import SecretStore
from pulumi_sandbox.services.cloud.secret_manager.wire import read, shown

_SECRETS = "/v1/projects/{project}/secrets"
_SECRET = f"{_SECRETS}/{{secret}}"
_VERSION = f"{_SECRET}/versions/{{version}}"

Answer: TypeAlias = Callable[[Request], Awaitable[Message]]


def make_app(folder: Path) -> Service:
    """Make the service over what is kept in a folder (made if missing).

    Any bearer token is accepted, and none: an emulator's clients often send none.

    Raises SandboxError `state-unreadable`.
    """
    paths = _Paths(Secrets(SecretStore(folder)))
    app = Starlette(
        routes=[
            _route("POST", _SECRETS, paths.create),
            _route("GET", _SECRETS, paths.list),
            _route("POST", f"{_SECRET}:addVersion", paths.add_version),
            _route("GET", f"{_SECRET}:getIamPolicy", paths.get_policy),
            _route("POST", f"{_SECRET}:setIamPolicy", paths.set_policy),
            _route("GET", f"{_SECRET}/versions", paths.list_versions),
            _route("GET", f"{_VERSION}:access", paths.access),
            _route("POST", f"{_VERSION}:enable", paths.enable),
            _route("POST", f"{_VERSION}:disable", paths.disable),
            _route("POST", f"{_VERSION}:destroy", paths.destroy),
            _route("GET", _VERSION, paths.get_version),
            _route("GET", _SECRET, paths.get),
            _route("PATCH", _SECRET, paths.update),
            _route("DELETE", _SECRET, paths.delete),
        ],
        exception_handlers={Refusal: _refused, HTTPException: _not_served},
    )
    return Service(app, on_demand)


class _Paths:
    """What each path does, from request to message."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    async def create(self, request: Request) -> Message:
        wanted = Secret()
        read(await request.body(), Secret.pb(wanted))
        secret = request.query_params.get("secretId", "")
        return Secret.pb(self._secrets.create(request.path_params["project"], secret, wanted))

    async def list(self, request: Request) -> Message:
        page = self._secrets.list(**request.path_params, asked=_asked_for(request))
        answer = ListSecretsResponse(secrets=page.found, next_page_token=page.token, total_size=page.total)
        return ListSecretsResponse.pb(answer)

    async def get(self, request: Request) -> Message:
        return Secret.pb(self._secrets.get(**request.path_params))

    async def update(self, request: Request) -> Message:
        wanted = Secret()
        read(await request.body(), Secret.pb(wanted))
        mask = request.query_params.get("updateMask", "")
        return Secret.pb(self._secrets.update(**request.path_params, wanted=wanted, mask=mask))

    async def delete(self, request: Request) -> Message:
        self._secrets.delete(**request.path_params, etag=request.query_params.get("etag", ""))
        return Empty()

    async def add_version(self, request: Request) -> Message:
        wanted = AddSecretVersionRequest()
        read(await request.body(), AddSecretVersionRequest.pb(wanted), confidential=True)
        return SecretVersion.pb(self._secrets.add_version(**request.path_params, payload=wanted.payload))

    async def list_versions(self, request: Request) -> Message:
        page = self._secrets.list_versions(**request.path_params, asked=_asked_for(request))
        answer = ListSecretVersionsResponse(
            versions=page.found, next_page_token=page.token, total_size=page.total
        )
        return ListSecretVersionsResponse.pb(answer)

    async def get_version(self, request: Request) -> Message:
        return SecretVersion.pb(self._secrets.get_version(**request.path_params))

    async def access(self, request: Request) -> Message:
        return AccessSecretVersionResponse.pb(self._secrets.access(**request.path_params))

    async def enable(self, request: Request) -> Message:
        return await self._to(State.ENABLED, request)

    async def disable(self, request: Request) -> Message:
        return await self._to(State.DISABLED, request)

    async def destroy(self, request: Request) -> Message:
        return await self._to(State.DESTROYED, request)

    async def _to(self, state: State, request: Request) -> Message:
        wanted = DestroySecretVersionRequest()
        read(await request.body(), DestroySecretVersionRequest.pb(wanted))
        changed = self._secrets.set_state(**request.path_params, state=state, etag=wanted.etag)
        return SecretVersion.pb(changed)

    async def get_policy(self, request: Request) -> Message:
        version = _number(request, "options.requestedPolicyVersion")
        return self._secrets.policy(**request.path_params, version=version)

    async def set_policy(self, request: Request) -> Message:
        wanted = read(await request.body(), SetIamPolicyRequest())
        return self._secrets.set_policy(**request.path_params, wanted=wanted.policy)


def _route(method: str, path: str, answer: Answer) -> Route:
    async def serve(request: Request) -> Response:
        given = request.headers.get("authorization")
        if given is not None and not given.removeprefix("Bearer").strip():
            raise Refusal("UNAUTHENTICATED", "Request had invalid authentication credentials.")
        message = await answer(request)
        as_numbers = "enum-encoding=int" in request.query_params.get("$alt", "")
        return JSONResponse(shown(message, enums_as_numbers=as_numbers))

    return Route(path, serve, methods=[method])


def _asked_for(request: Request) -> Asked:
    query = request.query_params
    return Asked(query.get("filter", ""), _number(request, "pageSize"), query.get("pageToken", ""))


def _number(request: Request, name: str) -> int:
    try:
        return int(request.query_params.get(name, 0))
    except ValueError:
        raise invalid(f"{name} must be a number.") from None


async def _refused(_: Request, error: Exception) -> Response:
    if not isinstance(error, Refusal):
        raise error
    return error.response()


async def _not_served(request: Request, _: Exception) -> Response:
    return Refusal("NOT_FOUND", f"{request.method} {request.url.path} is not served here.").response()
