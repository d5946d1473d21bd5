"""The data and rules of Secret Manager, with Google's own messages; one request at a time."""

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, TypeVar

from google.api_core import exceptions as errors
from google.cloud.secretmanager_v1.types import (
    AccessSecretVersionResponse,
    AddSecretVersionRequest,
    DestroySecretVersionRequest,
    ListSecretsResponse,
    ListSecretVersionsResponse,
    Secret,
    SecretPayload,
    SecretVersion,
)
from google.iam.v1.iam_policy_pb2 import SetIamPolicyRequest
from google.iam.v1.policy_pb2 import Policy
from google.protobuf import json_format
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from pulumi_sandbox import files
from pulumi_sandbox.services.cloud.secret_manager.callers import EMPTY_ETAG, not_kept, replaced

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: the names in its path, its query, its body. parent: contains the secret."""

    parent: str
    query: Mapping[str, str]
    body: bytes
    secret: str = ""
    version: str = ""

    def read(self, message: M, *, confidential: bool = False) -> M:
        """Parse the body into a message; an empty body is an empty message.

        confidential: the body can contain a payload, so that an error does not quote it. Raises
        InvalidArgument.
        """
        try:
            json_format.Parse(self.body or b"{}", _wire(message))
        except (json_format.ParseError, UnicodeDecodeError) as error:
            reason = "" if confidential else f" {error}"
            raise errors.InvalidArgument(f"Invalid JSON payload received.{reason}") from None
        return message


def _wire(message: Any) -> Message:
    """Return the protobuf message inside one of proto-plus."""
    return message if isinstance(message, Message) else type(message).pb(message)


def shown(message: object) -> dict[str, Any]:
    """Return a message as JSON, without unset fields."""
    return json_format.MessageToDict(_wire(message))


_LOCATION = re.compile(r"[a-z]+-[a-z]+[1-9][0-9]?")
_PROJECT = re.compile(r"(?:[a-z0-9-]+(?:\.[a-z0-9-]+)+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,255}")
_PLACE = "/locations/"


def project_number(project: str) -> str:
    """Return twelve digits derived from a project's ID, so that responses are reproducible."""
    return str(10**11 + int(hashlib.sha256(project.encode()).hexdigest(), 16) % (9 * 10**11))


def secret_name(parent: str, secret: str) -> str:
    """Return the full name of a secret, with its project's number as in Google's responses."""
    project, place, location = parent.partition(_PLACE)
    return f"projects/{project_number(project)}{place}{location}/secrets/{secret}"


_FILE = "secret.json"


@dataclass(slots=True)
class Version:
    """A version; data is None once it is destroyed."""

    about: SecretVersion
    data: bytes | None = field(repr=False)


@dataclass(slots=True)
class Kept:
    """A secret with all its versions, starting with number 1, and its policy."""

    about: Secret
    versions: list[Version] = field(default_factory=list[Version])
    policy: Policy = field(default_factory=lambda: Policy(etag=EMPTY_ETAG))


