"""The paths of HyperFleet below `/api/hyperfleet/v1/`, and one of the sandbox's own that adds a cluster.

They follow version 1.0.24 of its contract.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pulumi_sandbox import files
from pulumi_sandbox.services.cloud.front import Service
from pydantic import AwareDatetime, BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

CONDITIONS: Final = ("Applied", "Available", "Health")
_OLDEST, _NEWEST = timedelta(minutes=30), timedelta(minutes=5)
REQUIRED: Final = ("validation", "dns", "placement", "pullsecret")
"""Adapters that every cluster requires."""

_SOMEBODY: Final = "sandbox@example.com"


class Condition(BaseModel, extra="allow"):
    """What an adapter says of one side of its work."""

    type: str
    status: Literal["True", "False", "Unknown"]


class Report(BaseModel):
    """What an adapter reports of a cluster; data as it likes."""

    adapter: Annotated[str, Field(min_length=1)]
    observed_generation: Annotated[int, Field(strict=True, ge=1)]
    observed_time: AwareDatetime
    conditions: list[Condition]
    metadata: Any = None
    data: Any = None

    def status(self, kind: str) -> str | None:
        """Return the status of a condition, or None."""
        return next((each.status for each in self.conditions if each.type == kind), None)

    def shown(self) -> dict[str, Any]:
        """Return the report as the API returns it."""
        told = self.model_dump(mode="json", exclude_none=True)
        at = told.pop("observed_time")
        conditions = [{"last_transition_time": at, **each} for each in told["conditions"]]
        return {**told, "conditions": conditions, "created_time": at, "last_report_time": at}

    def problems(self) -> Iterator[str]:
        """Yield the problems that the types do not exclude."""
        now = datetime.now(UTC)
        if not now - _OLDEST <= self.observed_time <= now + _NEWEST:
            yield "observed_time must be at most 30 minutes ago and in 5 minutes"
        kinds = [each.type for each in self.conditions]
        if len({*kinds}) != len(kinds) or not {*CONDITIONS} <= {*kinds}:
            yield f"conditions must hold each of {', '.join(CONDITIONS)}, and no type twice"

    def counts(self, generation: int, before: Report | None) -> bool:
        """Return whether it is stored; generation: of the cluster now. before: the adapter's last report."""
        if self.observed_generation > generation:
            return False
        if before is None:
            return True
        known, told = ((one.observed_generation, one.observed_time) for one in (before, self))
        return told >= known and self.status("Available") != "Unknown"


def now() -> str:
    """Return the current time in RFC 3339."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class Cluster(BaseModel):
    """A cluster; times in RFC 3339."""

    name: str
    generation: int = 1
    created_time: str = Field(default_factory=now)
    updated_time: str = Field(default_factory=now)
    deleted_time: str | None = None

    def shown(self, id_: str, reports: Mapping[str, Report]) -> dict[str, Any]:
        """Return the cluster as the API returns it."""
        return {
            **self.model_dump(exclude_none=True),
            "id": id_,
            "kind": "Cluster",
            "href": f"/api/hyperfleet/v1/clusters/{id_}",
            "spec": {},
            "created_by": _SOMEBODY,
            "updated_by": _SOMEBODY,
            "status": {"conditions": [*self._conditions(reports)]},
        }

    def _conditions(self, reports: Mapping[str, Report]) -> Iterator[dict[str, Any]]:
        available = {name: one for name, one in reports.items() if one.status("Available") == "True"}
        generations = {available[name].observed_generation for name in REQUIRED if name in available}
        are_all = all(name in available for name in REQUIRED) and len(generations) == 1
        is_reconciled = are_all and generations == {self.generation} and self.deleted_time is None
        yield self._condition("Reconciled", is_reconciled, self.generation)
        yield self._condition("LastKnownReconciled", are_all, max(generations, default=1))
        for name, one in reports.items():
            kind = "".join(part.capitalize() for part in name.split("-"))
            yield self._condition(f"{kind}Successful", name in available, one.observed_generation)

    def _condition(self, kind: str, holds: bool, generation: int) -> dict[str, Any]:
        fields = ("created_time", "last_updated_time", "last_transition_time")
        times = dict.fromkeys(fields, self.updated_time)
        return {"type": kind, "status": str(holds), "observed_generation": generation, **times}


class _Kept(BaseModel):
    """Clusters by id, and what adapters last reported of each, by adapter."""

    clusters: dict[str, Cluster]
    reports: dict[str, dict[str, Report]]


class _UnknownClusterError(Exception):
    """No cluster has this ID."""


class Store:
    """Clusters and reports, in memory and in a file, which is written before each response."""

    def __init__(self, file: Path) -> None:
        """Load the file of an earlier process.

        Raises SandboxError `state-unreadable`.
        """
        self._file = file
        self._kept = _Kept(clusters={}, reports={})
        faulty = "it holds no clusters of the HyperFleet emulator"
        fix = "remove the file; the next update brings the stack's clusters again"
        with suppress(FileNotFoundError), files.readable(file, faulty, fix):
            self._kept = _Kept.model_validate_json(file.read_bytes())

    def cluster(self, id_: str) -> Cluster:
        """Return a cluster; raises _UnknownClusterError."""
        if id_ not in self._kept.clusters:
            raise _UnknownClusterError(id_)
        return self._kept.clusters[id_]

    def reports(self, id_: str) -> dict[str, Report]:
        """Return the last reports on a cluster by adapter, sorted."""
        return dict(sorted(self._kept.reports.get(id_, {}).items()))

    def bring(self, id_: str, given: Mapping[str, Any]) -> None:
        """Store a cluster's name and generation; its reports and its deletion time are kept."""
        told = Cluster(name=given.get("name", id_), generation=given.get("generation", 1))
        if known := self._kept.clusters.get(id_):
            stays = {"created_time": known.created_time, "deleted_time": known.deleted_time}
            told = told.model_copy(update=stays)
        self._write({**self._kept.clusters, id_: told}, self._kept.reports)

    def delete(self, id_: str) -> None:
        """Start deleting a cluster, which increments its generation; does nothing if already started."""
        known = self.cluster(id_)
        if known.deleted_time is None:
            changed = {"generation": known.generation + 1, "deleted_time": now()}
            clusters = {**self._kept.clusters, id_: known.model_copy(update=changed)}
            self._write(clusters, self._kept.reports)

    def keep_report(self, id_: str, report: Report) -> None:
        """Replace the adapter's last report; remove a cluster whose deletion only waited for this one."""
        of_cluster = {**self._kept.reports.get(id_, {}), report.adapter: report}
        clusters, reports = {**self._kept.clusters}, {**self._kept.reports, id_: of_cluster}
        if clusters[id_].deleted_time is not None and all(
            name in of_cluster
            and of_cluster[name].observed_generation == clusters[id_].generation
            and of_cluster[name].status("Finalized") == "True"
            for name in REQUIRED
        ):
            del clusters[id_], reports[id_]
        self._write(clusters, reports)

    def _write(self, clusters: dict[str, Cluster], reports: dict[str, dict[str, Report]]) -> None:
        kept = _Kept(clusters=clusters, reports=reports)
        files.replace(self._file, kept.model_dump_json(indent=1), mode=files.PRIVATE)
        self._kept = kept


