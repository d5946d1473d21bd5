"""What the name of a kubeconfig's context says of a cluster in a cloud, as the clouds' own tools write it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_GKE: Final = re.compile(r"gke_(?P<project>[^_]+)_(?P<location>[^_]+)_(?P<name>.+)")
_EKS: Final = re.compile(r"arn:aws[\w-]*:eks:(?P<location>[^:]+):\d+:cluster/(?P<name>.+)")


@dataclass(frozen=True, slots=True)
class ClusterContext:
    """A context, and of its cluster the name, and where it is as far as the context says so."""

    context: str
    name: str
    location: str = ""
    project: str = ""

    @classmethod
    def parse(cls, context: str) -> ClusterContext:
        """Read a context of GKE (`gke_PROJECT_LOCATION_NAME`) or EKS (an ARN); any other is a name."""
        found = _GKE.fullmatch(context) or _EKS.fullmatch(context)
        return cls(context, **found.groupdict()) if found else cls(context, context)
