"""Azure's side of workload identity: federated credentials of managed identities, and what they may do.

Azure accepts a wrong issuer, subject or audience, and fails only when a token is asked for
(docs/design/aso-facts.md, workload identity and federated credentials).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from rule import UNKNOWN, Resource, resource_rule, stack_rule

from components.aso_credentials.arm_id import SCOPE_MEND, is_scope
from components.aso_credentials.federation import AUDIENCE, MOST, SUBJECT
from components.naming import is_namespace, is_object_name

_FEDERATIONS: Final = ("azure-native:managedidentity*:FederatedIdentityCredential",)
_IDENTITIES: Final = ("azure-native:managedidentity*:UserAssignedIdentity",)
_ASSIGNMENTS: Final = ("azure-native:authorization*:RoleAssignment",)
_MAKING_OWNERS: Final = {
    "8e3af657-a8ff-443c-a75c-2fe8c4bcb635": "Owner",
    "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9": "User Access Administrator",
    "f58310d9-a9f6-439a-9e8d-f62e7b41a168": "Role Based Access Control Administrator",
}

_Owner: TypeAlias = tuple[str, str] | str
"""An identity: its group and name, or its URN while a preview does not know them."""

_OWNERS: Final = dict[str, tuple[str, str] | None]()
"""URN of a federated credential → its identity by group and name, None when a preview does not know them.

Taken down by each rule that gets its inputs: the outputs lack both.
"""


def _take_down(federation: Resource) -> None:
    group, name = federation.text("resourceGroupName"), federation.text("resourceName")
    _OWNERS[federation.urn] = None if group is None or name is None else (group.lower(), name.lower())


@resource_rule(
    types=_FEDERATIONS,
    description="A federated credential trusts an issuer by the exact text of its tokens.",
    mend="copy the cluster's OIDC issuer URL byte for byte, its last slash included",
    config={"issuers": {"type": "array", "items": {"type": "string"}, "default": []}},
)
def azure_federation_issuer(federation: Resource) -> Iterator[str]:
    """Refuse an issuer no token has, or one that is not the environment's, where its file lists them."""
    _take_down(federation)
    issuer, issuers = federation.text("issuer"), federation.config.get("issuers", [])
    if "issuer" not in federation.inputs:
        yield "issuer is missing"
    elif issuer is not None and (not issuer.startswith("https://") or issuer != issuer.strip()):
        yield "issuer is no https URL without blanks"
    elif issuer is not None and issuers and issuer not in issuers:
        yield "issuer is none of this environment"


@resource_rule(
    types=_FEDERATIONS,
    description="A federated credential trusts one ServiceAccount.",
    mend=f"write {SUBJECT}NAMESPACE:NAME",
)
def azure_federation_subject(federation: Resource) -> Iterator[str]:
    """Refuse a subject no ServiceAccount has; there are no wildcards."""
    _take_down(federation)
    subject = federation.inputs.get("subject")
    if subject is UNKNOWN:
        return
    namespace, _, name = str(subject).removeprefix(SUBJECT).partition(":")
    if not str(subject).startswith(SUBJECT) or not is_namespace(namespace) or not is_object_name(name):
        yield "subject is not that of one ServiceAccount"


@resource_rule(
    types=_FEDERATIONS,
    description="A federated credential has the one audience of Entra's token exchange.",
    mend=f"write audiences: [{AUDIENCE}]",
)
def azure_federation_audience(federation: Resource) -> Iterator[str]:
    """Refuse any other audience: the exchange would refuse every token."""
    _take_down(federation)
    audiences = federation.inputs.get("audiences")
    if audiences is not UNKNOWN and audiences not in ([AUDIENCE], [UNKNOWN]):
        yield "audiences is not the one of Entra's token exchange"


@stack_rule(
    types=_FEDERATIONS,
    description=f"An identity has at most {MOST} federated credentials.",
    mend="spread the ServiceAccounts over more identities",
)
def azure_identity_federation_limit(resources: Sequence[Resource]) -> Iterator[tuple[str, str]]:
    """Refuse what Azure refuses only while the update is under way."""
    seen: Counter[_Owner] = Counter()
    for owner, one in _federations(resources):
        seen[owner] += 1
        if seen[owner] == MOST + 1:
            yield one.urn, f"resourceName is an identity with more than {MOST} federated credentials"


@stack_rule(
    types=_FEDERATIONS,
    description="An identity trusts each issuer and subject once.",
    mend="drop one of the two federated credentials",
)
def azure_identity_federation_unique(resources: Sequence[Resource]) -> Iterator[tuple[str, str]]:
    """Refuse a second credential for the same pair, which Azure answers with a conflict."""
    seen: set[tuple[_Owner, str, str]] = set()
    for owner, one in _federations(resources):
        issuer, subject = one.text("issuer"), one.text("subject")
        if issuer is None or subject is None:
            continue
        if (owner, issuer, subject) in seen:
            yield one.urn, "issuer and subject are those of another credential of the identity"
        seen.add((owner, issuer, subject))


def _federations(resources: Sequence[Resource]) -> Iterator[tuple[_Owner, Resource]]:
    """Yield each federated credential behind its identity, if that is known or declared."""
    identities = {one.urn for one in resources if one.is_a(*_IDENTITIES)}
    for one in resources:
        if one.is_a(*_FEDERATIONS):
            sources = one.sources.get("resourceName", ())
            owner = _OWNERS.get(one.urn) or next(iter(sources), None)
            if isinstance(owner, tuple) or (len(sources) == 1 and owner in identities):
                yield owner, one


@resource_rule(
    types=_ASSIGNMENTS,
    description="A role assignment says that its principal is an identity.",
    mend="set principalType to ServicePrincipal; left out, the SDK makes it User",
)
def azure_role_principal_type(assignment: Resource) -> Iterator[str]:
    """Refuse the SDK's default: a new identity is then looked for among people, and often not found."""
    given = assignment.inputs.get("principalType")
    if given is not UNKNOWN and given != "ServicePrincipal":
        yield "principalType is not ServicePrincipal"


@resource_rule(
    types=_ASSIGNMENTS,
    description="No identity is made owner, or may make owners.",
    mend="assign the role that the work needs",
)
def azure_role_no_owner(assignment: Resource) -> Iterator[str]:
    """Refuse roles that can give themselves every other."""
    role = (assignment.text("roleDefinitionId") or "").rpartition("/")[2].lower()
    if role in _MAKING_OWNERS:
        yield f"roleDefinitionId is {_MAKING_OWNERS[role]}"


@resource_rule(
    types=_ASSIGNMENTS,
    description="A role is assigned in a subscription or a management group.",
    mend=SCOPE_MEND,
)
def azure_role_scope(assignment: Resource) -> Iterator[str]:
    """Refuse what the settings refuse, the whole tenant above all."""
    scope = assignment.inputs.get("scope")
    if scope is not UNKNOWN and not (isinstance(scope, str) and is_scope(scope)):
        yield "scope is no subscription, nothing in one, and no management group"
