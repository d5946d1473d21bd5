"""Reports about a pull secret: the conditions of HyperFleet's adapters.

They follow its contract 1.0.24, and Finalized of its adapter authoring guide. A report describes a completed
state. While an update runs, and if it fails, HyperFleet keeps the last report: the former version still
exists, and HyperFleet would ignore a report with an Unknown condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

ADAPTER: Final = "pullsecret"

Conditions: TypeAlias = Sequence[Mapping[str, str]]
"""Reported conditions, each with type, status, reason and message."""


def _condition(type_: str, holds: bool, reason: str, message: str) -> dict[str, str]:
    """Return a condition for HyperFleet, which is never Unknown. `reason`: CamelCase code."""
    return {"type": type_, "status": str(holds), "reason": reason, "message": message}


def of_skipped(unmet: Sequence[str]) -> Conditions:
    """Return the conditions of a skipped cluster, which is healthy."""
    why = "; ".join(unmet)
    return [
        _condition("Applied", False, "PreconditionsNotMet", why),
        _condition("Available", False, "PreconditionsNotMet", why),
        _condition("Health", True, "Healthy", "nothing is wrong: the cluster is skipped"),
    ]


def of_verified(version: int, overtaken: str) -> Conditions:
    """Return the conditions of a complete pull secret; `overtaken`: as in `VersionStanding`."""
    healthy = _condition("Health", True, "Healthy", "the latest version is the verified one")
    return [
        _condition("Applied", True, "SecretCreated", f"version {version} was added"),
        _condition(
            "Available", True, "SecretAvailable", f"version {version} was read back, and is what was given"
        ),
        _condition("Health", False, "VersionOvertaken", overtaken) if overtaken else healthy,
    ]


def of_removed() -> Conditions:
    """Return the conditions of a deleted pull secret, after which HyperFleet can delete the cluster."""
    what = "nothing of the pull secret is left but what onDelete keeps"
    return [
        _condition("Applied", False, "Removed", what),
        _condition("Available", False, "Removed", what),
        _condition("Health", True, "Healthy", "what had to be deleted is gone"),
        _condition("Finalized", True, "CleanupConfirmed", what),
    ]


def report(
    generation: int, conditions: Conditions, data: Mapping[str, str], observed_at: str
) -> dict[str, Any]:
    """Return a report. `generation`: of its cluster. `observed_at`: RFC 3339."""
    return {
        "adapter": ADAPTER,
        "observed_generation": generation,
        "observed_time": observed_at,
        "conditions": [dict(each) for each in conditions],
        "data": dict(data),
    }
