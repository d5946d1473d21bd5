"""Client of kind GCPSM: secrets of a project in Google Secret Manager.

A key is a secret id. A push creates its own secret, marked with a label, and adds versions to it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from components.errors import Problem, SecretManagerError, StoreError
from components.importing import IMPORT_LOCK
from components.secret_manager import (
    LATEST,
    Patience,
    SecretManager,
    SecretManagerTarget,
    Version,
    VersionState,
    new_secret_manager,
    secret_name,
    version_name,
)
from components.secret_stores.clients.client import (
    ClientRequest,
    Gathered,
    GatheringClient,
    Kept,
    SecretsClient,
    Value,
    fields_of,
    gather,
    matches,
    no_field,
    property_of,
)
from components.secret_stores.consumers import RemoteRef
from components.secret_stores.json_fields import is_json

if TYPE_CHECKING:
    from components.secret_stores.consumers import Find, Place
    from components.secret_stores.model import SecretSelector
    from components.secret_stores.specs import GcpAuth, GcpSecretManagerSpec

PUSHED_BY: Final = "credfleet-pushed-by"
"""Label of a pushed secret: a digest of its owner, because Google's labels allow no slashes."""

_TOKENS: Final = "https://oauth2.googleapis.com/token"
"""Endpoint for tokens, whatever endpoint a key names: the writer of the Secret controls the key."""

_PATIENCE: Final = Patience(in_all=10.0)
"""Short, because the store's retrySettings add more retries."""

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"


@dataclass(frozen=True, slots=True)
class _Seen:
    """Secret as it was read: etag of its metadata, and number of its newest version."""

    etag: str
    newest: int | None


@dataclass(frozen=True)
class GcpSecretManagerClient(GatheringClient):
    """Secrets of one project: global ones, or those of a location.

    `fetch`: whether to read an older version while the newest is not enabled.
    """

    manager: SecretManager
    project: str
    location: str | None = None
    fetch: bool = field(kw_only=True)

    def read(self, ref: RemoteRef) -> Value | None:
        """Read a version; by default the newest."""
        name = self._name(ref.key)
        version: int | str | None = ref.version or LATEST
        if ref.version is None and self.fetch:
            version = self._newest_enabled(name)
        if version is None:
            return None
        try:
            found = self.manager.access(version_name(name, version))
        except SecretManagerError as error:
            if error.code == "absent":
                return None
            raise
        if ref.property_name is not None and not is_json(found.content):
            raise no_field(name, ref.property_name)
        return Value(property_of(found.content, ref.property_name, name), str(found.version))

    def extract(self, ref: RemoteRef) -> Gathered | None:
        """Read the fields of a version that is a JSON object."""
        return fields_of(self.read(ref), self._name(ref.key))

    def find(self, wanted: Find) -> Gathered:
        """Read the newest version of every secret with a matching name or matching labels."""
        parent = self._name("").removesuffix("/secrets/")
        if wanted.tags and self.location:
            problem = (
                "External Secrets Operator finds no secret of a location by labels, so neither back end does"
            )
            raise StoreError(code="refused", place=parent, problem=problem, fix="find them by name")
        found: dict[str, Value] = {}
        for name in self.manager.secrets(parent, wanted.tags or {}):
            if matches(wanted, name):
                value = self.read(RemoteRef(key=name))
                if value is None:
                    problem = "it has no version, and is among those that are meant"
                    fix = "add one, or exclude it"
                    raise StoreError(code="absent", place=self._name(name), problem=problem, fix=fix)
                found[name] = value
        return gather(found)

    def look(self, place: Place, owner: str) -> Kept | None:
        """Read the newest version, if it is enabled.

        For ESO, a secret exists while it has an enabled version; one of another owner always exists.
        """
        name = self._name(place.key)
        entry = self.manager.secret(name)
        if entry is None:
            return None
        newest = self._newest(name)
        enabled = newest is not None and newest.state is VersionState.ENABLED
        content = self.manager.access(newest.name).content if newest and enabled else None
        owned = entry.labels.get(PUSHED_BY) == owner_label(owner)
        seen = _Seen(entry.etag, newest and newest.number)
        exists = enabled or not owned or self._newest_enabled(name) is not None
        return Kept(content, owned=owned, edition=seen, exists=exists)

    def write(self, place: Place, content: bytes, owner: str, over: Kept | None) -> bool:
        """Add a version to a secret of this push.

        Google has no precondition for adding versions: of two concurrent ones, the later is the newest, and
        the earlier remains below it.
        """
        name = self._name(place.key)
        if over is None:
            if not self.manager.create(name, {PUSHED_BY: owner_label(owner)}):
                return False
        elif self._moved(name, over):
            return False
        self.manager.add(name, content)
        return True

    def remove(self, place: Place, seen: Kept) -> bool:
        """Delete the secret with all versions, if its owner and newest version are unchanged."""
        name = self._name(place.key)
        if self._moved(name, seen):
            return False
        self.manager.delete(name, seen.edition.etag)
        return True

    def _name(self, key: str) -> str:
        return secret_name(self.project, key, self.location)

    def _moved(self, name: str, seen: Kept) -> bool:
        newest = self._newest(name)
        return (newest and newest.number) != seen.edition.newest

    def _newest(self, name: str) -> Version | None:
        return next(iter(self.manager.versions(name)), None)

    def _newest_enabled(self, name: str) -> int | None:
        try:
            versions = self.manager.versions(name)
        except SecretManagerError as error:
            if error.code == "absent":
                return None
            raise
        return next((each.number for each in versions if each.state is VersionState.ENABLED), None)


