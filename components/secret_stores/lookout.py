"""Whether the cluster has External Secrets Operator (ESO), asked before its objects are declared.

A dynamic resource that writes nothing: its `check` looks, so that a preview knows, too. Its path is written
into the state of stacks and never moves. Import-pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pulumi import Output

from components.connection import ClusterTarget
from components.dynamic import DynamicResource, Properties, Shell
from components.errors import CredfleetError

ESO: Final = "external-secrets.io"
_VERSIONS: Final = ("v1", "v1alpha1")


@dataclass(frozen=True, slots=True, kw_only=True)
class EsoLookoutArgs:
    """kinds: what is served, as `group/version/kind`; the check finds them."""

    group: str = ESO
    kinds: Sequence[str] | None = None


class EsoLookoutProvider(Shell):
    """Looks at what the API server serves."""

    args = EsoLookoutArgs
    named_by = ("group",)

    def prepare(self, inputs: Properties, olds: Properties) -> Properties:
        """Return what is served now; in a cluster that cannot be seen it is what was served before."""
        try:
            kinds = self._served(inputs["group"])
        except CredfleetError:
            kinds = olds.get("kinds") or []
        return {**inputs, "kinds": kinds}

    def _served(self, group: str) -> list[str]:
        from components.secret_stores.stack_cluster import StackCluster

        cluster = StackCluster(ClusterTarget.parse(self.cluster))
        versions = [f"{group}/{version}" for version in _VERSIONS]
        return sorted(f"{version}/{kind}" for version in versions for kind in cluster.served(version))


class EsoLookout(DynamicResource[EsoLookoutArgs], module="credfleet", name="EsoLookout"):
    """What of ESO the cluster serves: kinds, as `group/version/kind`."""

    provider = EsoLookoutProvider

    kinds: Output[list[str]]
