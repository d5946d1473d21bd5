"""Resources of Azure Service Operator as a stack declares them: manifests, and what they have to outlive.

Owns the custom resources only. They depend on all that their deletion needs: a credential that is gone first
leaves what is in Azure behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, ClassVar

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from components.aso_credentials import keys
from components.connection import ClusterTarget, NoReply, connect, served_kinds
from components.errors import CredfleetError
from components.http_answers import HttpOutcome
from components.refusing import refusing
from components.waiting import declare_unless


@dataclass(frozen=True, slots=True, kw_only=True)
class AsoResourceArgs:
    """One resource: its manifest with the namespace it is in, and what it has to outlive.

    name: NAMESPACE/KIND/NAME; kinds of two groups may share it. credential: name of the Secret it is told to
    use, None for the one ASO chooses. waits: for what it waits, None where it waits for nothing ever.
    """

    name: str
    manifest: Mapping[str, Any]
    namespace: pulumi.Input[str]
    credential: str | None
    outlives: pulumi.Input[Sequence[pulumi.Resource]] = ()
    waits: pulumi.Output[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AsoResourcesArgs:
    """The resources of a file, and the cluster that has to serve their kinds."""

    resources: Sequence[AsoResourceArgs]
    cluster: ClusterTarget = field(default_factory=ClusterTarget)


class AsoResources(pulumi.ComponentResource):
    """The resources of a file. Outputs: resources, the names of what it declares."""

    TYPE: ClassVar = "credfleet:index:AsoResources"
    resources: Sequence[str]

    def __init__(self, name: str, args: AsoResourcesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        self.resources = [resource.name for resource in args.resources]
        super().__init__(self.TYPE, name, {"resources": self.resources}, opts)
        hook = refusing(f"{name}-kinds", refusal_of_unserved(args.cluster))
        hooks = pulumi.ResourceHookBinding(before_create=[hook])
        for resource in args.resources:
            declare_unless(
                resource.waits or "", partial(self._declare, f"{name}/{resource.name}", resource, hooks)
            )
        self.register_outputs({"resources": self.resources})

    def _declare(
        self, name: str, resource: AsoResourceArgs, hooks: pulumi.ResourceHookBinding
    ) -> CustomResource:
        after = pulumi.Output.from_input(resource.outlives).apply(lambda first: [*first])
        return CustomResource(
            name,
            api_version=resource.manifest["apiVersion"],
            kind=resource.manifest["kind"],
            metadata=_metadata(resource),
            spec=resource.manifest.get("spec"),
            opts=pulumi.ResourceOptions(parent=self, depends_on=after, hooks=hooks),
        )


def refusal_of_unserved(cluster: ClusterTarget) -> Callable[[pulumi.ResourceHookArgs], None]:
    """Return what refuses a resource whose kind the cluster does not serve, by a look at each version.

    What is there already is left alone: an update that left it out would delete it, and what it stands for.
    """
    kinds = cache(partial(_served, cluster))

    def refuse(args: pulumi.ResourceHookArgs) -> None:
        made = args.new_inputs or {}
        version, kind = str(made.get("apiVersion")), str(made.get("kind"))
        served = kinds(version)
        if served is not None and kind not in served:
            raise pulumi.RunError(
                f"{args.name}: the cluster does not serve {version}/{kind}, so nothing can be made of it\n"
                "→ have Azure Service Operator install the kind (crdPattern in its chart's values), or leave"
                " the resource out, then run again"
            )

    return refuse


def _served(cluster: ClusterTarget, version: str) -> frozenset[str] | None:
    """Return the kinds a cluster serves of a group and version; None when it cannot be seen."""

    def get(path: str) -> Mapping[str, Any]:
        reply = connect(cluster).patient.call("GET", path)
        if reply.answer is not HttpOutcome.DONE:
            raise NoReply(reply.reason)
        return reply.body

    try:
        return frozenset(served_kinds(get, version))
    except (CredfleetError, NoReply):
        return None


def _metadata(resource: AsoResourceArgs) -> Mapping[str, Any]:
    metadata: dict[str, Any] = {**resource.manifest["metadata"], "namespace": resource.namespace}
    if resource.credential is not None:
        annotations = metadata.get("annotations") or {}
        metadata["annotations"] = {**annotations, keys.CREDENTIAL_FROM: resource.credential}
    return metadata
