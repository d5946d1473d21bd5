"""Who still reads a Secret: workloads, and Korifi's own objects, by what of them refers to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

CORE: Final = "api/v1"
READERS: Final[Mapping[str, Sequence[str]]] = {
    CORE: ("pods",),
    "apis/apps/v1": ("deployments", "statefulsets", "daemonsets", "replicasets"),
    "apis/batch/v1": ("jobs", "cronjobs"),
    "apis/korifi.cloudfoundry.org/v1alpha1": ("cfserviceinstances", "cfservicebindings"),
}
"""Where objects are that may refer to a Secret of their namespace, by group and version."""

_HOLDERS: Final = ("secret", "binding", "credentials")
"""Words in the names of fields that refer to a Secret by its name."""


def referring(objects: Iterable[Mapping[str, Any]], secret: str) -> Iterator[str]:
    """Yield the names of the objects that refer to a Secret; what runs no more refers to nothing."""
    for each in objects:
        finished = (each.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        idle = (each.get("spec") or {}).get("replicas") == 0 and each.get("kind") == "ReplicaSet"
        if not (finished or idle) and _refers(each, secret):
            yield str(each["metadata"]["name"])


def _refers(value: object, secret: str) -> bool:
    if isinstance(value, list):
        return any(_refers(each, secret) for each in value)
    if not isinstance(value, dict):
        return False
    for key, each in value.items():
        named = each == secret if key == "secretName" else False
        holds = any(word in key.lower() for word in _HOLDERS)
        if (
            named
            or (holds and isinstance(each, dict) and each.get("name") == secret)
            or _refers(each, secret)
        ):
            return True
    return False
