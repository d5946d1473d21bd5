"""The only connection to Google Secret Manager: its official client over REST, with the required calls.

Endpoint and identity come from the stack's `gcp:` keys, otherwise from the variables that Google's provider
reads, so that it and the dynamic providers use the same service and identity. Without any, the application
default identity is used. Nothing that this module raises or shows contains a payload, or a server message
that might quote one. Import-pure: the client is imported by the first connection.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from components.connection import refuse_unasked
from components.documents import read_json
from components.errors import SecretManagerError
from components.importing import IMPORT_LOCK
from components.open_ports import SECRET_MANAGER, VARIABLES, settle

if TYPE_CHECKING:
    from google.cloud.secretmanager_v1.services.secret_manager_service import SecretManagerServiceClient

T = TypeVar("T")

LATEST: Final = "latest"
"""Alias of the newest version, in any state."""

PASSING: Final = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "RESOURCE_EXHAUSTED"})
"""Codes of `google.rpc.Code` for transient errors; such calls are retried."""

_ABSENT: Final = "NOT_FOUND"
_UNREADABLE: Final = "what is none of its answers"
_CODES: Final = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: _ABSENT,
    409: "ALREADY_EXISTS",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""HTTP status → code of `google.rpc.Code`."""

_VARIABLES: Final[Mapping[str, Sequence[str]]] = {
    "secretManagerCustomEndpoint": (VARIABLES[SECRET_MANAGER],),
    "accessToken": ("GOOGLE_OAUTH_ACCESS_TOKEN",),
    "credentials": ("GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON"),
    "impersonateServiceAccount": ("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT",),
}
"""Option of Google's provider → variables with its default, as in its schema; the first one set is used."""
_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)


@dataclass(frozen=True, slots=True)
class SecretManagerTarget:
    """Endpoint and identity; None means Google's endpoint, and the application default identity.

    `endpoint`: a URL, optionally with the API version. `key`: credentials as JSON, or the path of a file,
    used without a token. `impersonates`: service account to impersonate.
    """

    endpoint: str | None = None
    token: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    impersonates: str | None = None

    @classmethod
    def configured(cls, read: Callable[[str], str | None]) -> SecretManagerTarget:
        """Read it from a stack's configuration by full key, or the environment; raises as `settle`."""

        def find(option: str) -> str | None:
            given = (read(f"gcp:{option}"), *map(os.environ.get, _VARIABLES[option]))
            return next(filter(None, given), None)

        endpoint, key = find("secretManagerCustomEndpoint"), find("credentials")
        token = read("gcp:accessToken") or (None if key else find("accessToken"))
        return cls(
            settle(SECRET_MANAGER, endpoint) if endpoint else None,
            token,
            key if token is None else None,
            find("impersonateServiceAccount"),
        )

    def at(self, location: str | None) -> SecretManagerTarget:
        """Return the target for secrets of a region: its own endpoint, unless one is configured."""
        if location is None or self.endpoint is not None:
            return self
        return replace(self, endpoint=f"https://secretmanager.{location}.rep.googleapis.com")


@dataclass(frozen=True, slots=True)
class Patience:
    """Retry policy of a call, in seconds.

    Pauses double from the first to the longest, with full jitter. `attempt`: timeout of one attempt.
    `in_all`: after this time, none is started.
    """

    first_pause: float = 0.2
    longest_pause: float = 8.0
    attempt: float = 15.0
    in_all: float = 60.0


class VersionState(StrEnum):
    """State of a version: only an enabled one can be read; a destroyed one has no payload."""

    ENABLED = "ENABLED"
    DISABLED = "DISABLED"
    DESTROYED = "DESTROYED"


@dataclass(frozen=True, slots=True)
class Entry:
    """Secret. `name`: projects/{project}/secrets/{id}, perhaps with the project's number."""

    name: str
    labels: Mapping[str, str]
    etag: str