class SecretStore:
    """All secrets, in memory and in a folder, which is written before each response."""

    def __init__(self, folder: Path) -> None:
        """Load the folder of an earlier process.

        Raises SandboxError `state-unreadable`.
        """
        self._folder = folder
        self._secrets: dict[str, dict[str, Kept]] = {}
        for parent in sorted(files.make_folder(folder).iterdir()):
            self._secrets[parent.name.replace("@", "/")] = {
                file.parent.name: _read(file) for file in sorted(parent.glob(f"*/{_FILE}"))
            }

    def project_of(self, number: str) -> str | None:
        """Return the ID of a project by its number, if it was ever used."""
        used = (parent.partition("/")[0] for parent in self._secrets)
        return next((project for project in used if project_number(project) == number), None)

    def secrets(self, parent: str) -> dict[str, Kept]:
        """Return the secrets of a parent by ID, sorted."""
        return dict(sorted(self._secrets.get(parent, {}).items()))

    def get(self, parent: str, secret: str) -> Kept | None:
        """Return a secret, which must only be changed by `save`."""
        return self._secrets.get(parent, {}).get(secret)

    def save(self, parent: str, secret: str, kept: Kept) -> None:
        """Store a secret."""
        document = {
            "secret": shown(kept.about),
            "versions": [
                {
                    "version": shown(version.about),
                    "data": None if version.data is None else base64.b64encode(version.data).decode(),
                }
                for version in kept.versions
            ],
            "policy": shown(kept.policy),
        }
        files.replace(self._path(parent, secret), json.dumps(document), mode=files.PRIVATE)
        self._secrets.setdefault(parent, {})[secret] = kept

    def delete(self, parent: str, secret: str) -> None:
        """Delete a secret; its project stays known."""
        path = self._path(parent, secret)
        path.unlink()
        shutil.rmtree(path.parent)
        del self._secrets[parent][secret]

    def _path(self, parent: str, secret: str) -> Path:
        return self._folder / parent.replace("/", "@") / secret / _FILE


def _read(file: Path) -> Kept:
    fix = "remove the file; the secret is gone then"
    with files.readable(file, "it holds no secret of the Secret Manager emulator", fix):
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        kept = Kept(_filled(Secret(), document["secret"]), policy=_filled(Policy(), document["policy"]))
        for each in document["versions"]:
            data = None if each["data"] is None else base64.b64decode(each["data"])
            kept.versions.append(Version(_filled(SecretVersion(), each["version"]), data))
        return kept


def _filled(message: M, said: Any) -> M:
    try:
        json_format.ParseDict(said, _wire(message))
    except json_format.ParseError as error:
        raise ValueError(error) from None
    return message


PAYLOAD_LIMIT: Final = 64 * 1024
"""In bytes."""

_KEPT: Final = ("name", "replication", "create_time", "labels", "etag")

_LABEL_KEY: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE: Final = re.compile(r"[a-z0-9_-]{0,63}")


def check_new(secret: Secret, *, regional: bool) -> None:
    """Check a new secret, regional or global."""
    replication = secret.replication
    managed = [replication.automatic] if "automatic" in replication else replication.user_managed.replicas
    if regional and "replication" in secret:
        raise errors.InvalidArgument("A regional secret has no replication.")
    if not regional and not managed:
        raise errors.InvalidArgument(
            "The replication of a secret is required: automatic, or user_managed with replicas."
        )
    if any("customer_managed_encryption" in each for each in managed):
        raise not_kept("customer_managed_encryption")
    for given, _ in _wire(secret).ListFields():
        if given.name not in _KEPT:
            raise not_kept(given.name)
    check_labels(secret.labels)


def check_labels(labels: Mapping[str, str]) -> None:
    """Check labels against Google's limits, allowing only ASCII letters."""
    if len(labels) > 64:
        raise errors.InvalidArgument("A secret can have 64 labels at most.")
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            raise errors.InvalidArgument(f"Label key [{key}] must match {_LABEL_KEY.pattern}.")
        if not _LABEL_VALUE.fullmatch(value):
            raise errors.InvalidArgument(f"The value of label [{key}] must match {_LABEL_VALUE.pattern}.")


def check_payload(payload: SecretPayload) -> None:
    """Check the payload of a new version, without quoting it."""
    if not payload.data:
        raise errors.InvalidArgument("Secret Payload cannot be empty.")
    if len(payload.data) > PAYLOAD_LIMIT:
        raise errors.InvalidArgument(
            f"The payload is too large: {len(payload.data)} bytes, {PAYLOAD_LIMIT} are allowed."
        )
    if "data_crc32c" in payload:
        raise not_kept("data_crc32c")


_CONDITION: Final = re.compile(r"labels\.(?P<label>[\w-]+)=(?P<value>[\w-]*)|name:(?P<name>[\w-]+)")


