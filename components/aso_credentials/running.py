"""How the operator runs by what the cluster shows of it: its settings, and when its pods were started.

It reads its settings when it starts and never again (docs/compatibility.md), so a pod that is older than
they are runs with former ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from components.aso_credentials import keys

Json: TypeAlias = Mapping[str, Any]


def mode_of(settings: Json) -> str:
    """Return the mode of workload identity that the settings say; the value is in base64."""
    return (
        "strict" if (settings.get("data") or {}).get(keys.WORKLOAD_IDENTITY_MODE) == "c3RyaWN0" else "relaxed"
    )


def were_started_since(pods: Iterable[Json], account: str, settings: Json) -> bool:
    """Whether the operator runs, and each of its pods was started after its settings were last written.

    account: the ServiceAccount it runs as, by which its pods are known.
    """
    metadata = settings.get("metadata", {})
    written = max(
        str(metadata.get("creationTimestamp") or ""),
        *(str(entry.get("time") or "") for entry in metadata.get("managedFields") or []),
        "",
    )
    started = [
        str(status.get("state", {}).get("running", {}).get("startedAt") or "")
        for pod in pods
        if pod.get("spec", {}).get("serviceAccountName") == account
        for status in pod.get("status", {}).get("containerStatuses") or [{}]
    ]
    return bool(written and started) and min(started) >= written
