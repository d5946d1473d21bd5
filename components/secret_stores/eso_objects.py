"""ESO's objects as resources: declared if the cluster serves their kind, otherwise skipped with a reason."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.secret_stores.delivery import EsoDelivery, EsoDeliveryArgs

_ABSENT: Final = "the cluster does not serve {}: install External Secrets Operator, then update again"
_REMOVAL: Final = "2m"
"""Timeout of a deletion: without ESO, the finalizers stay, and the error names them."""

_STORELESS: Final = "the store it names is left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class EsoObject:
    """ESO object to declare.

    `role`: logical name. `place`: configuration path. `namespace`: None for cluster-scoped; `home`: the same,
    as a plain value. `needs`: roles of objects that it requires. `after`: resources created before it and
    deleted after it. `waits`: why it is skipped, empty if it is not.
    """

    role: str
    place: str
    api_version: str
    kind: str
    name: str
    namespace: pulumi.Input[str] | None
    home: str | None
    spec: pulumi.Input[Mapping[str, Any]]
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    needs: Sequence[str] = ()
    after: Sequence[pulumi.Resource] = ()
    waits: pulumi.Input[str] = ""
    type: str | None = None  # type of its Secret

    @property
    def served_as(self) -> str:
        """Its kind as a lookout reports it."""
        return f"{self.api_version}/{self.kind}"

    @property
    def title(self) -> str:
        """Its name in messages."""
        return f"{self.kind} {self.name}"


def declare(
    name: str,
    wanted: Sequence[EsoObject],
    served: Collection[str],
    within: str,
    parent: pulumi.Resource,
    *,
    waits: Mapping[str, str],
    refused: Mapping[str, str],
) -> pulumi.Output[Mapping[str, str]]:
    """Declare the objects whose kinds are served, in order of their needs, then a check of their status.

    `wanted`: sorted so that an object follows what it needs. `within`: timeout of the check. `waits`: role →
    why it is skipped. `refused`: place → why its object must not be created or updated. Returns `Kind name` →
    why it is skipped or not reconciled.
    """
    made: dict[str, pulumi.Resource] = {}
    skipped: dict[str, str] = {}
    for one in wanted:
        missing = one.served_as not in served
        why = waits.get(one.role)
        if missing or why or any(role not in made for role in one.needs):
            skipped[one.title] = why or (_ABSENT.format(one.served_as) if missing else _STORELESS)
            continue
        made[one.role] = CustomResource(
            one.role,
            api_version=one.api_version,
            kind=one.kind,
            metadata=ObjectMetaArgs(
                name=one.name, namespace=one.namespace, annotations=one.annotations or None
            ),
            spec=one.spec,
            opts=pulumi.ResourceOptions(
                parent=parent,
                depends_on=[*one.after, *(made[role] for role in one.needs)],
                custom_timeouts=pulumi.CustomTimeouts(delete=_REMOVAL),
                hooks=_refusal(one.role, refused.get(one.place)),
            ),
        )
    if not made:
        return pulumi.Output.from_input(skipped)
    args = EsoDeliveryArgs(objects=[_stated(one) for one in wanted if one.role in made], within=within)
    opts = pulumi.ResourceOptions(parent=parent, depends_on=[*made.values()])
    undelivered = EsoDelivery(f"{name}-eso-delivery", args, opts).undelivered
    return undelivered.apply(lambda found: {**skipped, **(found or {})})


def _refusal(role: str, why: str | None) -> pulumi.ResourceHookBinding | None:
    """Return hooks that block creation and updates. The object stays declared, so it is not deleted."""
    if why is None:
        return None

    def refuse(_args: pulumi.ResourceHookArgs) -> None:
        raise pulumi.RunError(why)

    hook = pulumi.ResourceHook(f"{role}-refused", refuse)
    return pulumi.ResourceHookBinding(before_create=[hook], before_update=[hook])


def _stated(one: EsoObject) -> Mapping[str, Any]:
    return {
        "place": one.place,
        "apiVersion": one.api_version,
        "kind": one.kind,
        "namespace": one.home,
        "name": one.name,
        **({"type": one.type} if one.type else {}),
    }