def owner_label(owner: str) -> str:
    """Return the label value of an owner: 40 hexadecimal digits."""
    return hashlib.sha256(owner.encode()).hexdigest()[:40]


def gcpsm_limits(given: Any) -> Iterator[Problem]:
    """Yield the parts of a spec that this client does not support."""
    spec: GcpSecretManagerSpec = given
    if not spec.project_id:
        yield Problem(
            "projectID",
            "it does not say which project's secrets are meant, and the direct back end does not look it up",
            "add projectID",
        )
    if spec.auth is not None and _key_of(spec.auth) is None:
        yield Problem(
            "auth",
            "the direct back end knows no workload identity: it runs in no workload",
            "give auth.secretRef, leave auth out to use the identity that runs this, or use backend: eso",
        )


def open_gcpsm(request: ClientRequest) -> SecretsClient:
    """Log in as the provider says: with a service account key, or as the deployer."""
    spec: GcpSecretManagerSpec = request.spec
    reference, target = spec.auth and _key_of(spec.auth), request.google
    if reference is not None:
        token = _token(request.cluster.secret(reference), request.title)
        target = SecretManagerTarget(target.endpoint, token)
    manager = new_secret_manager(target.at(spec.location), _PATIENCE)
    strict = spec.secret_version_selection_policy == "LatestOrFail"  # noqa: S105 - a policy, no secret
    return GcpSecretManagerClient(manager, str(spec.project_id), spec.location, fetch=not strict)


def _key_of(auth: GcpAuth) -> SecretSelector | None:
    return auth.secret_ref and auth.secret_ref.secret_access_key_secret_ref


def _token(key: bytes, title: str) -> str:
    """Exchange a service account key for an access token, valid for one hour."""
    with IMPORT_LOCK:
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.auth.transport.requests import Request
        from google.oauth2.service_account import Credentials

    make: Any = Credentials.from_service_account_info
    try:
        info: Any = json.loads(key)
        credentials = make({**info, "token_uri": _TOKENS}, scopes=[_SCOPE])
        credentials.refresh(Request())
    except TransportError:
        raise StoreError(
            code="unreachable",
            place=title,
            problem=f"{_TOKENS} does not answer, where the key of auth.secretRef is traded for a token",
            fix="run again once it does",
        ) from None
    except (TypeError, ValueError, RecursionError, GoogleAuthError):
        raise StoreError(
            code="misconfigured",
            place=title,
            problem="what auth.secretRef names is not a key of a service account that Google takes",
            fix="make a new key and put it there as it was downloaded",
        ) from None
    return str(credentials.token)
