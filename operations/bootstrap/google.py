"""Checks the permissions of a stack's service accounts in Google Cloud by impersonating each of them.

Impersonation shows their effective permissions, whatever grants they come from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlsplit

from operations.bootstrap.grants import Grant
from operations.bootstrap.script import Bootstrap

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_PROJECTS: Final = "https://cloudresourcemanager.googleapis.com/v1/projects"
_USED: Final = "cloudkms.cryptoKeyVersions.useTo"
_READ: Final = ("storage.objects.get", "storage.objects.list")
_ACCESS: Final = "secretmanager.versions.access"
_PERMISSIONS: Final[Mapping[str, Sequence[str]]] = {
    "cloudkms.cryptoKeyDecrypter": (f"{_USED}Decrypt",),
    "cloudkms.cryptoKeyEncrypterDecrypter": (f"{_USED}Decrypt", f"{_USED}Encrypt"),
    "container.clusterViewer": ("container.clusters.get",),
    "container.clusterAdmin": ("container.clusters.update",),
    "secretmanager.secretAccessor": (_ACCESS,),
    "secretmanager.admin": (
        *(_ACCESS, "secretmanager.versions.add", "secretmanager.versions.destroy"),
        "secretmanager.secrets.create",
    ),
    "storage.objectViewer": _READ,
    "storage.objectUser": (*_READ, "storage.objects.create", "storage.objects.delete"),
}
"""Role → its permissions to check on each resource where an identity has a role of the same service."""
_NEVER: Final = ("iam.serviceAccounts.getAccessToken", "resourcemanager.projects.setIamPolicy")
"""Permissions that an identity must not have: with each of them it can obtain all others."""


@dataclass(frozen=True, slots=True)
class GoogleAnswer:
    """Missing and excessive permissions of identities, and identities for which Google did not answer."""

    lacking: list[str] = field(default_factory=list[str])
    excess: list[str] = field(default_factory=list[str])
    unasked: list[str] = field(default_factory=list[str])


def ask_google(found: Bootstrap) -> GoogleAnswer:
    """Check each identity's permissions on key, cluster, state and secrets."""
    from google.auth.exceptions import GoogleAuthError
    from requests.exceptions import RequestException

    answer, places = GoogleAnswer(), {_project(found.project): list[Grant]()}
    for grant in found.grants:
        if grant.cloud == "gcp":
            places.setdefault(_place(found, grant), []).append(grant)
    for worker in found.workers:
        try:
            session = sign_in_as(found.service_account(worker))
            for (name, url), grants in places.items():
                given = {role for each in grants for role in each.given(writes=worker.writes)}
                held, needed = _held(session, url, _asked(url, grants)), _permissions(given)
                lacks, excess = (sorted(each) for each in (needed - held, held - needed))
                answer.lacking.extend(f"{worker.role} lacks: {each} of {name}" for each in lacks)
                needless = f"of {name}, and does not need to"
                answer.excess.extend(f"{worker.role} can use {each} {needless}" for each in excess)
        except (GoogleAuthError, RequestException) as error:
            reason = " ".join(str(error).split())[:100]
            answer.unasked.append(f"Google Cloud, as {worker.role}: {reason or type(error).__name__}")
    return answer


def sign_in_as(account: str) -> Any:
    """Return an authorized session as an impersonated service account; raises GoogleAuthError."""
    import google.auth
    from google.auth.impersonated_credentials import Credentials
    from google.auth.transport.requests import AuthorizedSession

    source, _ = google.auth.default(scopes=[_SCOPE])
    make_session: Any = AuthorizedSession
    return make_session(Credentials(source, account, [_SCOPE]))


def _held(session: Any, url: str, permissions: Collection[str]) -> set[str]:
    asked = {"permissions": sorted(permissions)}
    is_bucket = url.endswith("/testPermissions")
    method, given = ("GET", {"params": asked}) if is_bucket else ("POST", {"json": asked})
    reply = session.request(method, url, **given)
    reply.raise_for_status()
    return {*reply.json().get("permissions", ())}


def _permissions(roles: Iterable[str]) -> set[str]:
    return {each for role in roles for each in _PERMISSIONS.get(role, ())}


def _asked(url: str, grants: Iterable[Grant]) -> set[str]:
    services = {role.partition(".")[0] for each in grants for role in each.reads}
    known = (role for role in _PERMISSIONS if role.partition(".")[0] in services)
    return {*_permissions(known), *(_NEVER if url.startswith(_PROJECTS) else ())}


def _project(name: str) -> tuple[str, str]:
    return f"project {name}", f"{_PROJECTS}/{name}:testIamPermissions"


def _place(found: Bootstrap, grant: Grant) -> tuple[str, str]:
    """Return the name of a resource and the URL that tests the caller's permissions on it."""
    match grant.at:
        case "key":
            key = found.key.key
            return f"key {key}", f"https://cloudkms.googleapis.com/v1/{key}:testIamPermissions"
        case "bucket":
            name = urlsplit(found.backend or "").netloc
            url = f"https://storage.googleapis.com/storage/v1/b/{quote(name)}/iam/testPermissions"
            return f"bucket {name}", url
        case _:
            return _project(grant.name or found.cluster.project or found.project)
