"""Roles and their bindings: rights on Secrets are as narrow as the work that needs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pulumi_policy import EnforcementLevel
from rule import Resource, resource_rule

_RBAC: Final = "kubernetes:rbac.authorization.k8s.io/v1:"
_CLUSTER_ROLES: Final = (f"{_RBAC}ClusterRole", f"{_RBAC}ClusterRolePatch")
_ROLES: Final = (f"{_RBAC}Role", f"{_RBAC}RolePatch", *_CLUSTER_ROLES)
_BINDINGS: Final = (
    f"{_RBAC}RoleBinding",
    f"{_RBAC}RoleBindingPatch",
    f"{_RBAC}ClusterRoleBinding",
    f"{_RBAC}ClusterRoleBindingPatch",
)
_READING: Final = frozenset({"get", "list", "watch", "*"})
_EVERYBODY: Final = frozenset(
    {"system:authenticated", "system:unauthenticated", "system:anonymous", "system:serviceaccounts"}
)


def _words(rule: Any, key: str) -> frozenset[str]:
    words = rule.get(key) if isinstance(rule, dict) else None
    return (
        frozenset(word for word in words if isinstance(word, str)) if isinstance(words, list) else frozenset()
    )


def _touches_secrets(rule: Any) -> bool:
    return bool(_words(rule, "apiGroups") & {"", "*"} and _words(rule, "resources") & {"secrets", "*"})


@resource_rule(
    "kubernetes-role-no-wildcard-on-secrets",
    types=_ROLES,
    level=EnforcementLevel.MANDATORY,
    description="No Role gives every right on Secrets, or rights on every kind of object.",
    mend="name the API groups, resources and verbs the work needs",
)
def are_never_everything(role: Resource) -> Iterator[str]:
    """Refuse wildcards: they also give what is invented tomorrow."""
    for index, rule in enumerate(role.items("rules")):
        for key in ("apiGroups", "resources", "verbs"):
            if _touches_secrets(rule) and "*" in _words(rule, key):
                yield f"rules[{index}].{key} has a wildcard that covers Secrets"


@resource_rule(
    "kubernetes-role-no-cluster-wide-secrets",
    types=_CLUSTER_ROLES,
    level=EnforcementLevel.MANDATORY,
    description="Nobody is given the Secrets of all namespaces.",
    mend="use a Role in the namespace that needs it, or name the Secrets under resourceNames",
)
def do_not_read_secrets_everywhere(role: Resource) -> Iterator[str]:
    """Refuse a right that is every credential of the fleet."""
    for index, rule in enumerate(role.items("rules")):
        if _touches_secrets(rule) and _words(rule, "verbs") & _READING and not _named(rule):
            yield f"rules[{index}] reads Secrets in every namespace"


def _named(rule: Mapping[str, Any]) -> bool:
    return bool(rule.get("resourceNames"))


@resource_rule(
    "kubernetes-binding-not-for-everybody",
    types=_BINDINGS,
    level=EnforcementLevel.MANDATORY,
    description="No Role is bound to everybody who can reach the cluster, and nobody is made cluster-admin.",
    mend="bind the users, groups or ServiceAccounts that do the work to a Role made for it",
)
def are_not_for_everybody(binding: Resource) -> Iterator[str]:
    """Refuse a Role for all: who may read credentials is somebody in particular."""
    for index, subject in enumerate(binding.items("subjects")):
        if isinstance(subject, dict) and _is_everybody(subject.get("name")):
            yield f"subjects[{index}].name is everybody"
    if binding.mapping("roleRef").get("name") == "cluster-admin":
        yield "roleRef.name is cluster-admin"


def _is_everybody(name: object) -> bool:
    return isinstance(name, str) and (name in _EVERYBODY or name.startswith("system:serviceaccounts:"))


@resource_rule(
    "kubernetes-binding-not-for-default-account",
    types=_BINDINGS,
    level=EnforcementLevel.MANDATORY,
    description="No Role is bound to a namespace's default ServiceAccount, which every pod there has.",
    mend="make a ServiceAccount for the work, and bind that",
)
def are_not_for_whatever_runs(binding: Resource) -> Iterator[str]:
    """Refuse rights that come with merely running in a namespace."""
    for index, subject in enumerate(binding.items("subjects")):
        if (
            isinstance(subject, dict)
            and subject.get("kind") == "ServiceAccount"
            and subject.get("name") == "default"
        ):
            yield f"subjects[{index}].name is the default ServiceAccount"
