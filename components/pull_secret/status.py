"""What is reported of a pull secret: the conditions of HyperFleet's adapters.

They are those of its contract 1.0.24, and Finalized of its adapter authoring guide.

A report is made of what was reached. While an update runs, and when it fails, HyperFleet keeps the last one:
the former version is still there, and a condition that is Unknown would make it ignore the report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

ADAPTER: Final = "pullsecret"

_APPLIED: Final = "Applied"
_AVAILABLE: Final = "Available"
_HEALTH: Final = "Health"
_FINALIZED: Final = "Finalized"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition. holds: True or False, never Unknown. reason: a word for machines."""

    type: str
    holds: bool
    reason: str
    message: str

    @property
    def document(self) -> dict[str, str]:
        """The condition as HyperFleet takes it."""
        return {
            "type": self.type,
            "status": str(self.holds),
            "reason": self.reason,
            "message": self.message,
        }


def of_skipped(unmet: Sequence[str]) -> tuple[Condition, ...]:
    """Return the conditions of a cluster that waits; nothing is wrong with it."""
    why = "; ".join(unmet)
    return (
        Condition(_APPLIED, False, "PreconditionsNotMet", why),
        Condition(_AVAILABLE, False, "PreconditionsNotMet", why),
        Condition(_HEALTH, True, "Healthy", "nothing is wrong: the cluster is skipped"),
    )


def of_verified(version: int, overtaken: str) -> tuple[Condition, ...]:
    """Return those of a pull secret that is where it belongs; overtaken: as in a `Standing`."""
    healthy = Condition(_HEALTH, True, "Healthy", "the latest version is the verified one")
    return (
        Condition(_APPLIED, True, "SecretCreated", f"version {version} was added"),
        Condition(
            _AVAILABLE, True, "SecretAvailable", f"version {version} was read back, and is what was given"
        ),
        Condition(_HEALTH, False, "VersionOvertaken", overtaken) if overtaken else healthy,
    )


def of_removed() -> tuple[Condition, ...]:
    """Return those of a pull secret that went with its cluster: HyperFleet may let the cluster go."""
    what = "nothing of the pull secret is left but what onDelete keeps"
    return (
        Condition(_APPLIED, False, "Removed", what),
        Condition(_AVAILABLE, False, "Removed", what),
        Condition(_HEALTH, True, "Healthy", "what was to go is gone"),
        Condition(_FINALIZED, True, "CleanupConfirmed", what),
    )


def report(
    generation: int, conditions: Sequence[Mapping[str, str]], data: Mapping[str, str], observed_at: str
) -> dict[str, Any]:
    """Draw a report. generation: of the cluster it is about. observed_at: RFC 3339."""
    return {
        "adapter": ADAPTER,
        "observed_generation": generation,
        "observed_time": observed_at,
        "conditions": [dict(each) for each in conditions],
        "data": dict(data),
    }
