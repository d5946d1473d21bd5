"""Azure Service Operator resources of a stack: their manifests and dependencies.

Owns only the custom resources. They depend on everything that their deletion requires: if a credential were
deleted first, the resources would remain in Azure.
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
    """Resource: its manifest, its namespace, and its dependencies.

    `name`: NAMESPACE/KIND/NAME; kinds of two groups might share it. `credential`: Secret that it names, None
    for ASO's choice. `waits`: why it is skipped, None if it never is.
    """

    name: str
    manifest: Mapping[str, Any]
    namespace: pulumi.Input[str]
    credential: str | None
    outlives: pulumi.Input[Sequence[pulumi.Resource]] = ()
    waits: pulumi.Output[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AsoResourcesArgs:
    """Resources of a file, and the cluster that must serve their kinds."""

    resources: Sequence[AsoResourceArgs]
    cluster: ClusterTarget = field(default_factory=ClusterTarget)


class AsoResources(pulumi.ComponentResource):
    """Resources of a file. Outputs: resources, the names of the declared ones."""

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
    """Return a check that rejects new resources of kinds that the cluster does not serve.

    Existing resources are not checked: an update without them would delete them and their Azure resources.
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
    """Return the kinds that a cluster serves for a group and version; None if it is unreachable."""

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
