"""What Secret Manager keeps, accepts and refuses, in Google's own messages; one request at a time."""

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, TypeVar

from google.cloud.secretmanager_v1.types import (
    AccessSecretVersionResponse,
    Replication,
    ReplicationStatus,
    Secret,
    SecretPayload,
    SecretVersion,
)
from google.iam.v1.policy_pb2 import Policy
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from pulumi_sandbox import files
from pulumi_sandbox.services.cloud.secret_manager.callers import (
    EMPTY_ETAG,
    GcpRefusal,
    invalid,
    not_kept,
    replaced,
    stale,
)

M = TypeVar("M", bound=Message)

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}|[A-Za-z0-9_-]*={0,2}")


def read(text: bytes, message: M, *, confidential: bool = False) -> M:
    """Fill a message from a request's body; an empty body is an empty message.

    confidential: the body may hold a payload, so a refusal does not quote what was wrong with it.

    Raises GcpRefusal INVALID_ARGUMENT.
    """
    try:
        json_format.Parse(text or b"{}", message)
    except (json_format.ParseError, UnicodeDecodeError) as error:
        reason = "" if confidential else f" {error}"
        raise invalid(f"Invalid JSON payload received.{reason}") from None
    return message


def check_base64(text: bytes) -> None:
    """Refuse a payload that is not base64, of either alphabet: the parser of messages drops what is none.

    Raises GcpRefusal INVALID_ARGUMENT, which quotes nothing.
    """
    try:
        document: Any = json.loads(text or b"{}")
        data = document["payload"]["data"]
    except (KeyError, TypeError, ValueError):
        return
    if not isinstance(data, str) or not _BASE64.fullmatch(data) or len(data.rstrip("=")) % 4 == 1:
        raise invalid("Invalid value at 'payload.data' (TYPE_BYTES), Base64 decoding failed.")


def shown(message: Message) -> dict[str, Any]:
    """Return a message as JSON, unset fields left out."""
    return json_format.MessageToDict(message)


_LOCATION = re.compile(r"[a-z]+-[a-z]+[1-9][0-9]?")
_PROJECT = re.compile(r"(?:[a-z0-9-]+(?:\.[a-z0-9-]+)+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,255}")
_PLACE = "/locations/"


def project_number(project: str) -> str:
    """Derive twelve digits from a project's id: the same each time, so that answers stay comparable."""
    return str(10**11 + int(hashlib.sha256(project.encode()).hexdigest(), 16) % (9 * 10**11))


def secret_name(parent: str, secret: str) -> str:
    """Return the full name of a secret, with its project's number as Google answers it."""
    project, place, location = parent.partition(_PLACE)
    return f"projects/{project_number(project)}{place}{location}/secrets/{secret}"


def parent_of(project: str, location: str | None) -> str:
    """Return what secrets of a project and place lie in; raises GcpRefusal for what can be neither."""
    if not _PROJECT.fullmatch(project):
        raise GcpRefusal("PERMISSION_DENIED", f"Permission denied on resource project {project}.")
    if location is None:
        return project
    return f"{project}{_PLACE}{checked_location(location)}"


def is_regional(parent: str) -> bool:
    """Whether what lies in it is kept in one place only."""
    return _PLACE in parent


def checked_location(location: str) -> str:
    """Return a place back when it has the form of one."""
    if not _LOCATION.fullmatch(location):
        raise invalid(f"The location [{location}] is not valid.")
    return location


_FILE = "secret.json"


@dataclass(slots=True)
class Version:
    """A version; data is None once it is destroyed."""

    about: SecretVersion
    data: bytes | None = field(repr=False)


@dataclass(slots=True)
class Kept:
    """A secret with all its versions, number 1 first, and its policy."""

    about: Secret
    versions: list[Version] = field(default_factory=list[Version])
    policy: Policy = field(default_factory=lambda: Policy(etag=EMPTY_ETAG))


