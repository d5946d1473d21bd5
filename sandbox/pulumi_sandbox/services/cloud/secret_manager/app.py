"""The REST paths of Secret Manager below `/v1/`."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

from google.cloud.secretmanager_v1.types import (
    AccessSecretVersionResponse,
    AddSecretVersionRequest,
    DestroySecretVersionRequest,
    ListSecretsResponse,
    ListSecretVersionsResponse,
    Secret,
    SecretVersion,
)
from google.iam.v1.iam_policy_pb2 import (
    SetIamPolicyRequest,
    TestIamPermissionsRequest,
    TestIamPermissionsResponse,
)
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pulumi_sandbox.services.cloud.front import Service
from pulumi_sandbox.services.cloud.secret_manager.callers import ALL, PREFIX, Callers
from pulumi_sandbox.services.cloud.secret_manager.refusals import GcpRefusal, invalid, on_demand
from pulumi_sandbox.services.cloud.secret_manager.secrets import ListRequest, Secrets, State
from pulumi_sandbox.services.cloud.secret_manager.store import SecretStore
from pulumi_sandbox.services.cloud.secret_manager.wire import check_base64, read, shown

_PARENTS: Final = ("/v1/projects/{project}", "/v1/projects/{project}/locations/{location}")
_SECRET: Final = "/secrets/{secret}"  # noqa: S105 - a path
_VERSION: Final = f"{_SECRET}/versions/{{version}}"

Answer: TypeAlias = Callable[[Request], Awaitable[Message]]


def make_app(folder: Path) -> Service:
    """Make the service over what is kept in a folder (made if missing).

    A request needs a bearer token, which says who asks (`callers.py`). `PUT /sandbox/callers` gives a
    member permissions, as `{"member": …, "permissions": […]}`; `GET /sandbox/callers?member=…` lists those
    it has used.

    Raises SandboxError `state-unreadable`.
    """
    paths = _Paths(Secrets(SecretStore(folder)), Callers())
    served = [
        ("POST", "/secrets", paths.create, "secrets.create"),
        ("GET", "/secrets", paths.list, "secrets.list"),
        ("POST", f"{_SECRET}:addVersion", paths.add_version, "versions.add"),
        ("GET", f"{_SECRET}:getIamPolicy", paths.get_policy, "secrets.getIamPolicy"),
        ("POST", f"{_SECRET}:setIamPolicy", paths.set_policy, "secrets.setIamPolicy"),
        ("POST", f"{_SECRET}:testIamPermissions", paths.test_permissions, ""),
        ("GET", f"{_SECRET}/versions", paths.list_versions, "versions.list"),
        ("GET", f"{_VERSION}:access", paths.access, "versions.access"),
        ("POST", f"{_VERSION}:enable", paths.enable, "versions.enable"),
        ("POST", f"{_VERSION}:disable", paths.disable, "versions.disable"),
        ("POST", f"{_VERSION}:destroy", paths.destroy, "versions.destroy"),
        ("GET", _VERSION, paths.get_version, "versions.get"),
        ("GET", _SECRET, paths.get, "secrets.get"),
        ("PATCH", _SECRET, paths.update, "secrets.update"),
        ("DELETE", _SECRET, paths.delete, "secrets.delete"),
    ]
    app = Starlette(
        routes=[
            paths.route(method, parent + path, answer, permission)
            for parent in _PARENTS
            for method, path, answer, permission in served
        ],
        exception_handlers={GcpRefusal: _refused, HTTPException: _not_served},
    )
    own = [
        Route("/sandbox/callers", paths.used),
        Route("/sandbox/callers", paths.allow, methods=["PUT"]),
    ]
    return Service(app, on_demand, own)


class _Paths:
    """What each path does, from request to message."""

    def __init__(self, secrets: Secrets, callers: Callers) -> None:
        self._secrets = secrets
        self._callers = callers

    def route(self, method: str, path: str, answer: Answer, permission: str) -> Route:
        """Serve a path to callers who have a permission on what it names; none of them: to any caller."""

        async def serve(request: Request) -> Response:
            given, header = dict(request.path_params), request.headers.get("authorization")
            self._callers.allowed(header, (), None)
            parent = self._secrets.parent(given.pop("project"), given.pop("location", None))
            request.state.where = {"parent": parent, **given}
            if permission:
                policy = self._secrets.present_policy(parent, given.get("secret", ""))
                self._callers.check(header, permission, request.url.path.removeprefix("/v1/"), policy)
            message = await answer(request)
            as_numbers = "enum-encoding=int" in request.query_params.get("$alt", "")
            return JSONResponse(shown(message, enums_as_numbers=as_numbers))

        return Route(path, serve, methods=[method])

    async def allow(self, request: Request) -> Response:
        given = await request.json()
        self._callers.allow(given["member"], given["permissions"])
        return Response(status_code=204)

    async def used(self, request: Request) -> Response:
        return JSONResponse(self._callers.used(request.query_params["member"]))

    async def create(self, request: Request) -> Message:
        wanted = Secret()
        read(await request.body(), Secret.pb(wanted))
        secret = request.query_params.get("secretId", "")
        return Secret.pb(self._secrets.create(**request.state.where, secret=secret, wanted=wanted))

    async def list(self, request: Request) -> Message:
        page = self._secrets.list(**request.state.where, asked=_asked_for(request))
        answer = ListSecretsResponse(secrets=page.found, next_page_token=page.token, total_size=page.total)
        return ListSecretsResponse.pb(answer)

    async def get(self, request: Request) -> Message:
        return Secret.pb(self._secrets.get(**request.state.where))

    async def update(self, request: Request) -> Message:
        wanted = Secret()
        read(await request.body(), Secret.pb(wanted))
        mask = request.query_params.get("updateMask", "")
        return Secret.pb(self._secrets.update(**request.state.where, wanted=wanted, mask=mask))

    async def delete(self, request: Request) -> Message:
        self._secrets.delete(**request.state.where, etag=request.query_params.get("etag", ""))
        return Empty()

    async def add_version(self, request: Request) -> Message:
        wanted = AddSecretVersionRequest()
        check_base64(await request.body())
        read(await request.body(), AddSecretVersionRequest.pb(wanted), confidential=True)
        return SecretVersion.pb(self._secrets.add_version(**request.state.where, payload=wanted.payload))

    async def list_versions(self, request: Request) -> Message:
        page = self._secrets.list_versions(**request.state.where, asked=_asked_for(request))
        answer = ListSecretVersionsResponse(
            versions=page.found, next_page_token=page.token, total_size=page.total
        )
        return ListSecretVersionsResponse.pb(answer)

    async def get_version(self, request: Request) -> Message:
        return SecretVersion.pb(self._secrets.get_version(**request.state.where))

    async def access(self, request: Request) -> Message:
        return AccessSecretVersionResponse.pb(self._secrets.access(**request.state.where))

    async def enable(self, request: Request) -> Message:
        return await self._to(State.ENABLED, request)

    async def disable(self, request: Request) -> Message:
        return await self._to(State.DISABLED, request)

    async def destroy(self, request: Request) -> Message:
        return await self._to(State.DESTROYED, request)

    async def _to(self, state: State, request: Request) -> Message:
        wanted = DestroySecretVersionRequest()
        read(await request.body(), DestroySecretVersionRequest.pb(wanted))
        changed = self._secrets.set_state(**request.state.where, state=state, etag=wanted.etag)
        return SecretVersion.pb(changed)

    async def get_policy(self, request: Request) -> Message:
        version = _number(request, "options.requestedPolicyVersion")
        return self._secrets.policy(**request.state.where, version=version)

    async def set_policy(self, request: Request) -> Message:
        wanted = read(await request.body(), SetIamPolicyRequest())
        return self._secrets.set_policy(**request.state.where, wanted=wanted.policy)

    async def test_permissions(self, request: Request) -> Message:
        wanted = read(await request.body(), TestIamPermissionsRequest())
        policy = self._secrets.present_policy(**request.state.where)
        asked = [each.removeprefix(PREFIX) for each in wanted.permissions if each.startswith(PREFIX)]
        if len(asked) < len(wanted.permissions) or {*asked} - ALL:
            raise invalid("A permission is none of Secret Manager's.")
        has = self._callers.allowed(request.headers.get("authorization"), asked, policy)
        return TestIamPermissionsResponse(permissions=[PREFIX + each for each in has] if policy else [])


def _asked_for(request: Request) -> ListRequest:
    query = request.query_params
    return ListRequest(query.get("filter", ""), _number(request, "pageSize"), query.get("pageToken", ""))


def _number(request: Request, name: str) -> int:
    try:
        return int(request.query_params.get(name, 0))
    except ValueError:
        raise invalid(f"{name} must be a number.") from None


async def _refused(_: Request, error: Exception) -> Response:
    if not isinstance(error, GcpRefusal):
        raise error
    return error.response()


async def _not_served(request: Request, _: Exception) -> Response:
    return GcpRefusal("NOT_FOUND", f"{request.method} {request.url.path} is not served here.").response()
