"""The paths of Resource Manager: one for its metadata, one for every resource."""

import json
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pulumi_sandbox.services.cloud.front import Service
from pulumi_sandbox.services.cloud.resource_manager.resources import (
    TENANT,
    ArmRefusal,
    ResourceId,
    Resources,
    ResourceStore,
    bad_request,
    on_demand,
)


def make_app(folder: Path, federated_write: float = 0.1) -> Service:
    """Return the service for the data in a folder (created if missing).

    Any bearer token is accepted; subscriptions exist once they are named. federated_write: as in `Resources`.
    Raises SandboxError `state-unreadable`.
    """
    resources = Resources(ResourceStore(folder / "resources.json"), federated_write)

    async def get(request: Request) -> Response:
        return JSONResponse(resources.get(_id_of(request)))

    async def put(request: Request) -> Response:
        id_ = _id_of(request)
        document, is_new = await resources.put(id_, await _body_of(request))
        return JSONResponse(document, status_code=201 if is_new else 200)

    async def delete(request: Request) -> Response:
        deleted = await resources.delete(_id_of(request))
        if deleted is None:
            return Response(status_code=204)
        return JSONResponse(deleted) if deleted else Response(status_code=200)

    handlers: Any = {ArmRefusal: _refused, HTTPException: _not_served}
    app = Starlette(
        routes=[
            Route("/metadata/endpoints", _metadata),
            Route("/{path:path}", get),
            Route("/{path:path}", put, methods=["PUT"]),
            Route("/{path:path}", delete, methods=["DELETE"]),
        ],
        exception_handlers=handlers,
    )
    return Service(app, on_demand)


async def _metadata(request: Request) -> Response:
    """Return the cloud's metadata, so that a client only needs to know this host."""
    _check_version(request)
    address = f"{request.url.scheme}://{request.url.netloc}"
    cloud = {
        "name": "pulumi-sandbox",
        "portal": address,
        "authentication": {
            "loginEndpoint": address,
            "audiences": [address],
            "tenant": TENANT,
            "identityProvider": "AAD",
        },
        "resourceManager": address,
        "graph": address,
        "graphAudience": address,
        "microsoftGraphResourceId": address,
        "suffixes": {},
    }
    return JSONResponse(cloud)


def _id_of(request: Request) -> ResourceId:
    """Return the requested ID after checking that the request is allowed."""
    token = request.headers.get("authorization", "").removeprefix("Bearer").strip()
    if not token:
        raise ArmRefusal(
            401, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing."
        )
    _check_version(request)
    return ResourceId.read(request.url.path)


def _check_version(request: Request) -> None:
    given = next((value for key, value in request.query_params.items() if key.lower() == "api-version"), "")
    if not given:
        raise bad_request(
            "The api-version query parameter (?api-version=) is required for all requests.",
            "MissingApiVersionParameter",
        )


async def _body_of(request: Request) -> dict[str, Any]:
    try:
        body: Any = json.loads(await request.body() or b"{}")
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise bad_request("The request content was invalid and could not be read.", "InvalidRequestContent")
    return body


async def _refused(_: Request, refusal: ArmRefusal) -> Response:
    return refusal.response()


async def _not_served(request: Request, _: Exception) -> Response:
    message = f"{request.method} is not served at '{request.url.path}'."
    return ArmRefusal(405, "HttpMethodNotAllowed", message).response()
