"""The texts that Azure and its service operator take: what each may look like, why, and how to mend it."""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator

from components.aso_credentials.arm_id import subscription_of
from components.aso_credentials.federation import SUBJECT, is_federation_name
from components.aso_credentials.model import is_guid
from components.aso_credentials.roles import BUILT_IN, role_guid
from components.naming import is_namespace, is_object_name
from components.settings.words import unfit

_ISSUER: Final = re.compile(r"https://[^\s/]\S*")
_GROUP: Final = re.compile(r"[-\w.()]{0,89}[-\w()]")
_IDENTITY: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_]{2,127}")
_DURATION: Final = re.compile(r"never|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+")


def _guid(text: str) -> str:
    if not is_guid(text.strip()):
        raise unfit(
            "it is no GUID, and Azure would look for nothing else", "copy the id, as 8-4-4-4-12 hex digits"
        )
    return text.strip()


def _issuer(text: str) -> str:
    if not _ISSUER.fullmatch(text):
        raise unfit(
            "no token has such an issuer: it is an https:// address without blanks",
            "copy the cluster's OIDC issuer URL byte for byte, its last slash included",
        )
    return text


def _subject(text: str) -> str:
    namespace, _, name = text.removeprefix(SUBJECT).partition(":")
    if not (text.startswith(SUBJECT) and is_namespace(namespace) and is_object_name(name)):
        raise unfit(
            "it is not that of one ServiceAccount, and Azure knows no wildcards",
            f"write {SUBJECT}NAMESPACE:NAME",
        )
    return text


def _duration(text: str) -> str:
    if not _DURATION.fullmatch(text):
        raise unfit("the operator does not start with it", "give a duration such as 1h or 90m, or never")
    return text


def _scope(text: str) -> str:
    try:
        subscription = subscription_of(text)
    except ValueError:
        subscription = None
    if subscription is None or not is_guid(subscription):
        raise unfit(
            "a role is assigned within one subscription, and this is no ARM id of one",
            "write /subscriptions/ID, with the resource group behind it where that is enough",
        )
    return text


def _role(text: str) -> str:
    if role_guid(text) is None:
        raise unfit(
            "it is none of the roles known by name here, and Azure takes GUIDs only",
            f"give the role's GUID, or one of {', '.join(BUILT_IN)}",
        )
    return text


def _group(text: str) -> str:
    if not _GROUP.fullmatch(text):
        raise unfit(
            "Azure takes no such resource group: up to 90 letters, digits and -_.(), no dot at the end",
            "rename it, such as rg-identities",
        )
    return text


def _identity(text: str) -> str:
    if not _IDENTITY.fullmatch(text):
        raise unfit(
            "Azure takes no such identity: 3 to 128 letters, digits, '-' and '_', no sign at the beginning",
            "rename it, such as team-b",
        )
    return text


def _federation(text: str) -> str:
    if not is_federation_name(text):
        raise unfit(
            "Azure takes no such federated credential: 3 to 120 letters, digits, '-' and '_'",
            "rename it, such as blue-cluster",
        )
    return text


Guid: TypeAlias = Annotated[str, AfterValidator(_guid)]
Issuer: TypeAlias = Annotated[str, AfterValidator(_issuer)]
Subject: TypeAlias = Annotated[str, AfterValidator(_subject)]
Duration: TypeAlias = Annotated[str, AfterValidator(_duration)]
Scope: TypeAlias = Annotated[str, AfterValidator(_scope)]
RoleName: TypeAlias = Annotated[str, AfterValidator(_role)]
GroupName: TypeAlias = Annotated[str, AfterValidator(_group)]
IdentityName: TypeAlias = Annotated[str, AfterValidator(_identity)]
FederationName: TypeAlias = Annotated[str, AfterValidator(_federation)]
