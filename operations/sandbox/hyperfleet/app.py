"""The paths of HyperFleet below `/api/hyperfleet/v1/`, and one of the sandbox's own to bring a cluster in.

They are those of its contract 1.0.24.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

from pulumi_sandbox import files
from pulumi_sandbox.services import Service
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from components.documents import read_json

Report: TypeAlias = dict[str, Any]
"""adapter, observed_generation, observed_time (RFC 3339), conditions; data as it likes."""

CONDITIONS: Final = ("Applied", "Available", "Health")
_STATES: Final = ("True", "False", "Unknown")
_OLDEST, _NEWEST = timedelta(minutes=30), timedelta(minutes=5)
REQUIRED: Final = ("validation", "dns", "placement", "pullsecret")
"""The adapters that every cluster needs."""

_SOMEBODY: Final = "sandbox@example.com"


def render(id_: str, cluster: Mapping[str, Any], reports: Mapping[str, Report]) -> dict[str, Any]:
    """Return a cluster as its path answers it."""
    return {
        **cluster,
        "id": id_,
        "kind": "Cluster",
        "href": f"/api/hyperfleet/v1/clusters/{id_}",
        "spec": {},
        "created_by": _SOMEBODY,
        "updated_by": _SOMEBODY,
        "status": {"conditions": [*_conditions(cluster, reports)]},
    }


def shown_report(kept: Report) -> dict[str, Any]:
    """Return a report as its path answers it."""
    at = kept["observed_time"]
    fields = ("adapter", "observed_generation", "metadata", "data")
    conditions = [{"last_transition_time": at, **each} for each in kept["conditions"]]
    told = {key: kept[key] for key in fields if key in kept}
    return {**told, "conditions": conditions, "created_time": at, "last_report_time": at}


def _conditions(cluster: Mapping[str, Any], reports: Mapping[str, Report]) -> Iterator[dict[str, Any]]:
    available = {name: one for name, one in reports.items() if states(one).get("Available") == "True"}
    generations = {available[name]["observed_generation"] for name in REQUIRED if name in available}
    are_all = all(name in available for name in REQUIRED) and len(generations) == 1
    is_reconciled = are_all and generations == {cluster["generation"]} and "deleted_time" not in cluster
    yield _condition(cluster, "Reconciled", is_reconciled, cluster["generation"])
    yield _condition(cluster, "LastKnownReconciled", are_all, max(generations, default=1))
    for name, one in reports.items():
        kind = "".join(part.capitalize() for part in name.split("-"))
        yield _condition(cluster, f"{kind}Successful", name in available, one["observed_generation"])


def _condition(cluster: Mapping[str, Any], kind: str, holds: bool, generation: int) -> dict[str, Any]:
    times = dict.fromkeys(
        ("created_time", "last_updated_time", "last_transition_time"), cluster["updated_time"]
    )
    return {"type": kind, "status": str(holds), "observed_generation": generation, **times}


def problems(report: Report) -> Iterator[str]:
    """Find what is wrong with a report; nothing for one that keeps the contract."""
    if not isinstance(report.get("adapter"), str) or not report["adapter"]:
        yield "adapter is required"
    generation = report.get("observed_generation")
    if not isinstance(generation, int) or isinstance(generation, bool) or generation < 1:
        yield "observed_generation must be a whole number from 1 on"
    if not _is_of_now(report.get("observed_time")):
        yield "observed_time must be a moment as in RFC 3339, at most 30 minutes ago and in 5 minutes"
    given = report.get("conditions")
    kinds = [each.get("type") for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    if len({*kinds}) != len(kinds):
        yield "conditions must not hold a type twice"
    for kind in {*CONDITIONS, *map(str, kinds)}:
        if states(report).get(kind) not in _STATES:
            yield f"conditions must hold one of type {kind} with status True, False or Unknown"


def counts(report: Report, generation: int, before: Report | None) -> bool:
    """Whether a report is kept; generation: of the cluster now. before: the adapter's last one."""
    if report["observed_generation"] > generation:
        return False
    if before is None:
        return True
    known, told = ((one["observed_generation"], _moment(one["observed_time"])) for one in (before, report))
    return told >= known and states(report)["Available"] != "Unknown"


