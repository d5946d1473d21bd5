"""Resources of Azure Service Operator as a stack declares them: manifests, and what they have to outlive.

Owns the custom resources only. They depend on all that their deletion needs: a credential that is gone first
leaves what is in Azure behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from components.aso_credentials import keys


@dataclass(frozen=True, slots=True, kw_only=True)
class AsoResourceArgs:
    """One resource: its manifest with the namespace it is in, and what it has to outlive.

    name: NAMESPACE/KIND/NAME; kinds of two groups may share it. credential: name of the Secret it is told to
    use, None for the one ASO chooses.
    """

    name: str
    manifest: Mapping[str, Any]
    namespace: pulumi.Input[str]
    credential: str | None
    outlives: Sequence[pulumi.Resource]


@dataclass(frozen=True, slots=True, kw_only=True)
class AsoResourcesArgs:
    """The resources of a file."""

    resources: Sequence[AsoResourceArgs]


class AsoResources(pulumi.ComponentResource):
    """The resources of a file. Outputs: resources, the names of what it declares."""

    TYPE: ClassVar = "credfleet:index:AsoResources"
    resources: Sequence[str]

    def __init__(self, name: str, args: AsoResourcesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        self.resources = [resource.name for resource in args.resources]
        super().__init__(self.TYPE, name, {"resources": self.resources}, opts)
        for resource in args.resources:
            CustomResource(
                f"{name}/{resource.name}",
                api_version=resource.manifest["apiVersion"],
                kind=resource.manifest["kind"],
                metadata=_metadata(resource),
                spec=resource.manifest.get("spec"),
                opts=pulumi.ResourceOptions(parent=self, depends_on=[*resource.outlives]),
            )
        self.register_outputs({"resources": self.resources})


def _metadata(resource: AsoResourceArgs) -> Mapping[str, Any]:
    metadata: dict[str, Any] = {**resource.manifest["metadata"], "namespace": resource.namespace}
    if resource.credential is not None:
        annotations = metadata.get("annotations") or {}
        metadata["annotations"] = {**annotations, keys.CREDENTIAL_FROM: resource.credential}
    return metadata
