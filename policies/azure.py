"""Policies for workload identity in Azure: federated credentials of managed identities, and their roles.

Azure accepts a wrong issuer, subject or audience, and fails only when a token is requested
(docs/compatibility.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias

from rule import UNKNOWN, Resource, resource_rule, stack_rule

from components.aso_credentials.azure import AUDIENCE, MOST, SCOPE_FIX, SUBJECT, is_scope
from components.naming import is_namespace, is_object_name

_FEDERATIONS: Final = (
    "azure-native*:managedidentity*:FederatedIdentityCredential",
    "kubernetes:managedidentity.azure.com/*:FederatedIdentityCredential",
)
_IDENTITIES: Final = ("azure-native*:managedidentity*:UserAssignedIdentity",)
_ASSIGNMENTS: Final = ("azure-native*:authorization*:RoleAssignment",)
_GRANTS: Final = (
    *_ASSIGNMENTS,
    "azure-native*:authorization*:PimRoleEligibilitySchedule",
    "kubernetes:authorization.azure.com/*:RoleAssignment",
    "kubernetes:authorization.azure.com/*:RoleEligibilityScheduleRequest",
)
_DEFINITIONS: Final = (
    "azure-native*:authorization*:RoleDefinition",
    "kubernetes:authorization.azure.com/*:RoleDefinition",
)
_ROLES: Final = (
    ("roleDefinitionId",),
    ("roleDefinitionReference", "armId"),
    ("roleDefinitionReference", "wellKnownName"),
)
"""Paths of a role. ASO also accepts names of built-in Azure roles, in any case."""

_OWNERS_ROLES: Final = {
    "8e3af657-a8ff-443c-a75c-2fe8c4bcb635": "Owner",
    "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9": "User Access Administrator",
    "f58310d9-a9f6-439a-9e8d-f62e7b41a168": "Role Based Access Control Administrator",
}
_MAKING_OWNERS: Final = _OWNERS_ROLES | {name.lower(): name for name in _OWNERS_ROLES.values()}
_MAKING: Final = tuple(
    f"microsoft.authorization/{action}"
    for action in ("roleassignments/write", "roledefinitions/write", "elevateaccess/action")
)
"""Actions that allow granting all others, in lower case."""

_Owner: TypeAlias = tuple[str, str] | str
"""An identity: its group and name, or its URN if a preview does not know them."""

_OWNERS: Final = dict[str, tuple[str, str] | None]()
"""URN of a federated credential → its identity by group and name, None if a preview does not know them.

Recorded by each rule that sees the inputs: the outputs contain neither.
"""


def _to_azure(resource: Resource) -> Iterator[tuple[str, Resource]]:
    """Yield the properties sent to Azure with their path prefix, once known; ASO has them in `spec`."""
    if not resource.is_a("kubernetes:*"):
        yield "", resource
    elif resource.is_known("spec"):
        yield "spec.", replace(resource, inputs=resource.mapping("spec"))


def _taken_down(federation: Resource) -> Iterator[tuple[str, Resource]]:
    """Yield the properties of a federated credential sent to Azure, and record its identity."""
    group, name = federation.text("resourceGroupName"), federation.text("resourceName")
    _OWNERS[federation.urn] = None if group is None or name is None else (group.lower(), name.lower())
    yield from _to_azure(federation)


@resource_rule(
    types=_FEDERATIONS,
    description="A federated credential must name the exact issuer of its tokens.",
    fix="copy the cluster's OIDC issuer URL byte for byte, its last slash included",
    config={"issuers": {"type": "array", "items": {"type": "string"}, "default": []}},
)
def azure_federation_issuer(federation: Resource) -> Iterator[str]:
    """Reject an invalid issuer, or one that the environment's file, if it lists issuers, does not list."""
    for place, one in _taken_down(federation):
        issuer, issuers = one.text("issuer"), one.config.get("issuers", [])
        if not one.inputs.keys() & {"issuer", "issuerFromConfig"}:
            yield f"{place}issuer is missing"
        elif issuer is not None and (not issuer.startswith("https://") or issuer.split() != [issuer]):
            yield f"{place}issuer is not an https URL without blanks"
        elif issuer is not None and issuers and issuer not in issuers:
            yield f"{place}issuer is not one of this environment"


@resource_rule(
    types=_FEDERATIONS,
    description="A federated credential must trust one ServiceAccount.",
    fix=f"write {SUBJECT}NAMESPACE:NAME",
)
def azure_federation_subject(federation: Resource) -> Iterator[str]:
    """Reject a subject that is not one ServiceAccount; Azure supports no wildcards."""
    for place, one in _taken_down(federation):
        subject = one.inputs.get("subject")
        if subject is UNKNOWN or "subjectFromConfig" in one.inputs:
            continue
        namespace, _, name = str(subject).removeprefix(SUBJECT).partition(":")
        if not str(subject).startswith(SUBJECT) or not is_namespace(namespace) or not is_object_name(name):
            yield f"{place}subject is not that of one ServiceAccount"