def states(report: Report) -> dict[str, object]:
    """Return type → status of a report's conditions."""
    conditions = report.get("conditions")
    given = conditions if isinstance(conditions, list) else []
    return {str(each.get("type")): each.get("status") for each in given if isinstance(each, dict)}


def _is_of_now(given: object) -> bool:
    now = datetime.now(UTC)
    try:
        return now - _OLDEST <= _moment(given) <= now + _NEWEST
    except (TypeError, ValueError):  # without an offset it compares with none
        return False


def _moment(given: object) -> datetime:
    return datetime.fromisoformat(str(given))


class Store:
    """Clusters and reports, in memory and in a file: what is answered has been written before."""

    def __init__(self, file: Path) -> None:
        """Read what an earlier process left.

        Raises SandboxError `state-unreadable`.
        """
        self._file = file
        self._clusters: dict[str, dict[str, Any]] = {}
        self._reports: dict[str, dict[str, Report]] = {}
        faulty = "it holds no clusters of the HyperFleet emulator"
        fix = "remove the file; the next update brings the stack's clusters again"
        with suppress(FileNotFoundError), files.readable(file, faulty, fix):
            kept = read_json(file.read_text(encoding="utf-8"))
            self._clusters = {id_: _known(one) for id_, one in kept["clusters"].items()}
            self._reports = dict(kept["reports"])

    def cluster(self, id_: str) -> dict[str, Any] | None:
        """Return a cluster."""
        return self._clusters.get(id_)

    def reports(self, id_: str) -> dict[str, Report]:
        """Return what adapters last reported of a cluster, by adapter, in their order."""
        return dict(sorted(self._reports.get(id_, {}).items()))

    def bring(self, id_: str, given: dict[str, Any]) -> None:
        """Keep a cluster by its name and generation; reports of it stay, and so does its deletion."""
        known = self._clusters.get(id_, {"created_time": now()})
        told = {"name": str(given.get("name", id_)), "generation": int(given.get("generation", 1))}
        self._write({**self._clusters, id_: {**known, **told, "updated_time": now()}}, self._reports)

    def delete(self, id_: str) -> None:
        """Begin to delete a cluster, which is another generation of it; one that is deleted stays so."""
        known = self._clusters.get(id_)
        if known is not None and "deleted_time" not in known:
            deleted = {**known, "generation": known["generation"] + 1, "deleted_time": now()}
            self._write({**self._clusters, id_: deleted}, self._reports)

    def keep_report(self, id_: str, report: Report) -> Report:
        """Put a report in the place of the adapter's last one; a cluster that waited for it alone is gone."""
        of_cluster = {**self._reports.get(id_, {}), report["adapter"]: report}
        clusters, reports = {**self._clusters}, {**self._reports, id_: of_cluster}
        if "deleted_time" in clusters[id_] and all(
            name in of_cluster
            and of_cluster[name]["observed_generation"] == clusters[id_]["generation"]
            and states(of_cluster[name]).get("Finalized") == "True"
            for name in REQUIRED
        ):
            del clusters[id_], reports[id_]
        self._write(clusters, reports)
        return report

    def _write(self, clusters: dict[str, dict[str, Any]], reports: dict[str, dict[str, Report]]) -> None:
        document = json.dumps({"clusters": clusters, "reports": reports}, indent=1)
        files.replace(self._file, document, mode=files.PRIVATE)
        self._clusters, self._reports = clusters, reports


