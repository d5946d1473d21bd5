"""Azure's rules for managed identities: federated credentials, roles, scopes, and names."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from components.naming import GUID, is_guid, matching

AUDIENCE: Final = "api://AzureADTokenExchange"
"""The only audience that Entra's token exchange accepts."""

MOST: Final = 20
"""Maximum number of federated credentials of one identity."""

SUBJECT: Final = "system:serviceaccount:"
"""Prefix of the subject of a ServiceAccount; NAMESPACE:NAME follow."""

_LONGEST: Final = 600
"""Maximum length of an issuer or a subject, in characters."""


@dataclass(frozen=True, slots=True)
class Federation:
    """ServiceAccount that an identity trusts.

    `issuer`: of the cluster's tokens, byte for byte, including a trailing slash. `subject`:
    `system:serviceaccount:NAMESPACE:NAME`; Azure supports no wildcards.
    """

    issuer: str
    subject: str


is_federation_name: Final = matching("[A-Za-z0-9][-A-Za-z0-9_]{2,119}")
"""Whether Azure accepts the string as the name of a federated credential."""


def federation_name(subject: str, issuer: str | None = None) -> str:
    """Return `NAMESPACE_NAME`, the unique name of a ServiceAccount's federated credential.

    Characters that Azure does not allow, such as a dot, become `-`, followed by a digest. `issuer`: included
    in the digest, if two issuers are trusted for the ServiceAccount.
    """
    words = subject.removeprefix(SUBJECT).replace(":", "_")
    if issuer is None and is_federation_name(words):
        return words
    digest = hashlib.sha256(f"{issuer or ''}{subject}".encode()).hexdigest()[:16]
    return f"{re.sub(r'[^-A-Za-z0-9_]', '-', words)[:100]}_{digest}"


def federation_faults(federations: Mapping[str, Federation]) -> Iterator[str]:
    """Yield what Azure would reject in the federated credentials of one identity, by name."""
    if len(federations) > MOST:
        yield f"it would have {len(federations)} federated credentials, and an identity takes {MOST}"
    seen: dict[Federation, str] = {}
    for name, federation in federations.items():
        first = seen.setdefault(federation, name)
        if first != name:
            yield f"federated credentials {first} and {name} trust the same issuer and subject"
        same = next(other for other in federations if other.lower() == name.lower())
        if same != name:
            yield f"federated credentials {same} and {name} are one to Azure, where case does not count"
        if max(len(federation.issuer), len(federation.subject)) > _LONGEST:
            yield f"issuer or subject of federated credential {name} is longer than {_LONGEST} characters"


BUILT_IN: Final[Mapping[str, str]] = {
    "Contributor": "b24988ac-6180-42a0-ab88-20f7382dd24c",
    "DNS Zone Contributor": "befefa01-2a29-4197-83a8-272ff33ce314",
    "Key Vault Contributor": "f25e0fa2-a7c8-4377-a976-54943a77a395",
    "Managed Identity Contributor": "e40ec5ca-96e0-45a2-b4ff-59039f2c2b59",
    "Network Contributor": "4d97b98b-1d4f-4787-a291-c67834d212e7",
    "Reader": "acdd72a7-3385-48ef-bd42-f606fba81ae7",
    "SQL DB Contributor": "9b7fa17d-e63e-47b0-bb0a-15c516ac86ec",
    "Storage Account Contributor": "17d1049b-9a84-46fb-8f53-869881c3d3ab",
    "Storage Blob Data Contributor": "ba92f5b4-2d11-453d-a403-e96b0029c9fe",
}
"""Built-in Azure roles for ASO, with the same GUID in every tenant; other roles are set by GUID."""

GROUP: Final = r"[-\w.()]{0,89}[-\w()]"
"""Pattern of the name of a resource group."""

SCOPE_FIX: Final = (
    "write /subscriptions/ID, with the resource group behind it where that is enough, or"
    " /providers/Microsoft.Management/managementGroups/NAME"
)
_SEGMENT: Final = r"(?!\.\.?(?:/|$))[^/\s<>%&?#\\]+"
_SCOPE: Final = re.compile(
    rf"/subscriptions/{GUID}(/resourceGroups/(?u:{GROUP}))?(/providers/{_SEGMENT}(/{_SEGMENT}/{_SEGMENT})+)*"
    r"|/providers/Microsoft\.Management/managementGroups/[-\w.()]{1,90}(?<!\.)",
    re.IGNORECASE | re.ASCII,
)

_NAMES: Final = uuid.UUID("5f4a2c1e-6d6b-5b0e-9a54-0f3c6a1d7e42")


def is_scope(text: str) -> bool:
    """Return whether a role can be assigned in a scope: in or below a subscription, or a management group.

    Never in the whole tenant, which contains subscriptions of others, now or later.
    """
    return _SCOPE.fullmatch(text) is not None


def subscription_of(arm_id: str) -> str | None:
    """Return the subscription in an ARM id, None for a tenant-level id. Raises ValueError if invalid."""
    parts = arm_id.removeprefix("/").removesuffix("/").split("/")
    if not arm_id.startswith("/") or len(parts) % 2 or not all(parts):
        raise ValueError("an ARM id is a slash and pairs of names: /subscriptions/ID/resourceGroups/NAME")
    match parts[0].lower():
        case "subscriptions":
            return parts[1]
        case "providers":
            return None
        case _:
            raise ValueError("an ARM id begins with /subscriptions/ or /providers/")


def role_guid(role: str) -> str | None:
    """Return the GUID of a role by its name or GUID; None for an unknown name."""
    return role.lower() if is_guid(role) else BUILT_IN.get(role)


def role_definition_id(role: str, scope: str) -> str:
    """Return the ARM id of a role, as Azure writes it for a scope: of its subscription or the tenant.

    Raises ValueError for an unknown role, or a scope that is not an ARM id.
    """
    guid, subscription = role_guid(role), subscription_of(scope)
    if guid is None:
        raise ValueError("the role is not known")
    within = "" if subscription is None else f"/subscriptions/{subscription}"
    return f"{within}/providers/Microsoft.Authorization/roleDefinitions/{guid}"


def assignment_name(scope: str, role: str, identity: str) -> str:
    """Return the name of an assignment: a GUID determined by scope, role and identity.

    `identity`: its resource group and name. Not the principal id, which is unknown in previews; so a
    recreated identity takes over its assignments.
    """
    return str(uuid.uuid5(_NAMES, "\n".join((scope.rstrip("/"), role_guid(role) or role, identity)).lower()))