@resource_rule(
    types=_FEDERATIONS,
    description="A federated credential must have the one audience of Entra's token exchange.",
    fix=f"write audiences: [{AUDIENCE}]",
)
def azure_federation_audience(federation: Resource) -> Iterator[str]:
    """Reject any other audience: the token exchange would reject every token."""
    for place, one in _taken_down(federation):
        audiences = one.inputs.get("audiences")
        if audiences is not UNKNOWN and audiences not in ([AUDIENCE], [UNKNOWN]):
            yield f"{place}audiences is not the one of Entra's token exchange"


@stack_rule(
    types=_FEDERATIONS,
    description=f"An identity must have at most {MOST} federated credentials.",
    fix="spread the ServiceAccounts over more identities",
)
def azure_identity_federation_limit(resources: Sequence[Resource]) -> Iterator[tuple[str, str]]:
    """Reject too many federated credentials; Azure would reject them only during the update."""
    seen: Counter[_Owner] = Counter()
    for owner, place, one in _federations(resources):
        seen[owner] += 1
        if seen[owner] == MOST + 1:
            path = f"{place}owner" if place else "resourceName"
            yield one.urn, f"{path} is an identity with more than {MOST} federated credentials"


@stack_rule(
    types=_FEDERATIONS,
    description="An identity must trust each issuer and subject once.",
    fix="drop one of the two federated credentials",
)
def azure_identity_federation_unique(resources: Sequence[Resource]) -> Iterator[tuple[str, str]]:
    """Reject a second credential for the same issuer and subject: Azure answers with a conflict."""
    seen: set[tuple[_Owner, str, str]] = set()
    for owner, place, one in _federations(resources):
        issuer, subject = one.text("issuer"), one.text("subject")
        if issuer is None or subject is None:
            continue
        if (owner, issuer, subject) in seen:
            yield one.urn, f"{place}issuer and subject are those of another credential of the identity"
        seen.add((owner, issuer, subject))


def _federations(resources: Sequence[Resource]) -> Iterator[tuple[_Owner, str, Resource]]:
    """Yield identity, path prefix and content of each federated credential whose identity is known."""
    identities = {one.urn for one in resources if one.is_a(*_IDENTITIES)}
    for one in resources:
        if not one.is_a(*_FEDERATIONS):
            continue
        for place, told in _to_azure(one):
            owner = _owner_in_cluster(one) if place else _owner(one, identities)
            if owner is not None:
                yield owner, place, told


def _owner(federation: Resource, identities: Set[str]) -> _Owner | None:
    sources = federation.sources.get("resourceName", ())
    known = _OWNERS.get(federation.urn)
    return known or (sources[0] if len(sources) == 1 and sources[0] in identities else None)


def _owner_in_cluster(federation: Resource) -> str | None:
    arm_id, name = federation.text("spec", "owner", "armId"), federation.text("spec", "owner", "name")
    namespace = federation.text("metadata", "namespace")
    if arm_id is not None:
        return arm_id.lower()
    return None if name is None or namespace is None else f"{namespace}/{name}"


@resource_rule(
    types=_ASSIGNMENTS,
    description="A role assignment must state that its principal is an identity.",
    fix="set principalType to ServicePrincipal; left out, the SDK makes it User",
)
def azure_role_principal_type(assignment: Resource) -> Iterator[str]:
    """Reject the SDK's default: Azure then looks for a new identity among users, and often fails."""
    given = assignment.inputs.get("principalType")
    if given is not UNKNOWN and given != "ServicePrincipal":
        yield "principalType is not ServicePrincipal"


@resource_rule(
    types=[*_GRANTS, *_DEFINITIONS],
    description="An identity must not be an owner, or be able to create owners.",
    fix="assign the role that the work needs",
)
def azure_role_no_owner(grant: Resource) -> Iterator[str]:
    """Reject roles that can grant themselves every other role."""
    for place, one in _to_azure(grant):
        for path in _ROLES:
            role = (one.text(*path) or "").rstrip("/").rpartition("/")[2].lower()
            if role in _MAKING_OWNERS:
                yield f"{place}{'.'.join(path)} is {_MAKING_OWNERS[role]}"
        for index, permission in one.objects("permissions"):
            if any(_allows(permission, action) for action in _MAKING):
                yield f"{place}permissions[{index}].actions may make owners"


def _allows(permission: Resource, action: str) -> bool:
    """Return whether a permission is known to allow an action."""
    without = permission.items("notActions")
    return (
        permission.is_known("notActions")
        and UNKNOWN not in without
        and _covers(permission.items("actions"), action)
        and not _covers(without, action)
    )


def _covers(patterns: Sequence[Any], action: str) -> bool:
    return any(isinstance(one, str) and fnmatchcase(action, one.lower()) for one in patterns)


@resource_rule(
    types=_GRANTS,
    description="A role must be assigned in a subscription or a management group.",
    fix=SCOPE_FIX,
)
def azure_role_scope(grant: Resource) -> Iterator[str]:
    """Reject scopes that the settings reject too, especially the whole tenant; named ASO owners are fine."""
    for place, one in _to_azure(grant):
        path = ("owner", "armId") if place else ("scope",)
        scope = one.mapping(*path[:-1]).get(path[-1])
        if not one.is_known(*path) or (place and scope is None):
            continue
        if not (isinstance(scope, str) and is_scope(scope)):
            yield f"{place}{'.'.join(path)} is not a subscription, nothing in one, and no management group"
