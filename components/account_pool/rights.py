"""Who may do what in a pool's namespace: a Role for claimers, one for cleaners, one per claim for its reader.

A claimer can read every credential of the pool, whatever it asks for, so a tenant is never one; what a
tenant may read is the one Secret of its claim, as long as it has it (decision 16).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import pulumi
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.rbac.v1 import PolicyRuleArgs, Role, RoleBinding, RoleRefArgs, SubjectArgs

from components.account_pool.admission_rules import CLAIM, CLEAN
from components.account_pool.powers import POWERS, Power

_RBAC_GROUP: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grantee:
    """Who gets a Role of the pool; a ServiceAccount has a namespace."""

    kind: Literal["User", "Group", "ServiceAccount"]
    name: pulumi.Input[str]
    namespace: pulumi.Input[str] | None = None


def grant(
    name: str,
    metadata: ObjectMetaArgs,
    people: Sequence[Grantee],
    rules: Sequence[PolicyRuleArgs],
    opts: pulumi.ResourceOptions,
) -> tuple[Role, RoleBinding]:
    """Draw a Role called `name` in the program, and give it to people; metadata: of both in the cluster."""
    role = Role(name, metadata=metadata, rules=rules, opts=opts)
    binding = RoleBinding(
        f"{name}-binding",
        metadata=metadata,
        role_ref=RoleRefArgs(api_group=_RBAC_GROUP, kind="Role", name=role.metadata.name),
        subjects=[
            SubjectArgs(
                kind=person.kind,
                name=person.name,
                namespace=person.namespace,
                api_group=None if person.kind == "ServiceAccount" else _RBAC_GROUP,
            )
            for person in people
        ],
        opts=opts,
    )
    return role, binding


def claimer_rights() -> Sequence[PolicyRuleArgs]:
    """Tell what claiming, reading, releasing and sweeping need."""
    return _rules(POWERS[CLAIM])


def cleaner_rights() -> Sequence[PolicyRuleArgs]:
    """Tell what cleaning needs."""
    return _rules(POWERS[CLEAN])


def _rules(powers: Sequence[Power]) -> Sequence[PolicyRuleArgs]:
    return [
        PolicyRuleArgs(api_groups=[one.group], resources=[one.resource], verbs=one.verbs) for one in powers
    ]


def reader_rights(secret: pulumi.Input[str]) -> Sequence[PolicyRuleArgs]:
    """Tell what using one account needs."""
    return (PolicyRuleArgs(api_groups=[""], resources=["secrets"], resource_names=[secret], verbs=["get"]),)