class SecretStore:
    """All secrets, in memory and in a folder: what is answered has been written before."""

    def __init__(self, folder: Path) -> None:
        """Read what an earlier process left in a folder.

        Raises SandboxError `state-unreadable`.
        """
        self._folder = folder
        self._secrets: dict[str, dict[str, Kept]] = {}
        for parent in sorted(files.make_folder(folder).iterdir()):
            self._secrets[parent.name.replace("@", "/")] = {
                file.parent.name: _read(file) for file in sorted(parent.glob(f"*/{_FILE}"))
            }

    def project_of(self, number: str) -> str | None:
        """Return the id of a project by its number, if it was ever used."""
        used = (parent.partition("/")[0] for parent in self._secrets)
        return next((project for project in used if project_number(project) == number), None)

    def secrets(self, parent: str) -> dict[str, Kept]:
        """Return the secrets of a parent by their ids, in their order."""
        return dict(sorted(self._secrets.get(parent, {}).items()))

    def get(self, parent: str, secret: str) -> Kept | None:
        """Return one secret, which is changed only by `save`."""
        return self._secrets.get(parent, {}).get(secret)

    def save(self, parent: str, secret: str, kept: Kept) -> None:
        """Keep a secret as it is now."""
        document = {
            "secret": shown(Secret.pb(kept.about)),
            "versions": [
                {
                    "version": shown(SecretVersion.pb(version.about)),
                    "data": None if version.data is None else base64.b64encode(version.data).decode(),
                }
                for version in kept.versions
            ],
            "policy": shown(kept.policy),
        }
        files.replace(self._path(parent, secret), json.dumps(document), mode=files.PRIVATE)
        self._secrets.setdefault(parent, {})[secret] = kept

    def delete(self, parent: str, secret: str) -> None:
        """Forget a secret; its project stays known."""
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
        kept = Kept(Secret())
        _fill(Secret.pb(kept.about), document["secret"])
        _fill(kept.policy, document["policy"])
        for each in document["versions"]:
            data = None if each["data"] is None else base64.b64decode(each["data"])
            kept.versions.append(Version(SecretVersion(), data))
            _fill(SecretVersion.pb(kept.versions[-1].about), each["version"])
        return kept


def _fill(message: Message, said: Any) -> None:
    try:
        json_format.ParseDict(said, message)
    except json_format.ParseError as error:
        raise ValueError(error) from None


PAYLOAD_LIMIT: Final = 64 * 1024
"""Bytes."""

_NOT_KEPT: Final = (
    "annotations",
    "topics",
    "expire_time",
    "ttl",
    "rotation",
    "version_aliases",
    "version_destroy_ttl",
    "customer_managed_encryption",
    "tags",
)

_LABEL_KEY: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE: Final = re.compile(r"[a-z0-9_-]{0,63}")


def check_new(secret: Secret, *, regional: bool) -> None:
    """Check a secret that is to be created, in one place or not; raises GcpRefusal."""
    if not regional:
        _check_replication(secret.replication)
    elif "replication" in secret:
        raise invalid("A regional secret has no replication.")
    for kept in _NOT_KEPT:
        if kept in secret and getattr(secret, kept):
            raise not_kept(kept)
    check_labels(secret.labels)


def check_labels(labels: Mapping[str, str]) -> None:
    """Hold labels to Google's limits, of letters to those of ASCII; raises GcpRefusal."""
    if len(labels) > 64:
        raise invalid("A secret can have 64 labels at most.")
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            raise invalid(f"Label key [{key}] must match {_LABEL_KEY.pattern}.")
        if not _LABEL_VALUE.fullmatch(value):
            raise invalid(f"The value of label [{key}] must match {_LABEL_VALUE.pattern}.")


def check_mask(mask: str) -> None:
    """Refuse an update mask that names anything but labels; raises GcpRefusal."""
    if not {*filter(None, mask.split(","))} <= {"labels", "etag"} or not mask:
        raise invalid(f"The update_mask [{mask}] is none here: labels alone can change.")


def check_payload(payload: SecretPayload) -> None:
    """Check the bytes of a new version; raises GcpRefusal, which tells nothing of them."""
    if not payload.data:
        raise invalid("Secret Payload cannot be empty.")
    if len(payload.data) > PAYLOAD_LIMIT:
        raise invalid(f"The payload is too large: {len(payload.data)} bytes, {PAYLOAD_LIMIT} are allowed.")
    if "data_crc32c" in payload:
        raise not_kept("data_crc32c")