def now() -> str:
    """Return the present moment, RFC 3339."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _known(kept: dict[str, Any]) -> dict[str, Any]:
    """Read a cluster that was kept, also by an emulator that kept what it was brought as it was."""
    fields = ("name", "generation", "created_time", "updated_time", "deleted_time")
    since = now()
    return {"generation": 1, "created_time": since, "updated_time": since} | {
        key: kept[key] for key in fields if key in kept
    }


_CLUSTER: Final = "/api/hyperfleet/v1/clusters/{id}"
_PAGE: Final = 20


def make_app(folder: Path) -> Service:
    """Make the service over what is kept in a folder (made if missing).

    It knows the clusters that were brought in by `PUT /sandbox/clusters/ID`, with name and generation.
    Raises SandboxError `state-unreadable`.
    """
    paths = _Paths(Store(folder / "clusters.json"))
    app = Starlette(
        routes=[
            Route(_CLUSTER, paths.get),
            Route(_CLUSTER, paths.delete, methods=["DELETE"]),
            Route(f"{_CLUSTER}/statuses", paths.list_reports),
            Route(f"{_CLUSTER}/statuses", paths.report, methods=["PUT"]),
        ],
        exception_handlers={HTTPException: _not_served},
    )
    own = [Route("/sandbox/clusters/{id}", paths.bring, methods=["PUT"])]
    asked = "The sandbox was asked to answer {}.".format
    return Service(app, lambda status: _refusal(status, "HYPERFLEET-INT-001", asked(status)), own)


class _Paths:
    """What each path does."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def bring(self, request: Request) -> Response:
        cluster = await _body_of(request)
        if cluster is None:
            return _refusal(400, "HYPERFLEET-VAL-006", "The body must be a JSON object.")
        self._store.bring(request.path_params["id"], cluster)
        return Response(status_code=204)

    async def get(self, request: Request) -> Response:
        return self._cluster(request.path_params["id"], 200)

    async def delete(self, request: Request) -> Response:
        id_ = request.path_params["id"]
        self._store.delete(id_)
        return self._cluster(id_, 202)

    async def list_reports(self, request: Request) -> Response:
        id_ = request.path_params["id"]
        if self._store.cluster(id_) is None:
            return _unknown(id_)
        try:
            page, size = (int(request.query_params.get(*one)) for one in (("page", 1), ("size", _PAGE)))
        except ValueError:
            page = size = 0
        if page < 1 or size < 1:
            return _refusal(400, "HYPERFLEET-VAL-005", "page and size are numbers from 1 on.")
        whole = [shown_report(one) for one in self._store.reports(id_).values()]
        items = whole[(page - 1) * size : page * size]
        return JSONResponse({"page": page, "size": len(items), "total": len(whole), "items": items})

    async def report(self, request: Request) -> Response:
        id_ = request.path_params["id"]
        given = await _body_of(request) or {}
        wrong = [*problems(given)]
        if wrong:
            return _refusal(400, "HYPERFLEET-VAL-000", f"Validation failed: {'; '.join(wrong)}.")
        cluster = self._store.cluster(id_)
        if cluster is None:
            return _unknown(id_)
        if not counts(given, cluster["generation"], self._store.reports(id_).get(given["adapter"])):
            return Response(status_code=204)
        return JSONResponse(shown_report(self._store.keep_report(id_, given)), status_code=201)

    def _cluster(self, id_: str, status: int) -> Response:
        cluster = self._store.cluster(id_)
        if cluster is None:
            return _unknown(id_)
        return JSONResponse(render(id_, cluster, self._store.reports(id_)), status_code=status)


def _unknown(id_: str) -> Response:
    return _refusal(404, "HYPERFLEET-NTF-002", f"Cluster with id='{id_}' not found")


async def _not_served(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code != 404:
        return PlainTextResponse(error.detail, error.status_code, error.headers)  # as Go's own router has it
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


async def _body_of(request: Request) -> dict[str, Any] | None:
    try:
        body: Any = read_json(await request.body())
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
