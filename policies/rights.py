"""Policies for Roles and bindings, which keep rights on Secrets to what is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rule import UNKNOWN, Resource, resource_rule

_RBAC: Final = "kubernetes:rbac.authorization.k8s.io/v1:"
_CLUSTER_ROLES: Final = (f"{_RBAC}ClusterRole", f"{_RBAC}ClusterRolePatch")
_ROLES: Final = (f"{_RBAC}Role", f"{_RBAC}RolePatch", *_CLUSTER_ROLES)
_CLUSTER_BINDINGS: Final = (f"{_RBAC}ClusterRoleBinding", f"{_RBAC}ClusterRoleBindingPatch")
_BINDINGS: Final = (f"{_RBAC}RoleBinding", f"{_RBAC}RoleBindingPatch", *_CLUSTER_BINDINGS)
_LISTING: Final = frozenset({"list", "watch", "*"})
_READING: Final = _LISTING | {"get"}
_EVERY_VERB: Final = _READING - {"*"} | {"create", "update", "patch", "delete", "deletecollection"}
_READING_SECRETS: Final = ("admin", "edit")
"""Default roles of every cluster that read Secrets; another rule rejects cluster-admin."""

_OF_EVERY_CLUSTER: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_AGGREGATED: Final = (
    _OF_EVERY_CLUSTER,
    *(
        {**_OF_EVERY_CLUSTER, f"rbac.authorization.k8s.io/aggregate-to-{role}": "true"}
        for role in _READING_SECRETS
    ),
)
"""Labels of the default roles that read Secrets, and of the roles aggregated into them."""

_DEFAULT_ACCOUNT: Final = re.compile(r"system:serviceaccount:[^:]*:default")
_EVERYBODY: Final = frozenset(
    {"system:authenticated", "system:unauthenticated", "system:anonymous", "system:serviceaccounts"}
)


def _words(rule: Resource, key: str) -> frozenset[str]:
    return frozenset(word for word in rule.items(key) if isinstance(word, str))


def _touches_secrets(rule: Resource) -> bool:
    return bool(_words(rule, "apiGroups") & {"", "*"} and _words(rule, "resources") & {"secrets", "*"})


@resource_rule(
    types=_ROLES,
    description="A Role must not grant all verbs on Secrets, or rights on all kinds.",
    fix="name the API groups, resources and verbs the work needs",
)
def kubernetes_role_no_wildcard_on_secrets(role: Resource) -> Iterator[str]:
    """Reject wildcards: they also grant what is added in the future."""
    for index, rule in role.objects("rules"):
        for key in ("apiGroups", "resources", "verbs"):
            if _touches_secrets(rule) and "*" in _words(rule, key):
                yield f"rules[{index}].{key} has a wildcard that covers Secrets"
        if _touches_secrets(rule) and _words(rule, "verbs") >= _EVERY_VERB:
            yield f"rules[{index}].verbs grants all verbs"


@resource_rule(
    types=[*_CLUSTER_ROLES, *_CLUSTER_BINDINGS],
    description="A role must not allow reading the Secrets of all namespaces.",
    fix="use a Role in the namespace that needs it, or name the Secrets under resourceNames",
)
def kubernetes_role_no_cluster_wide_secrets(role: Resource) -> Iterator[str]:
    """Reject rights to read the Secrets of all namespaces."""
    for index, rule in role.objects("rules"):
        if _touches_secrets(rule) and _reads_unnamed(rule):
            yield f"rules[{index}] reads Secrets in every namespace"
    for index, selector in role.objects("aggregationRule", "clusterRoleSelectors"):
        if any(_selects(selector, labels) for labels in _AGGREGATED):
            path = f"aggregationRule.clusterRoleSelectors[{index}]"
            yield f"{path} takes in roles that read Secrets in every namespace"
    bound = role.text("roleRef", "name")
    if bound in _READING_SECRETS:
        yield f"roleRef.name is {bound}, which reads Secrets in every namespace"


def _reads_unnamed(rule: Resource) -> bool:
    """Return whether a rule reads objects of any name; in list requests, the name is empty."""
    names = rule.items("resourceNames")
    if not rule.is_known("resourceNames") or (names and "" not in names):
        return False
    return bool(_words(rule, "verbs") & (_LISTING if names else _READING))


def _selects(selector: Resource, labels: Mapping[str, str]) -> bool:
    """Return whether a selector is known to match these labels."""
    return (
        selector.is_known("matchLabels")
        and selector.is_known("matchExpressions")
        and selector.mapping("matchLabels").items() <= labels.items()
        and all(_holds(one, labels) for one in selector.items("matchExpressions"))
    )


def _holds(requirement: Any, labels: Mapping[str, str]) -> bool:
    one = Resource("", requirement if isinstance(requirement, dict) else {})
    key, values = one.text("key"), one.items("values")
    if key is None or not one.is_known("values") or UNKNOWN in values:
        return False
    match one.text("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case operator:
            return operator == "DoesNotExist" and key not in labels


@resource_rule(
    types=_BINDINGS,
    description="A binding must not grant a role to all users, or cluster-admin to any subject.",
    fix="bind the users, groups or ServiceAccounts that do the work to a Role made for it",
)
def kubernetes_binding_not_for_everybody(binding: Resource) -> Iterator[str]:
    """Reject a binding for everybody: readers of credentials must be named."""
    for index, subject in binding.objects("subjects"):
        name = subject.text("name") or ""
        if name in _EVERYBODY or name.startswith("system:serviceaccounts:"):
            yield f"subjects[{index}].name is everybody"
    if binding.mapping("roleRef").get("name") == "cluster-admin":
        yield "roleRef.name is cluster-admin"


@resource_rule(
    types=_BINDINGS,
    description="A Role must not be bound to a namespace's default ServiceAccount, which every Pod has.",
    fix="make a ServiceAccount for the work, and bind that",
)
def kubernetes_binding_not_for_default_account(binding: Resource) -> Iterator[str]:
    """Reject rights that every workload of a namespace gets by default."""
    for index, subject in binding.objects("subjects"):
        kind, name = subject.text("kind"), subject.text("name") or ""
        if (kind, name) == ("ServiceAccount", "default") or (
            kind == "User" and _DEFAULT_ACCOUNT.fullmatch(name)
        ):
            yield f"subjects[{index}].name is the default ServiceAccount"