def _check_replication(replication: Replication) -> None:
    managed = [replication.automatic] if "automatic" in replication else replication.user_managed.replicas
    if any("customer_managed_encryption" in each for each in managed):
        raise not_kept("customer_managed_encryption")
    if not managed:
        raise invalid("The replication of a secret is required: automatic, or user_managed with replicas.")
    locations = [replica.location for replica in replication.user_managed.replicas]
    for location in locations:
        checked_location(location)
        if locations.count(location) > 1:
            raise invalid(f"The replica location [{location}] is given twice.")


_CONDITION: Final = re.compile(r"labels\.(?P<label>[\w-]+)=(?P<value>[\w-]*)|name:(?P<name>[\w-]+)")


def read_filter(text: str) -> Callable[[Secret], bool]:
    """Read a filter: conditions that all have to hold, of labels as a whole and of a part of the name.

    Raises GcpRefusal INVALID_ARGUMENT.
    """
    conditions = [(word, _CONDITION.fullmatch(word)) for word in text.split()]
    if unread := [word for word, found in conditions if found is None]:
        raise invalid(f"The filter names [{unread[0]}], by which this emulator cannot filter.")
    wanted = [found for _, found in conditions if found]
    return lambda secret: all(
        found["name"] in secret.name if found["name"] else secret.labels.get(found["label"]) == found["value"]
        for found in wanted
    )


State = SecretVersion.State
T = TypeVar("T")


class Secrets:
    """The service without its paths; each method raises GcpRefusal. parent: what a secret is in."""

    def __init__(self, store: SecretStore) -> None:
        """Work on what is kept."""
        self._store = store

    def parent(self, project: str, location: str | None) -> str:
        """Return what secrets of a project, by its id or number, lie in; location: of regional ones."""
        known = self._store.project_of(project) if project.isdecimal() else None
        return parent_of(known or project, location)

    def present_policy(self, parent: str, secret: str) -> Policy | None:
        """Return the policy of a secret; None when there is no secret."""
        kept = self._store.get(parent, secret)
        return kept and kept.policy

    def create(self, parent: str, secret: str, wanted: Secret) -> Secret:
        """Make a secret without versions."""
        if not _SECRET.fullmatch(secret):
            expected = "[[a-zA-Z_0-9-]{1,255}]"
            raise invalid(f"The provided Secret ID [{secret}] does not match the expected format {expected}")
        name = secret_name(parent, secret)
        check_new(wanted, regional=is_regional(parent))
        if self._store.get(parent, secret):
            raise GcpRefusal("ALREADY_EXISTS", f"Secret [{name}] already exists.")
        about = Secret(
            name=name,
            replication=wanted.replication,
            create_time=_now(),
            labels=wanted.labels,
            etag=_etag(),
        )
        self._store.save(parent, secret, Kept(about))
        return about

    def get(self, parent: str, secret: str) -> Secret:
        """Read a secret."""
        return self._kept(parent, secret).about

    def list(self, parent: str, filter_: str) -> list[Secret]:
        """Return the secrets that pass a filter, by name."""
        kept = (each.about for each in self._store.secrets(parent).values())
        return [*filter(read_filter(filter_), kept)]

    def update(self, parent: str, secret: str, wanted: Secret, mask: str) -> Secret:
        """Take over the labels, which a mask has to name."""
        check_mask(mask)

        def change(kept: Kept) -> Secret:
            _check_etag(wanted.etag, kept.about.etag, kept.about.name)
            check_labels(wanted.labels)
            kept.about.labels = wanted.labels
            kept.about.etag = _etag()
            return kept.about

        return self._change(parent, secret, change)

    def delete(self, parent: str, secret: str, etag: str) -> None:
        """Delete a secret with all its versions."""
        kept = self._kept(parent, secret)
        _check_etag(etag, kept.about.etag, kept.about.name)
        self._store.delete(parent, secret)

    def add_version(self, parent: str, secret: str, payload: SecretPayload) -> SecretVersion:
        """Add a version, which is `latest` from now on."""

        def change(kept: Kept) -> SecretVersion:
            check_payload(payload)
            about = SecretVersion(
                name=f"{kept.about.name}/versions/{len(kept.versions) + 1}",
                create_time=_now(),
                state=State.ENABLED,
                replication_status=None if is_regional(parent) else _replicated(kept.about.replication),
                etag=_etag(),
            )
            kept.versions.append(Version(about, payload.data))
            return about

        return self._change(parent, secret, change)

    def get_version(self, parent: str, secret: str, version: str) -> SecretVersion:
        """Read a version by number or `latest`; its payload is not in it."""
        return _version_of(self._kept(parent, secret), version).about

    def list_versions(self, parent: str, secret: str) -> Sequence[SecretVersion]:
        """Return the versions, the newest first."""
        return [version.about for version in reversed(self._kept(parent, secret).versions)]

    def access(self, parent: str, secret: str, version: str) -> AccessSecretVersionResponse:
        """Read the payload of a version that is enabled."""
        found = _version_of(self._kept(parent, secret), version)
        if found.data is None or found.about.state != State.ENABLED:
            raise _in_state(found.about)
        payload = SecretPayload(data=found.data)
        return AccessSecretVersionResponse(name=found.about.name, payload=payload)

    def set_state(self, parent: str, secret: str, version: str, state: State, etag: str) -> SecretVersion:
        """Enable, disable or destroy a version; one that is destroyed stays so."""

        def change(kept: Kept) -> SecretVersion:
            found = _numbered(kept, version)
            _check_etag(etag, found.about.etag, found.about.name)
            if found.about.state == State.DESTROYED:
                raise _in_state(found.about)
            if found.about.state != state:
                found.about.state = state
                found.about.etag = _etag()
            if state == State.DESTROYED:
                found.about.destroy_time = _now()
                found.data = None
            return found.about

        return self._change(parent, secret, change)

    def policy(self, parent: str, secret: str) -> Policy:
        """Read the policy."""
        return self._kept(parent, secret).policy

    def set_policy(self, parent: str, secret: str, wanted: Policy) -> Policy:
        """Replace the policy."""

        def change(kept: Kept) -> Policy:
            kept.policy = replaced(kept.policy, wanted)
            return kept.policy

        return self._change(parent, secret, change)

    def _kept(self, parent: str, secret: str) -> Kept:
        kept = self._store.get(parent, secret)
        if kept is None:
            raise GcpRefusal("NOT_FOUND", f"Secret [{secret_name(parent, secret)}] not found.")
        return kept

    def _change(self, parent: str, secret: str, change: Callable[[Kept], T]) -> T:
        """Change a copy and keep it: what is refused, or cannot be written, leaves nothing behind."""
        kept = self._kept(parent, secret)
        changed = deepcopy(kept)
        result = change(changed)
        self._store.save(parent, secret, changed)
        return result


