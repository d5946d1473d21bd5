"""ESO's objects as resources: each as far as the cluster serves its kind, else the reason why not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

_ABSENT: Final = "the cluster does not serve {}: install External Secrets Operator, then update again"
_STORELESS: Final = "the store it names is left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class EsoObject:
    """An object that is wanted.

    role: its logical name. namespace: None for the whole cluster's. needs: roles of objects it makes no sense
    without. after: what is there before it, and goes after it.
    """

    role: str
    api_version: str
    kind: str
    name: str
    namespace: pulumi.Input[str] | None
    spec: pulumi.Input[Mapping[str, Any]]
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    needs: Sequence[str] = ()
    after: Sequence[pulumi.Resource] = ()

    @property
    def served_as(self) -> str:
        """How a lookout names its kind."""
        return f"{self.api_version}/{self.kind}"


def declare(
    wanted: Sequence[EsoObject], served: Collection[str], parent: pulumi.Resource
) -> Mapping[str, str]:
    """Declare the objects whose kinds are served, each after what it needs; return why the others are not.

    wanted: an object after all it needs. Returns `Kind name` → why it is left out.
    """
    made: dict[str, pulumi.Resource] = {}
    skipped: dict[str, str] = {}
    for one in wanted:
        missing = one.served_as not in served
        if missing or any(role not in made for role in one.needs):
            skipped[f"{one.kind} {one.name}"] = _ABSENT.format(one.served_as) if missing else _STORELESS
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
                parent=parent, depends_on=[*one.after, *(made[role] for role in one.needs)]
            ),
        )
    return skipped
