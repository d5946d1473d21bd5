"""Check whether the cluster serves External Secrets Operator (ESO), and what blocks its objects.

A dynamic resource without side effects, declared before ESO's objects. Its `check` reads the cluster, so a
preview knows the result too. Its module path is stored in the state of stacks and must not change.
Import-pure.
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
    """`kinds`: served kinds as `group/version/kind`; filled in by the check, as is `refused`.

    `reads`: by ESO, each {place, namespace, name, target, owner}. `callers`: uses of stores whose conditions
    select by labels, each {place, namespace, store, conditions, labels}; `labels` are those that the stack
    declares. `pushes`: by ESO, each with the inputs of a `SecretPush` and its place. `servers`: of stores of
    kind Kubernetes, each {place, server}. `refused`: place → why nothing must be created or updated for it.
    """

    group: str = ESO
    kinds: Sequence[str] | None = None
    reads: Sequence[Mapping[str, str]] | None = field(default=None, compare=False)
    callers: Sequence[Mapping[str, Any]] | None = field(default=None, compare=False)
    pushes: Sequence[Mapping[str, Any]] | None = field(default=None, compare=False)
    servers: Sequence[Mapping[str, Any]] | None = field(default=None, compare=False)
    refused: Mapping[str, str] | None = None


class EsoLookoutProvider(DynamicProvider):
    """Reads the API server's discovery.

    It must not fail: a failed lookout would return no kinds, and undeclared objects are deleted.
    """

    args = EsoLookoutArgs
    named_by = ("group",)
    fails_itself = False

    def prepare(self, inputs: Properties, olds: Properties) -> Properties:
        """Return what is found now; if the cluster is unreachable, the previous result."""
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
        """Reject what ESO would take from another owner, and what its stores do not admit."""
        for each in (inputs["refused"] or {}).values():
            yield CheckFailure("", each)

    def _problems(self, inputs: Properties, cluster: StackCluster) -> Iterator[tuple[str, Problem]]:
        """Yield each problem with the configuration path of its object."""
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
            with suppress(CredfleetError):  # this update might create the certificates
                strange = strange_certificates(KubernetesServer.model_validate(each["server"]), cluster)
                if strange is not None:
                    yield each["place"], strange.within(f"{each['place']}: {strange.place}")
        for push in (inputs["pushes"] or ()) if f"{ESO}/v1alpha1/PushSecret" in inputs["kinds"] else ():
            for each in obstacles(push, cluster, self.configured):
                yield push["place"], each


class EsoLookout(DynamicResource[EsoLookoutArgs]):
    """What the cluster serves of ESO: `kinds`, as `group/version/kind`; `refused`, place → reason."""

    provider = EsoLookoutProvider

    kinds: Output[list[str]]
    refused: Output[Mapping[str, str] | None]