def read_filter(text: str) -> Callable[[Secret], bool]:
    """Parse a filter: a conjunction of conditions on whole labels and parts of the name.

    Raises InvalidArgument.
    """
    wanted: list[re.Match[str]] = []
    for word in text.split():
        found = _CONDITION.fullmatch(word)
        if found is None:
            raise errors.InvalidArgument(f"The filter names [{word}], by which this emulator cannot filter.")
        wanted.append(found)
    return lambda secret: all(
        found["name"] in secret.name if found["name"] else secret.labels.get(found["label"]) == found["value"]
        for found in wanted
    )


State = SecretVersion.State


class Secrets:
    """The service without its paths: each method but the first two handles a request."""

    def __init__(self, store: SecretStore) -> None:
        """Use this store."""
        self._store = store

    def parent(self, project: str, location: str | None) -> str:
        """Return the parent of secrets of a project, given by ID or number; location: of regional ones."""
        if project.isdecimal():
            project = self._store.project_of(project) or project
        if not _PROJECT.fullmatch(project):
            raise errors.PermissionDenied(f"Permission denied on resource project {project}.")
        if location is None:
            return project
        if not _LOCATION.fullmatch(location):
            raise errors.InvalidArgument(f"The location [{location}] is not valid.")
        return f"{project}{_PLACE}{location}"

    def present_policy(self, parent: str, secret: str) -> Policy | None:
        """Return the policy of a secret; None if it does not exist."""
        kept = self._store.get(parent, secret)
        return kept and kept.policy

    def create(self, asked: Asked) -> Secret:
        """Create a secret without versions."""
        secret, wanted = asked.query.get("secretId", ""), asked.read(Secret())
        if not _SECRET.fullmatch(secret):
            expected = "[[a-zA-Z_0-9-]{1,255}]"
            raise errors.InvalidArgument(
                f"The provided Secret ID [{secret}] does not match the expected format {expected}"
            )
        name = secret_name(asked.parent, secret)
        check_new(wanted, regional=_PLACE in asked.parent)
        if self._store.get(asked.parent, secret):
            raise errors.AlreadyExists(f"Secret [{name}] already exists.")
        replication, labels = wanted.replication, wanted.labels
        about = Secret(name=name, replication=replication, create_time=_now(), labels=labels, etag=_etag())
        self._store.save(asked.parent, secret, Kept(about))
        return about

    def get(self, asked: Asked) -> Secret:
        """Return a secret."""
        return self._kept(asked).about

    def list(self, asked: Asked) -> ListSecretsResponse:
        """Return the secrets that match a filter, by name."""
        kept = (each.about for each in self._store.secrets(asked.parent).values())
        found = [*filter(read_filter(asked.query.get("filter", "")), kept)]
        return ListSecretsResponse(secrets=found, total_size=len(found))

    def update(self, asked: Asked) -> Secret:
        """Replace the labels, which the mask must name."""
        wanted, mask = asked.read(Secret()), asked.query.get("updateMask", "")
        if not {*filter(None, mask.split(","))} <= {"labels", "etag"} or not mask:
            raise errors.InvalidArgument(f"The update_mask [{mask}] is none here: labels alone can change.")

        def change(kept: Kept) -> Secret:
            _check_etag(wanted.etag, kept.about)
            check_labels(wanted.labels)
            kept.about.labels = wanted.labels
            kept.about.etag = _etag()
            return kept.about

        return self._change(asked, change)

    def delete(self, asked: Asked) -> Empty:
        """Delete a secret with all its versions."""
        _check_etag(asked.query.get("etag", ""), self._kept(asked).about)
        self._store.delete(asked.parent, asked.secret)
        return Empty()

    def add_version(self, asked: Asked) -> SecretVersion:
        """Add a version, which becomes `latest`."""
        payload = asked.read(AddSecretVersionRequest(), confidential=True).payload

        def change(kept: Kept) -> SecretVersion:
            check_payload(payload)
            name = f"{kept.about.name}/versions/{len(kept.versions) + 1}"
            about = SecretVersion(name=name, create_time=_now(), state=State.ENABLED, etag=_etag())
            kept.versions.append(Version(about, payload.data))
            return about

        return self._change(asked, change)

    def get_version(self, asked: Asked) -> SecretVersion:
        """Return a version by number or `latest`, without its payload."""
        return _version_of(self._kept(asked), asked.version).about

    def list_versions(self, asked: Asked) -> ListSecretVersionsResponse:
        """Return the versions, newest first."""
        if asked.query.get("filter", ""):
            raise not_kept("filters of versions")
        found = [version.about for version in reversed(self._kept(asked).versions)]
        return ListSecretVersionsResponse(versions=found, total_size=len(found))

    def access(self, asked: Asked) -> AccessSecretVersionResponse:
        """Return the payload of an enabled version."""
        found = _version_of(self._kept(asked), asked.version)
        if found.data is None or found.about.state != State.ENABLED:
            raise _in_state(found.about)
        payload = SecretPayload(data=found.data)
        return AccessSecretVersionResponse(name=found.about.name, payload=payload)

    def set_state(self, state: State, asked: Asked) -> SecretVersion:
        """Enable, disable or destroy a version; destroyed ones cannot change."""
        wanted = asked.read(DestroySecretVersionRequest())

        def change(kept: Kept) -> SecretVersion:
            found = _numbered(kept, asked.version)
            _check_etag(wanted.etag, found.about)
            if found.about.state == State.DESTROYED:
                raise _in_state(found.about)
            if found.about.state != state:
                found.about.state = state
                found.about.etag = _etag()
            if state == State.DESTROYED:
                found.about.destroy_time = _now()
                found.data = None
            return found.about

        return self._change(asked, change)

    def policy(self, asked: Asked) -> Policy:
        """Return the policy."""
        return self._kept(asked).policy

    def set_policy(self, asked: Asked) -> Policy:
        """Replace the policy."""
        wanted = asked.read(SetIamPolicyRequest()).policy

        def change(kept: Kept) -> Policy:
            kept.policy = replaced(kept.policy, wanted)
            return kept.policy

        return self._change(asked, change)

    def _kept(self, asked: Asked) -> Kept:
        kept = self._store.get(asked.parent, asked.secret)
        if kept is None:
            raise errors.NotFound(f"Secret [{secret_name(asked.parent, asked.secret)}] not found.")
        return kept

    def _change(self, asked: Asked, change: Callable[[Kept], M]) -> M:
        """Change a copy and store it, so that a failed change has no effect."""
        changed = deepcopy(self._kept(asked))
        result = change(changed)
        self._store.save(asked.parent, asked.secret, changed)
        return result


def _version_of(kept: Kept, version: str) -> Version:
    if version == "latest":
        if not kept.versions:
            raise errors.NotFound(f"Secret [{kept.about.name}] not found or has no versions.")
        return kept.versions[-1]
    return _numbered(kept, version)


def _numbered(kept: Kept, version: str) -> Version:
    if not re.fullmatch(r"[1-9][0-9]*", version):
        raise errors.InvalidArgument(f"Version [{version}] is neither a number nor latest.")
    if not 1 <= int(version) <= len(kept.versions):
        raise errors.NotFound(f"Secret Version [{kept.about.name}/versions/{version}] not found.")
    return kept.versions[int(version) - 1]


def _in_state(version: SecretVersion) -> errors.FailedPrecondition:
    state = State(version.state).name
    return errors.FailedPrecondition(f"Secret Version [{version.name}] is in {state} state.")


def _check_etag(given: str, present: Secret | SecretVersion) -> None:
    if given and given != present.etag:
        what = f"the current etag of {present.name}"
        raise errors.FailedPrecondition(f"The etag provided does not match {what}.")


def _etag() -> str:
    return f'"{token_hex(7)}"'


def _now() -> Timestamp:
    now = Timestamp()
    now.FromDatetime(datetime.now(UTC))
    return now
