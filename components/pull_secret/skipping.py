"""The line in which a preview tells that a cluster is skipped, and how a report reads it back.

Unchanged resources are left out of the CLI's digest of a preview, lines never are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_OPENING: Final = "skipped: "
_BETWEEN: Final = "; "
_REASON: Final = re.compile(
    r"HyperFleet knows no such cluster \(ResourceNotFound\)"
    r"|the cluster is being deleted"
    r"|its provider is [A-Za-z0-9 -]{1,63}, and Secret Manager is only there on gcp"
    r"|no GCP project is named"
    r"|no pull secret is named"
    r"|adapter [a-z]{1,63} (has not reported|reports (True|False|Unknown))"
)
"""What preconditions say. Any other reason may quote what it found, and is left to the log."""


def line(unmet: Sequence[str]) -> str:
    """Tell why a cluster is skipped."""
    return _OPENING + _BETWEEN.join(unmet)


def heard(told: str) -> tuple[str, ...] | None:
    """Read the reasons back, those that are preconditions' own; None for a line that tells something else."""
    if not told.startswith(_OPENING):
        return None
    return tuple(one for one in told.removeprefix(_OPENING).strip().split(_BETWEEN) if _REASON.fullmatch(one))