def _version_of(kept: Kept, version: str) -> Version:
    if version == "latest":
        if not kept.versions:
            raise GcpRefusal("NOT_FOUND", f"Secret [{kept.about.name}] not found or has no versions.")
        return kept.versions[-1]
    return _numbered(kept, version)


def _numbered(kept: Kept, version: str) -> Version:
    if not re.fullmatch(r"[1-9][0-9]*", version):
        raise invalid(f"Version [{version}] is neither a number nor latest.")
    if not 1 <= int(version) <= len(kept.versions):
        raise GcpRefusal("NOT_FOUND", f"Secret Version [{kept.about.name}/versions/{version}] not found.")
    return kept.versions[int(version) - 1]


def _in_state(version: SecretVersion) -> GcpRefusal:
    state = State(version.state).name
    return GcpRefusal("FAILED_PRECONDITION", f"Secret Version [{version.name}] is in {state} state.")


def _check_etag(given: str, present: str, what: str) -> None:
    if given and given != present:
        raise stale(what)


def _replicated(replication: Replication) -> ReplicationStatus:
    if "automatic" in replication:
        return ReplicationStatus(automatic=ReplicationStatus.AutomaticStatus())
    replicas = [
        ReplicationStatus.UserManagedStatus.ReplicaStatus(location=replica.location)
        for replica in replication.user_managed.replicas
    ]
    return ReplicationStatus(user_managed=ReplicationStatus.UserManagedStatus(replicas=replicas))


def _etag() -> str:
    return f'"{token_hex(7)}"'


def _now() -> Timestamp:
    now = Timestamp()
    now.FromDatetime(datetime.now(UTC))
    return now
