"""What Google Cloud lets the service accounts of a stack do, each asked as itself.

An administrator who may impersonate them learns what they may do in the end, by any grant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlsplit

from operations.bootstrap.script import Bootstrap

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_PROJECT: Final = "https://cloudresourcemanager.googleapis.com/v1/projects"
_SECRETS: Final = tuple(
    f"secretmanager.{each}" for each in ("secrets.create", "versions.add", "versions.destroy")
)
_OBJECTS: Final = tuple(f"storage.objects.{each}" for each in ("get", "list", "create", "delete"))
_USED: Final = "cloudkms.cryptoKeyVersions.useTo"
_NEVER: Final = ("iam.serviceAccounts.getAccessToken", "resourcemanager.projects.setIamPolicy")
"""Each of these gives every other."""


@dataclass(frozen=True, slots=True)
class _Place:
    """What is asked about: reads are of every identity, writes of the deployment, the rest of none."""

    name: str
    url: str
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()
    rest: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class GoogleAnswer:
    """What identities lack, what they have too much of, and for whom Google did not answer."""

    lacking: list[str] = field(default_factory=list[str])
    excess: list[str] = field(default_factory=list[str])
    unasked: list[str] = field(default_factory=list[str])


def ask_google(found: Bootstrap) -> GoogleAnswer:
    """Ask for each identity what it may do with key, cluster, state and secrets."""
    from google.auth.exceptions import GoogleAuthError
    from requests.exceptions import RequestException

    answer = GoogleAnswer()
    for worker in found.workers:
        try:
            session = sign_in_as(found.service_account(worker))
            for place in _places(found):
                held = _held(session, place)
                needed = {*place.reads, *(place.writes if worker.writes else ())}
                lacks, excess = (sorted(each) for each in (needed - held, held - needed))
                answer.lacking.extend(f"{worker.role} lacks: {each} of {place.name}" for each in lacks)
                needless = f"of {place.name}, and does not need to"
                answer.excess.extend(f"{worker.role} can use {each} {needless}" for each in excess)
        except (GoogleAuthError, RequestException) as error:
            reason = " ".join(str(error).split())[:100]
            answer.unasked.append(f"Google Cloud, as {worker.role}: {reason or type(error).__name__}")
    return answer


def sign_in_as(account: str) -> Any:
    """Return a session of a service account that the caller impersonates; raises GoogleAuthError."""
    import google.auth
    from google.auth.impersonated_credentials import Credentials
    from google.auth.transport.requests import AuthorizedSession

    source, _ = google.auth.default(scopes=[_SCOPE])
    make_session: Any = AuthorizedSession
    return make_session(Credentials(source, account, [_SCOPE]))


def _held(session: Any, place: _Place) -> set[str]:
    asked = {"permissions": [*place.reads, *place.writes, *place.rest]}
    is_bucket = place.url.endswith("/testPermissions")
    method, given = ("GET", {"params": asked}) if is_bucket else ("POST", {"json": asked})
    reply = session.request(method, place.url, **given)
    reply.raise_for_status()
    return {*reply.json().get("permissions", ())}


def _places(found: Bootstrap) -> Iterator[_Place]:
    def project(name: str, *of: Sequence[str]) -> _Place:
        return _Place(f"project {name}", f"{_PROJECT}/{name}:testIamPermissions", *of)

    yield project(found.project, (), (), _NEVER)
    if found.key.cloud == "gcp":
        url = f"https://cloudkms.googleapis.com/v1/{found.key.key}:testIamPermissions"
        yield _Place(f"key {found.key.key}", url, (f"{_USED}Decrypt",), (f"{_USED}Encrypt",))
        shown, changed = ("container.clusters.get",), ("container.clusters.update",)
        yield project(found.cluster.project or found.project, shown, (), changed)
    backend = urlsplit(found.backend or "")
    if backend.scheme == "gs":
        url = f"https://storage.googleapis.com/storage/v1/b/{quote(backend.netloc)}/iam/testPermissions"
        yield _Place(f"bucket {backend.netloc}", url, _OBJECTS[:2], _OBJECTS[2:])
    for name in found.of_google["secret_projects"]:
        written = (_SECRETS, ()) if found.of_google["writes_secrets"] else ((), _SECRETS)
        yield project(name, ("secretmanager.versions.access",), *written)
