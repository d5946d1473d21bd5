"""What is reported of a pull secret: the conditions of HyperFleet's adapters.

They are those of its contract 1.0.24, and Finalized of its adapter authoring guide.

A report is made of what was reached. While an update runs, and when it fails, HyperFleet keeps the last one:
the former version is still there, and a condition that is Unknown would make it ignore the report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

ADAPTER: Final = "pullsecret"

Conditions: TypeAlias = Sequence[Mapping[str, str]]
"""What is reported: type, status, reason and message of each."""


def _condition(type_: str, holds: bool, reason: str, message: str) -> dict[str, str]:
    """Return a condition as HyperFleet takes it: never Unknown. reason: a word for machines."""
    return {"type": type_, "status": str(holds), "reason": reason, "message": message}


def of_skipped(unmet: Sequence[str]) -> Conditions:
    """Return the conditions of a cluster that waits; nothing is wrong with it."""
    why = "; ".join(unmet)
    return [
        _condition("Applied", False, "PreconditionsNotMet", why),
        _condition("Available", False, "PreconditionsNotMet", why),
        _condition("Health", True, "Healthy", "nothing is wrong: the cluster is skipped"),
    ]


def of_verified(version: int, overtaken: str) -> Conditions:
    """Return those of a pull secret that is where it belongs; overtaken: as in a `Standing`."""
    healthy = _condition("Health", True, "Healthy", "the latest version is the verified one")
    return [
        _condition("Applied", True, "SecretCreated", f"version {version} was added"),
        _condition(
            "Available", True, "SecretAvailable", f"version {version} was read back, and is what was given"
        ),
        _condition("Health", False, "VersionOvertaken", overtaken) if overtaken else healthy,
    ]


def of_removed() -> Conditions:
    """Return those of a pull secret that went with its cluster: HyperFleet may let the cluster go."""
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
    """Draw a report. generation: of the cluster it is about. observed_at: RFC 3339."""
    return {
        "adapter": ADAPTER,
        "observed_generation": generation,
        "observed_time": observed_at,
        "conditions": [dict(each) for each in conditions],
        "data": dict(data),
    }
