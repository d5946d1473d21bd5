"""The file in which `credfleet pull-secret observe` keeps what HyperFleet told, for stacks to read.

A program asks only its providers, and a preview has to tell the same as the update after it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from components.documents import read_json
from components.pull_secret.hyperfleet import Observed
from components.pull_secret.model import Availability, Phase


def render(observed: Mapping[str, Observed], observed_at: str) -> str:
    """Write what was told of each cluster; observed_at: RFC 3339."""
    clusters = {cluster: _document(one) for cluster, one in sorted(observed.items())}
    return json.dumps({"observedAt": observed_at, "clusters": clusters}, indent=2) + "\n"


def read(text: str) -> Mapping[str, Observed]:
    """Read it back. Raises ValueError for a text that is not of this form."""
    try:
        clusters: Mapping[str, Any] = read_json(text)["clusters"]
        return {cluster: _observed(one) for cluster, one in clusters.items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError("this is not what `credfleet pull-secret observe` writes") from None


def _document(observed: Observed) -> dict[str, Any]:
    if not observed.known:
        return {"known": False}
    said = {"phase": observed.phase, "deletedTime": observed.deleted_time}
    told = {key: value for key, value in said.items() if value is not None}
    return {**told, "adapters": dict(sorted(observed.adapters.items()))}


def _observed(document: Mapping[str, Any]) -> Observed:
    adapters = {str(name): Availability(said) for name, said in document.get("adapters", {}).items()}
    phase, deleted = document.get("phase"), document.get("deletedTime")
    return Observed(
        adapters,
        None if phase is None else Phase(phase),
        None if deleted is None else _moment(deleted),
        document.get("known", True) is True,
    )


def _moment(text: str) -> str:
    """Return a moment as it is; raises TypeError or ValueError for what is none."""
    datetime.fromisoformat(text)
    return text
