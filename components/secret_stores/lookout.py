"""Whether the cluster has External Secrets Operator (ESO), and what stands in its way there.

A dynamic resource that writes nothing, declared before ESO's objects: its `check` looks, so that a preview
knows, too. Its path is written
into the state of stacks and never moves. Import-pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pulumi import Output
from pulumi.dynamic import CheckFailure

from components.connection import ClusterTarget
from components.dynamic import DynamicProvider, DynamicResource, Properties
from components.errors import CredfleetError, Problem
from components.importing import IMPORT_LOCK

if TYPE_CHECKING:
    from components.secret_stores.stack_cluster import StackCluster

ESO: Final = "external-secrets.io"
_VERSIONS: Final = ("v1", "v1alpha1")


@dataclass(frozen=True, slots=True, kw_only=True)
class EsoLookoutArgs:
    """kinds: what is served, as `group/version/kind`; the check finds them, and what is refused.

    reads: those that ESO is to make, each {place, namespace, name, target, owner}. callers: who uses a store
    whose conditions go by labels, each {place, namespace, store, conditions, labels}; labels: as far as the
    stack declares them. pushes: those that ESO is to make, each as a `SecretPush` is stated, with its place.
    servers: those of stores of kind Kubernetes, each {place, server}. refused: place → why nothing may be
    made or changed for it.
    """

    group: str = ESO
    kinds: Sequence[str] | None = None
    reads: Sequence[Mapping[str, str]] | None = field(default=None, compare=False)
    callers: Sequence[Mapping[str, Any]] | None = field(default=None, compare=False)
    pushes: Sequence[Mapping[str, Any]] | None = field(default=None, compare=False)
    servers: Sequence[Mapping[str, Any]] | None = field(default=None, compare=False)
    refused: Mapping[str, str] | None = None


class EsoLookoutProvider(DynamicProvider):
    """Looks at what the API server serves.

    A lookout that failed would tell no kinds, and objects that are not declared are deleted.
    """

    args = EsoLookoutArgs
    named_by = ("group",)
    fails_itself = False

    def prepare(self, inputs: Properties, olds: Properties) -> Properties:
        """Return what is found now; in a cluster that cannot be seen it is what was found before."""
        from components.secret_stores.stack_cluster import StackCluster

        versions = [f"{inputs['group']}/{version}" for version in _VERSIONS]
        try:
            cluster = StackCluster(ClusterTarget.parse(self.cluster))
            kinds = sorted(f"{version}/{kind}" for version in versions for kind in cluster.served(version))
        except CredfleetError:
            return {**inputs, "kinds": olds.get("kinds") or [], "refused": olds.get("refused")}
        refused: dict[str, str] = {}
        for place, problem in self._problems({**inputs, "kinds": kinds}, cluster):
            refused[place] = "\n".join(filter(None, (refused.get(place), str(problem))))
        return {**inputs, "kinds": kinds, "refused": refused or None}

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Refuse what ESO would take from another owner, and what a store of it refuses."""
        for each in (inputs["refused"] or {}).values():
            yield CheckFailure("", each)

    def _problems(self, inputs: Properties, cluster: StackCluster) -> Iterator[tuple[str, Problem]]:
        """Yield each with the place of the object that it is of."""
        with IMPORT_LOCK:
            from components.secret_stores.direct_consumers import obstacles
            from components.secret_stores.eso_cluster import objections
            from components.secret_stores.kubernetes_server import strange_certificates
            from components.secret_stores.specs import KubernetesServer

        served = f"{ESO}/v1/ExternalSecret" in inputs["kinds"]
        try:
            found = [*objections(inputs["reads"] or (), inputs["callers"] or (), cluster, served=served)]
        except CredfleetError:
            return
        yield from found
        for each in inputs["servers"] or ():
            with suppress(CredfleetError):  # certificates may come by this very update
                strange = strange_certificates(KubernetesServer.model_validate(each["server"]), cluster)
                if strange is not None:
                    yield each["place"], strange.within(f"{each['place']}: {strange.place}")
        for push in (inputs["pushes"] or ()) if f"{ESO}/v1alpha1/PushSecret" in inputs["kinds"] else ():
            for each in obstacles(push, cluster, self.configured):
                yield push["place"], each


class EsoLookout(DynamicResource[EsoLookoutArgs]):
    """What of ESO the cluster serves: kinds, as `group/version/kind`. refused: place → why."""

    provider = EsoLookoutProvider

    kinds: Output[list[str]]
    refused: Output[Mapping[str, str] | None]
