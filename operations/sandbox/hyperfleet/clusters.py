"""How HyperFleet shows a cluster and a report: with conditions made of what adapters reported.

The rules are those of `github.com/openshift-hyperfleet/hyperfleet-api` at 541f6b4. Whether the cluster was
ever reconciled is told of its present reports only: the stand-in keeps no history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from operations.sandbox.hyperfleet.reports import Report, is_final, states

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