@dataclass(frozen=True, slots=True)
class Version:
    """Version of a secret. `name`: its secret's name and /versions/{number}. `created`: RFC 3339."""

    name: str
    state: VersionState
    etag: str
    created: str = ""

    @property
    def number(self) -> int:
        """Its number; later versions have higher ones."""
        return int(self.name.rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class Payload:
    """Payload of a version. `version`: its number, even if an alias was requested."""

    version: int
    content: bytes = field(repr=False)


def secret_name(project: str, secret_id: str, location: str | None = None) -> str:
    """Return the full name of a secret; `location`: of a regional one, which is a different secret."""
    place = f"/locations/{location}" if location else ""
    return f"projects/{project}{place}/secrets/{secret_id}"


def version_name(secret: str, version: int | str) -> str:
    """Return the full name of a version, by its number or an alias."""
    return f"{secret}/versions/{version}"


class SecretManager:
    """Secret Manager with one identity; thread-safe.

    Every method repeats its call on temporary errors and missing answers, and raises SecretManagerError for
    anything else.
    """

    def __init__(self, client: SecretManagerServiceClient, patience: Patience) -> None:
        self._client = client
        self._patience = patience

    def secret(self, name: str) -> Entry | None:
        """Read a secret without its versions; None if not found."""
        found = self._call(name, "secrets.get", self._client.get_secret, passed=_ABSENT, name=name)
        return None if found is None else Entry(str(found.name), dict(found.labels), str(found.etag))

    def secrets(self, parent: str, labels: Mapping[str, str]) -> Sequence[str]:
        """List the ids of all secrets of a project or location that have these labels."""
        filter_ = " ".join(f"labels.{key}={value}" for key, value in labels.items())
        request = {"parent": parent, "filter": filter_}
        listed = self._list(parent, "secrets.list", self._client.list_secrets, request=request)
        return [str(each.name).rpartition("/")[2] for each in listed]

    def create(self, name: str, labels: Mapping[str, str]) -> bool:
        """Create a secret without versions; False if it exists.

        A regional one is stored in its region, any other with automatic replication.
        """
        parent, _, secret_id = name.rpartition("/secrets/")
        replication = {} if "/locations/" in parent else {"replication": {"automatic": {}}}
        secret = {**replication, "labels": dict(labels)}
        request = {"parent": parent, "secret_id": secret_id, "secret": secret}
        create = self._client.create_secret
        made = self._call(name, "secrets.create", create, passed="ALREADY_EXISTS", request=request)
        return made is not None

    def delete(self, name: str, etag: str) -> None:
        """Delete a secret with all its versions permanently; ignored if it is not found.

        Rejected if its etag has changed.
        """
        request = {"name": name, "etag": etag}
        self._call(name, "secrets.delete", self._client.delete_secret, passed=_ABSENT, request=request)

    def versions(self, secret: str) -> Sequence[Version]:
        """List all versions of a secret, newest first."""
        listed = self._list(secret, "versions.list", self._client.list_secret_versions, parent=secret)
        return sorted((_version(each) for each in listed), key=lambda each: -each.number)

    def version(self, name: str) -> Version | None:
        """Read a version without its payload, by number or alias; None if not found."""
        found = self._call(name, "versions.get", self._client.get_secret_version, passed=_ABSENT, name=name)
        return None if found is None else _version(found)

    def access(self, name: str) -> Payload:
        """Read the payload of an enabled version, by number or alias."""
        found = self._call(name, "versions.access", self._client.access_secret_version, name=name)
        return Payload(int(str(found.name).rpartition("/")[2]), bytes(found.payload.data))

    def add(self, secret: str, content: bytes) -> Version:
        """Add a version. After a lost answer, a version that was added is returned, not added again."""
        newest = max((each.number for each in self.versions(secret)), default=0)
        request = {"parent": secret, "payload": {"data": content}}
        done = partial(self._added, secret, newest, content)
        return self._write(secret, "add", request, done)

    def enable(self, version: Version) -> Version:
        """Enable a version; rejected if its etag has changed."""
        return self._turn(version, VersionState.ENABLED, "enable")

    def disable(self, version: Version) -> Version:
        """Disable a version; rejected if its etag has changed."""
        return self._turn(version, VersionState.DISABLED, "disable")

    def destroy(self, version: Version) -> Version:
        """Destroy the payload of a version permanently; rejected if its etag has changed."""
        return self._turn(version, VersionState.DESTROYED, "destroy")

    def _turn(self, version: Version, state: VersionState, verb: str) -> Version:
        """Change the state of a version; after a lost answer, one already in that state is returned."""

        def done() -> Version | None:
            found = self.version(version.name)
            return found if found and found.state is state else None

        return self._write(version.name, verb, {"name": version.name, "etag": version.etag}, done)

    def _added(self, secret: str, newest: int, content: bytes) -> Version | None:
        """Return a new version with this payload, or None."""
        versions = (each for each in self.versions(secret) if each.number > newest)
        readable = (each for each in versions if each.state is VersionState.ENABLED)
        same = (each for each in readable if hmac.compare_digest(self.access(each.name).content, content))
        return next(same, None)

    def _write(
        self, place: str, verb: str, request: Mapping[str, Any], done: Callable[[], Version | None]
    ) -> Version:
        """Write a version. `done`: finds what was written before an answer was lost."""
        method, begun = getattr(self._client, f"{verb}_secret_version"), False

        def attempt(**given: Any) -> Version:
            nonlocal begun
            found = done() if begun else None
            begun = True
            return found or _version(method(**given))

        return self._call(place, f"versions.{verb}", attempt, request=request)

    def _list(self, place: str, right: str, method: Callable[..., Any], **given: Any) -> list[Any]:
        """Return the items of all pages."""

        def pages(**asked: Any) -> list[Any]:
            return [*method(**asked)]

        return self._call(place, right, pages, **given)

    def _call(
        self, place: str, right: str, method: Callable[..., Any], *, passed: str = "", **given: Any
    ) -> Any:
        """Make a call with retries. `passed`: error code for which None is returned."""
        from google.api_core.exceptions import GoogleAPICallError, RetryError
        from google.api_core.retry import Retry
        from google.auth.exceptions import GoogleAuthError
        from google.protobuf.json_format import ParseError
        from requests.exceptions import RequestException

        repeatedly: Callable[[Callable[[], Any]], Callable[[], Any]] = Retry(
            predicate=lambda error: _code(error) in PASSING,
            initial=self._patience.first_pause,
            maximum=self._patience.longest_pause,
            timeout=self._patience.in_all,
        )
        try:
            return repeatedly(lambda: method(**given, retry=None, timeout=self._patience.attempt))()
        except (GoogleAPICallError, GoogleAuthError, RequestException) as error:
            code = _code(error)
        except ParseError:
            code = _UNREADABLE
        except RetryError as error:
            code = _code(error.cause)
        if code == passed:
            return None
        raise _failure(place, right, code)


_opened: dict[tuple[SecretManagerTarget, Patience], SecretManager] = {}
_opening = Lock()


def open_secret_manager(target: SecretManagerTarget, patience: Patience | None = None) -> SecretManager:
    """Open this process's connection to a target; raises SecretManagerError without an identity."""
    key = (target, patience or Patience())
    refuse_unasked(SecretManagerError, "Secret Manager", "cloud")
    with _opening:
        if key not in _opened:
            _opened[key] = new_secret_manager(*key)
        return _opened[key]


def configured_secret_manager(
    read: Callable[[str], str | None], location: str | None = None
) -> SecretManager:
    """Open the connection that a stack's configuration states; raises as `open_secret_manager`."""
    return open_secret_manager(SecretManagerTarget.configured(read).at(location))


def new_secret_manager(target: SecretManagerTarget, patience: Patience | None = None) -> SecretManager:
    """Open a separate connection; raises SecretManagerError without an identity."""
    with IMPORT_LOCK:
        from google.api_core.client_options import ClientOptions
        from google.auth.exceptions import DefaultCredentialsError
        from google.cloud.secretmanager_v1.services.secret_manager_service import SecretManagerServiceClient

    endpoint = target.endpoint and target.endpoint.rstrip("/").removesuffix("/v1")
    options = ClientOptions(api_endpoint=endpoint)
    try:
        client = SecretManagerServiceClient(
            credentials=_identity(target), transport="rest", client_options=options
        )
    except (DefaultCredentialsError, ValueError):  # no login, or a key that is not JSON
        raise SecretManagerError(
            code="no-identity",
            place="Secret Manager",
            problem="there is no login to Google Cloud here, so it cannot be asked",
            fix="sign in with `gcloud auth application-default login`, or set gcp:accessToken",
        ) from None
    return SecretManager(client, patience or Patience())


def _identity(target: SecretManagerTarget) -> Any:
    """Return the credentials of the target's identity; None for the application default.

    Raises DefaultCredentialsError if there are none.
    """
    import google.auth
    from google.auth import impersonated_credentials
    from google.oauth2.credentials import Credentials

    load: Any = google.auth
    found: Any = None
    if target.token is not None:
        found = cast("Any", Credentials)(target.token)
    elif target.key is not None:
        is_json = target.key.lstrip().startswith("{")
        given = read_json(target.key) if is_json else target.key
        loaded = load.load_credentials_from_dict if is_json else load.load_credentials_from_file
        found, _ = loaded(given, scopes=_SCOPES)
    if target.impersonates is None:
        return found
    source = found or load.default(scopes=_SCOPES)[0]
    return cast("Any", impersonated_credentials).Credentials(source, target.impersonates, _SCOPES)


def _version(found: Any) -> Version:
    if found.state.name not in set(VersionState):
        raise _failure(str(found.name), "versions.get", _UNREADABLE)
    return Version(
        str(found.name), VersionState(found.state.name), str(found.etag), found.create_time.rfc3339()
    )


def _code(error: BaseException | None) -> str:
    """Return Google's error code: over REST the status in the answer, otherwise derived from HTTP.

    No answer is UNAVAILABLE, or DEADLINE_EXCEEDED after a timeout, as in gRPC.
    """
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import RefreshError, TransportError
    from google.rpc.code_pb2 import Code
    from requests.exceptions import ChunkedEncodingError, Timeout
    from requests.exceptions import ConnectionError as NoConnection

    match error:
        case GoogleAPICallError():
            stated = _stated(error.response)
            by_http = _CODES.get(int(error.code or 0), f"HTTP {int(error.code or 0)}")
            return stated if stated in Code.keys() else by_http  # noqa: SIM118 - an enum of protobuf, no dict
        case Timeout():
            return "DEADLINE_EXCEEDED"
        case NoConnection() | ChunkedEncodingError() | TransportError():
            return "UNAVAILABLE"
        case RefreshError():
            return "UNAUTHENTICATED"
        case _:
            return type(error).__name__


def _stated(response: Any) -> str:
    try:
        return str(response.json()["error"]["status"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return ""


_MEANINGS: Final[Mapping[str, tuple[str, str]]] = {
    _ABSENT: ("absent", "see whether it was deleted, or is in another project; then run again"),
    "ALREADY_EXISTS": ("exists", "look at who made it, and choose another name"),
    "PERMISSION_DENIED": ("not-allowed", "give the identity that runs this secretmanager.{right} there"),
    "UNAUTHENTICATED": ("not-allowed", "sign in to Google Cloud again, or set a new gcp:accessToken"),
    **dict.fromkeys(PASSING, ("unreachable", "run again once it answers; what was begun is finished then")),
    _UNREADABLE: (
        "refused",
        "correct gcp:secretManagerCustomEndpoint: what answers there is another service",
    ),
}
"""Google's code → credfleet's code and the fix."""

_OTHERWISE: Final = "refused", "look at it in the console of Google Cloud, then run again"


def _failure(place: str, right: str, code: str) -> SecretManagerError:
    kind, fix = _MEANINGS.get(code, _OTHERWISE)
    problem = f"Secret Manager answers {code} to {right}"
    return SecretManagerError(code=kind, place=place, problem=problem, fix=fix.format(right=right))
