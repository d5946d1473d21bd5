"""The paths of HyperFleet below `/api/hyperfleet/v1/`, and one of the sandbox's own to bring a cluster in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox.services import Service
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from operations.sandbox.hyperfleet.reports import counts, problems
from operations.sandbox.hyperfleet.store import Store

_CLUSTER: Final = "/api/hyperfleet/v1/clusters/{id}"


def make_app(folder: Path) -> Service:
    """Make the service over what is kept in a folder (made if missing).

    It knows the clusters that were brought in by `PUT /sandbox/clusters/ID`, whose body is the cluster: what
    it has of name, generation, spec and status is answered.

    Raises:
        SandboxError: `state-unreadable`.
    """
    paths = _Paths(Store(folder / "clusters.json"))
    app = Starlette(
        routes=[
            Route(_CLUSTER, paths.get),
            Route(f"{_CLUSTER}/statuses", paths.list_reports),
            Route(f"{_CLUSTER}/statuses", paths.report, methods=["POST", "PUT"]),
        ],
        exception_handlers={HTTPException: _no_such_path},
    )
    own = [Route("/sandbox/clusters/{id}", paths.bring, methods=["PUT"])]
    return Service(app, _on_demand, own)


class _Paths:
    """What each path does."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def bring(self, request: Request) -> Response:
        cluster = await _body_of(request)
        if cluster is None:
            return _refusal(400, "HYPERFLEET-VAL-000", "The body must be a JSON object.")
        self._store.keep_cluster(request.path_params["id"], cluster)
        return Response(status_code=204)

    async def get(self, request: Request) -> Response:
        id_ = request.path_params["id"]
        cluster = self._store.cluster(id_)
        return _unknown(id_) if cluster is None else JSONResponse({**cluster, "kind": "Cluster", "id": id_})

    async def list_reports(self, request: Request) -> Response:
        id_ = request.path_params["id"]
        if self._store.cluster(id_) is None:
            return _unknown(id_)
        items = list(self._store.reports(id_).values())
        head = {"kind": "AdapterStatusList", "page": 1, "size": len(items), "total": len(items)}
        return JSONResponse({**head, "items": items})

    async def report(self, request: Request) -> Response:
        id_ = request.path_params["id"]
        if self._store.cluster(id_) is None:
            return _unknown(id_)
        given = await _body_of(request) or {}
        wrong = [*problems(given)]
        if wrong:
            return _refusal(400, "HYPERFLEET-VAL-000", f"Validation failed: {'; '.join(wrong)}.")
        if not counts(given):
            return Response(status_code=204)
        is_first = self._store.keep_report(id_, given)
        return JSONResponse(given, status_code=201 if is_first else 200)


def _unknown(id_: str) -> Response:
    return _refusal(404, "HYPERFLEET-NTF-001", f"Cluster with id='{id_}' not found.")


async def _no_such_path(request: Request, _: Exception) -> Response:
    return _refusal(404, "HYPERFLEET-NTF-000", f"The path '{request.url.path}' is not served.")


def _on_demand(status: int) -> Response:
    return _refusal(status, "HYPERFLEET-INT-000", f"The sandbox was asked to answer {status}.")


def _refusal(status: int, code: str, reason: str) -> Response:
    return JSONResponse({"kind": "Error", "code": code, "reason": reason}, status_code=status)


async def _body_of(request: Request) -> dict[str, Any] | None:
    try:
        body: Any = json.loads(await request.body())
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
