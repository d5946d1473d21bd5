"""What an adapter may report of a cluster (the adapters' status contract)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, TypeAlias

Report: TypeAlias = dict[str, Any]
"""adapter, observed_generation, observed_time (RFC 3339), conditions; data as it likes."""

CONDITIONS: Final = ("Applied", "Available", "Health")
_STATES: Final = ("True", "False", "Unknown")


def problems(report: Report) -> Iterator[str]:
    """Find what is wrong with a report; nothing for one that keeps the contract."""
    if not isinstance(report.get("adapter"), str) or not report["adapter"]:
        yield "adapter must name the adapter"
    generation = report.get("observed_generation")
    if not isinstance(generation, int) or isinstance(generation, bool) or generation < 1:
        yield "observed_generation must be a whole number from 1 on"
    if not _is_moment(report.get("observed_time")):
        yield "observed_time must be a moment as in RFC 3339"
    states = _states(report)
    for kind in CONDITIONS:
        if states.get(kind) not in _STATES:
            yield f"conditions must hold one of type {kind} with status True, False or Unknown"


def counts(report: Report) -> bool:
    """Whether a report is kept: one that does not know whether its adapter is available is dropped."""
    return _states(report).get("Available") != "Unknown"


def _states(report: Report) -> dict[str, object]:
    conditions = report.get("conditions")
    given = conditions if isinstance(conditions, list) else []
    return {str(each.get("type")): each.get("status") for each in given if isinstance(each, dict)}


def _is_moment(given: object) -> bool:
    try:
        return datetime.fromisoformat(str(given)).tzinfo is not None
    except ValueError:
        return False
