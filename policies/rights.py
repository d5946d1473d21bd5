"""Roles and their bindings: rights on Secrets are as narrow as the work that needs them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

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


def _words(rule: Resource, key: str) -> frozenset[str]:
    return frozenset(word for word in rule.items(key) if isinstance(word, str))


def _touches_secrets(rule: Resource) -> bool:
    return bool(_words(rule, "apiGroups") & {"", "*"} and _words(rule, "resources") & {"secrets", "*"})


@resource_rule(
    types=_ROLES,
    description="No Role gives every right on Secrets, or rights on every kind of object.",
    mend="name the API groups, resources and verbs the work needs",
)
def kubernetes_role_no_wildcard_on_secrets(role: Resource) -> Iterator[str]:
    """Refuse wildcards: they also give what is invented tomorrow."""
    for index, rule in role.objects("rules"):
        for key in ("apiGroups", "resources", "verbs"):
            if _touches_secrets(rule) and "*" in _words(rule, key):
                yield f"rules[{index}].{key} has a wildcard that covers Secrets"


@resource_rule(
    types=_CLUSTER_ROLES,
    description="Nobody is given the Secrets of all namespaces.",
    mend="use a Role in the namespace that needs it, or name the Secrets under resourceNames",
)
def kubernetes_role_no_cluster_wide_secrets(role: Resource) -> Iterator[str]:
    """Refuse a right that is every credential of the fleet."""
    for index, rule in role.objects("rules"):
        is_named = bool(rule.inputs.get("resourceNames")) or not rule.is_known("resourceNames")
        if _touches_secrets(rule) and _words(rule, "verbs") & _READING and not is_named:
            yield f"rules[{index}] reads Secrets in every namespace"


@resource_rule(
    types=_BINDINGS,
    description="No Role is bound to everybody who can reach the cluster, and nobody is made cluster-admin.",
    mend="bind the users, groups or ServiceAccounts that do the work to a Role made for it",
)
def kubernetes_binding_not_for_everybody(binding: Resource) -> Iterator[str]:
    """Refuse a Role for all: who may read credentials is somebody in particular."""
    for index, subject in binding.objects("subjects"):
        if _is_everybody(subject.text("name") or ""):
            yield f"subjects[{index}].name is everybody"
    if binding.mapping("roleRef").get("name") == "cluster-admin":
        yield "roleRef.name is cluster-admin"


def _is_everybody(name: str) -> bool:
    return name in _EVERYBODY or name.startswith("system:serviceaccounts:")


@resource_rule(
    types=_BINDINGS,
    description="No Role is bound to a namespace's default ServiceAccount, which every pod there has.",
    mend="make a ServiceAccount for the work, and bind that",
)
def kubernetes_binding_not_for_default_account(binding: Resource) -> Iterator[str]:
    """Refuse rights that come with merely running in a namespace."""
    for index, subject in binding.objects("subjects"):
        if (subject.text("kind"), subject.text("name")) == ("ServiceAccount", "default"):
            yield f"subjects[{index}].name is the default ServiceAccount"
