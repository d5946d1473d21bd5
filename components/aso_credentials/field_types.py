"""Field types for Azure and its service operator, with the rule and fix of each."""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator

from components.aso_credentials.azure import (
    BUILT_IN,
    GROUP,
    SCOPE_FIX,
    SUBJECT,
    is_federation_name,
    is_scope,
    role_guid,
)
from components.aso_credentials.keys import is_tenant
from components.config.field_types import must
from components.naming import is_guid, is_namespace, is_object_name

_ISSUER: Final = re.compile(r"https://[^\s/?#][^\s?#]*")
_GROUP: Final = re.compile(GROUP)
_IDENTITY: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_]{2,127}")
_DURATION: Final = re.compile(r"never|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+")


def _is_subject(text: str) -> bool:
    namespace, _, name = text.removeprefix(SUBJECT).partition(":")
    return text.startswith(SUBJECT) and is_namespace(namespace) and is_object_name(name)


Guid: TypeAlias = Annotated[
    str,
    AfterValidator(str.strip),
    must(
        is_guid,
        "it is not a GUID, and Azure would look for nothing else",
        "copy the id, as 8-4-4-4-12 hex digits",
    ),
]
Tenant: TypeAlias = Annotated[
    str,
    AfterValidator(str.strip),
    must(
        is_tenant,
        "it is neither the GUID of a tenant nor *, which allows every tenant",
        "copy the tenant's id, as 8-4-4-4-12 hex digits",
    ),
]
Issuer: TypeAlias = Annotated[
    str,
    must(
        _ISSUER.fullmatch,
        "no token has such an issuer: it is an https:// address without blanks, ? and #",
        "copy the cluster's OIDC issuer URL byte for byte, its last slash included",
    ),
]
Subject: TypeAlias = Annotated[
    str,
    must(
        _is_subject,
        "it is not that of one ServiceAccount, and Azure knows no wildcards",
        f"write {SUBJECT}NAMESPACE:NAME",
    ),
]
Duration: TypeAlias = Annotated[
    str,
    must(
        _DURATION.fullmatch,
        "the operator does not start with it",
        "give a duration such as 1h or 90m, or never",
    ),
]
Scope: TypeAlias = Annotated[
    str,
    must(
        is_scope,
        "it is not an ARM id of a subscription, of what is in one, or of a management group",
        SCOPE_FIX,
    ),
]
RoleName: TypeAlias = Annotated[
    str,
    must(
        lambda text: role_guid(text) is not None,
        "it is not a role known by name here, and Azure takes GUIDs only",
        f"give the role's GUID, or one of {', '.join(BUILT_IN)}",
    ),
]
GroupName: TypeAlias = Annotated[
    str,
    must(
        _GROUP.fullmatch,
        "Azure takes no such resource group: up to 90 letters, digits and -_.(), no dot at the end",
        "rename it, such as rg-identities",
    ),
]
IdentityName: TypeAlias = Annotated[
    str,
    must(
        _IDENTITY.fullmatch,
        "Azure takes no such identity: 3 to 128 letters, digits, '-' and '_', no sign at the beginning",
        "rename it, such as team-b",
    ),
]
FederationName: TypeAlias = Annotated[
    str,
    must(
        is_federation_name,
        "Azure takes no such federated credential: 3 to 120 letters, digits, '-' and '_'",
        "rename it, such as blue-cluster",
    ),
]
