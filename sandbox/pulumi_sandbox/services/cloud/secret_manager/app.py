"""The REST paths of Secret Manager below `/v1/`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from google.cloud.secretmanager_v1.types import (
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
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pulumi_sandbox.services.cloud.front import Service
from pulumi_sandbox.services.cloud.secret_manager.callers import (
    Callers,
    GcpRefusal,
    invalid,
    member_of,
    not_kept,
    on_demand,
)
from pulumi_sandbox.services.cloud.secret_manager.secrets import (
    M,
    Secrets,
    SecretStore,
    State,
    check_base64,
    read,
    shown,
)

_PARENTS: Final = ("/v1/projects/{project}", "/v1/projects/{project}/locations/{location}")
_SECRET: Final = "/secrets/{secret}"  # noqa: S105 - a path
_VERSION: Final = f"{_SECRET}/versions/{{version}}"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request: where (the arguments that say which secret or version), its query, its body."""

    where: dict[str, str]
    query: QueryParams
    body: bytes

    def read(self, message: M, *, confidential: bool = False) -> M:
        """Fill a message of the body."""
        return read(self.body, message, confidential=confidential)


Answer: TypeAlias = Callable[[_Asked], Any]
_Served: TypeAlias = tuple[str, str, str, Answer]
"""Method, path, permission, and what answers, by a message of protobuf or one of proto-plus."""


def make_app(folder: Path) -> Service:
    """Make the service over what is kept in a folder (made if missing).

    A request needs a bearer token, which says who asks (`callers.py`). `PUT /sandbox/callers` gives a
    member permissions, as `{"member": …, "permissions": […]}`; `GET /sandbox/callers?member=…` lists those
    it has used.

    Raises SandboxError `state-unreadable`.
    """
    secrets, callers = Secrets(SecretStore(folder)), Callers()

    async def allow(request: Request) -> Response:
        given = await request.json()
        callers.allow(given["member"], given["permissions"])
        return Response(status_code=204)

    async def used(request: Request) -> Response:
        return JSONResponse(callers.used(request.query_params["member"]))

    routes = [_route(parent, served, secrets, callers) for parent in _PARENTS for served in _served(secrets)]
    handlers: Any = {GcpRefusal: _refused, HTTPException: _not_served}
    own = [Route("/sandbox/callers", used), Route("/sandbox/callers", allow, methods=["PUT"])]
    return Service(Starlette(routes=routes, exception_handlers=handlers), on_demand, own)


def _route(above: str, served: _Served, secrets: Secrets, callers: Callers) -> Route:
    """Serve a path to callers who have a permission on what it names."""
    method, path, permission, answer = served

    async def serve(request: Request) -> Response:
        given, header = dict(request.path_params), request.headers.get("authorization")
        member_of(header)
        parent = secrets.parent(given.pop("project"), given.pop("location", None))
        policy = secrets.present_policy(parent, given.get("secret", ""))
        callers.check(header, permission, request.url.path.removeprefix("/v1/"), policy)
        message = answer(_Asked({"parent": parent, **given}, request.query_params, await request.body()))
        return JSONResponse(shown(message if isinstance(message, Message) else type(message).pb(message)))

    return Route(above + path, serve, methods=[method])


def _served(secrets: Secrets) -> list[_Served]:
    def given(asked: _Asked) -> Secret:
        wanted = Secret()
        asked.read(Secret.pb(wanted))
        return wanted

    def create(asked: _Asked) -> Secret:
        secret = asked.query.get("secretId", "")
        return secrets.create(**asked.where, secret=secret, wanted=given(asked))

    def list_(asked: _Asked) -> ListSecretsResponse:
        found = secrets.list(**asked.where, filter_=_filter(asked))
        return ListSecretsResponse(secrets=found, total_size=len(found))

    def update(asked: _Asked) -> Secret:
        mask = asked.query.get("updateMask", "")
        return secrets.update(**asked.where, wanted=given(asked), mask=mask)

    def delete(asked: _Asked) -> Empty:
        secrets.delete(**asked.where, etag=asked.query.get("etag", ""))
        return Empty()

    def set_policy(asked: _Asked) -> Message:
        return secrets.set_policy(**asked.where, wanted=asked.read(SetIamPolicyRequest()).policy)

    def add(asked: _Asked) -> SecretVersion:
        wanted = AddSecretVersionRequest()
        check_base64(asked.body)
        asked.read(AddSecretVersionRequest.pb(wanted), confidential=True)
        return secrets.add_version(**asked.where, payload=wanted.payload)

    def list_versions(asked: _Asked) -> ListSecretVersionsResponse:
        if _filter(asked):
            raise not_kept("filters of versions")
        found = secrets.list_versions(**asked.where)
        return ListSecretVersionsResponse(versions=found, total_size=len(found))

    def turn(asked: _Asked, state: State) -> SecretVersion:
        wanted = DestroySecretVersionRequest()
        asked.read(DestroySecretVersionRequest.pb(wanted))
        return secrets.set_state(**asked.where, state=state, etag=wanted.etag)

    return [
        ("POST", "/secrets", "secrets.create", create),
        ("GET", "/secrets", "secrets.list", list_),
        ("POST", f"{_SECRET}:addVersion", "versions.add", add),
        ("GET", f"{_SECRET}:getIamPolicy", "secrets.getIamPolicy", lambda a: secrets.policy(**a.where)),
        ("POST", f"{_SECRET}:setIamPolicy", "secrets.setIamPolicy", set_policy),
        ("GET", f"{_SECRET}/versions", "versions.list", list_versions),
        ("GET", f"{_VERSION}:access", "versions.access", lambda a: secrets.access(**a.where)),
        ("POST", f"{_VERSION}:enable", "versions.enable", partial(turn, state=State.ENABLED)),
        ("POST", f"{_VERSION}:disable", "versions.disable", partial(turn, state=State.DISABLED)),
        ("POST", f"{_VERSION}:destroy", "versions.destroy", partial(turn, state=State.DESTROYED)),
        ("GET", _VERSION, "versions.get", lambda a: secrets.get_version(**a.where)),
        ("GET", _SECRET, "secrets.get", lambda a: secrets.get(**a.where)),
        ("PATCH", _SECRET, "secrets.update", update),
        ("DELETE", _SECRET, "secrets.delete", delete),
    ]


def _filter(asked: _Asked) -> str:
    """Return the filter of a list; the answer is one page."""
    if asked.query.get("pageToken"):
        raise invalid("The page_token must be one that was answered.")
    return asked.query.get("filter", "")


async def _refused(_: Request, error: Exception) -> Response:
    if not isinstance(error, GcpRefusal):
        raise error
    return error.response()


async def _not_served(request: Request, _: Exception) -> Response:
    return GcpRefusal("NOT_FOUND", f"{request.method} {request.url.path} is not served here.").response()
