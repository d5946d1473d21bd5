"""What adapters may report of a cluster, and how HyperFleet shows both: with conditions made of reports.

The rules are those of `github.com/openshift-hyperfleet/hyperfleet-api` at 541f6b4,
`pkg/handlers/validation.go` and `pkg/services/adapter_status_validation.go`. Whether the cluster was
ever reconciled is told of its present reports only: the stand-in keeps no history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

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


def is_gone(cluster: Mapping[str, Any], reports: Mapping[str, Report]) -> bool:
    """Whether the last adapter that a cluster's deletion waits for has reported that it has cleaned up."""
    return "deleted_time" in cluster and all(
        name in reports and is_final(reports[name], cluster["generation"]) for name in REQUIRED
    )


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


def is_final(report: Report, generation: int) -> bool:
    """Whether an adapter has cleaned up after a cluster of this generation."""
    return report["observed_generation"] == generation and states(report).get("Finalized") == "True"


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
