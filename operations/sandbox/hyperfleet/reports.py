"""What an adapter may report of a cluster, and which report HyperFleet drops without a word.

The rules are those of `github.com/openshift-hyperfleet/hyperfleet-api` at 541f6b4,
`pkg/handlers/validation.go` and `pkg/services/adapter_status_validation.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

Report: TypeAlias = dict[str, Any]
"""adapter, observed_generation, observed_time (RFC 3339), conditions; data as it likes."""

CONDITIONS: Final = ("Applied", "Available", "Health")
_STATES: Final = ("True", "False", "Unknown")
_OLDEST, _NEWEST = timedelta(minutes=30), timedelta(minutes=5)


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