_CLUSTER: Final = "/api/hyperfleet/v1/clusters/{id}"
_PAGE: Final = 20


def make_app(folder: Path) -> Service:
    """Return the service for the data in a folder (created if missing).

    Clusters are added by `PUT /sandbox/clusters/ID`, with name and generation. Raises SandboxError
    `state-unreadable`.
    """
    store = Store(folder / "clusters.json")

    async def bring(request: Request) -> Response:
        store.bring(request.path_params["id"], await request.json())
        return Response(status_code=204)

    def cluster(id_: str, status: int) -> Response:
        return JSONResponse(store.cluster(id_).shown(id_, store.reports(id_)), status_code=status)

    async def get(request: Request) -> Response:
        return cluster(request.path_params["id"], 200)

    async def delete(request: Request) -> Response:
        id_ = request.path_params["id"]
        store.delete(id_)
        return cluster(id_, 202)

    async def list_reports(request: Request) -> Response:
        id_ = request.path_params["id"]
        store.cluster(id_)
        page = int(request.query_params.get("page", 1))
        whole = [one.shown() for one in store.reports(id_).values()]
        items = whole[(page - 1) * _PAGE : page * _PAGE]
        return JSONResponse({"page": page, "size": len(items), "total": len(whole), "items": items})

    async def report(request: Request) -> Response:
        id_ = request.path_params["id"]
        try:
            given = Report.model_validate_json(await request.body())
            wrong = [*given.problems()]
        except ValidationError as error:
            given = None
            wrong = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        if given is None or wrong:
            return _refusal(400, "HYPERFLEET-VAL-000", f"Validation failed: {'; '.join(wrong)}.")
        before = store.reports(id_).get(given.adapter)
        if not given.counts(store.cluster(id_).generation, before):
            return Response(status_code=204)
        store.keep_report(id_, given)
        return JSONResponse(given.shown(), status_code=201)

    app = Starlette(
        routes=[
            Route(_CLUSTER, get),
            Route(_CLUSTER, delete, methods=["DELETE"]),
            Route(f"{_CLUSTER}/statuses", list_reports),
            Route(f"{_CLUSTER}/statuses", report, methods=["PUT"]),
        ],
        exception_handlers={HTTPException: _not_served, _UnknownClusterError: _unknown},
    )
    own = [Route("/sandbox/clusters/{id}", bring, methods=["PUT"])]
    asked = "The sandbox was asked to answer {}.".format
    return Service(app, lambda status: _refusal(status, "HYPERFLEET-INT-001", asked(status)), own)


async def _unknown(_: Request, error: Exception) -> Response:
    return _refusal(404, "HYPERFLEET-NTF-002", f"Cluster with id='{error}' not found")


async def _not_served(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code != 404:
        return PlainTextResponse(error.detail, error.status_code, error.headers)  # as Go's own router does
    return _refusal(404, "HYPERFLEET-NTF-000", f"The requested endpoint '{request.url.path}' does not exist")


def _refusal(status: int, code: str, detail: str) -> Response:
    problem = {
        "type": "https://api.hyperfleet.io/errors/sandbox",
        "title": code,
        "status": status,
        "detail": detail,
        "code": code,
        "timestamp": now(),
    }
    return JSONResponse(problem, status_code=status, media_type="application/problem+json")
