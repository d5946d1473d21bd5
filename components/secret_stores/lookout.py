"""Whether the cluster has External Secrets Operator (ESO), asked before its objects are declared.

A dynamic resource that writes nothing: what it sees is told by its `check`, so that a preview knows, too. Its
path is written into the state of stacks and never moves. Import-pure.
"""

from __future__ import annotations

from typing import Final

from pulumi import Output, ResourceOptions
from pulumi.dynamic import (
    CheckResult,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)

from components.connection import ClusterTarget
from components.dynamic import Properties, compared, kept
from components.errors import CredfleetError

ESO: Final = "external-secrets.io"
_VERSIONS: Final = ("v1", "v1alpha1")
_GROUP: Final = "group"
_KINDS: Final = "kinds"
_PROPERTIES: Final = (_GROUP, _KINDS)


class EsoLookoutProvider(ResourceProvider):
    """Looks at what the API server serves; one instance serves all threads of the provider's process."""

    _cluster: str | None = None

    def configure(self, req: ConfigureRequest) -> None:
        """Learn which cluster is meant from `credfleet:cluster`."""
        self._cluster = req.config.get("cluster")

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        """See what is served now; in a cluster that cannot be seen it is what was served before."""
        group = news[_GROUP]
        try:
            kinds = self._served(group)
        except CredfleetError:
            kinds = _olds.get(_KINDS) or []
        return CheckResult({_GROUP: group, _KINDS: kinds}, [])

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """Compare with what was served before."""
        return compared(_olds, _news, (_KINDS,))

    def create(self, props: Properties) -> CreateResult:
        """Keep what was seen."""
        return CreateResult(props[_GROUP], kept(props, _PROPERTIES))

    def read(self, id_: str, props: Properties) -> ReadResult:
        """Keep what was seen; the next check looks again."""
        return ReadResult(id_, kept(props, _PROPERTIES), kept(props, _PROPERTIES))

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Keep what was seen."""
        return UpdateResult(kept(_news, _PROPERTIES))

    def delete(self, _id: str, _props: Properties) -> None:
        """Forget it."""

    def _served(self, group: str) -> list[str]:
        from components.secret_stores.stack_cluster import StackCluster

        cluster = StackCluster(ClusterTarget.parse(self._cluster))
        versions = [f"{group}/{version}" for version in _VERSIONS]
        return sorted(f"{version}/{kind}" for version in versions for kind in cluster.served(version))


class EsoLookout(Resource, module="credfleet", name="EsoLookout"):
    """What of ESO the cluster serves: kinds, as `group/version/kind`."""

    kinds: Output[list[str]]

    def __init__(self, name: str, opts: ResourceOptions | None = None) -> None:
        super().__init__(EsoLookoutProvider(), name, {_GROUP: ESO, _KINDS: None}, opts)
