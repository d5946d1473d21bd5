"""What each request does to secrets, versions and policies; one request at a time."""

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from secrets import token_hex
from typing import Final, TypeAlias, TypeVar

from google.cloud.secretmanager_v1.types import (
    AccessSecretVersionResponse,
    Replication,
    ReplicationStatus,
    Secret,
    SecretPayload,
    SecretVersion,
)
from google.iam.v1.policy_pb2 import Policy
from google.protobuf.timestamp_pb2 import Timestamp

from pulumi_sandbox.services.cloud.secret_manager import rules
from pulumi_sandbox.services.cloud.secret_manager.callers import replaced
from pulumi_sandbox.services.cloud.secret_manager.names import (
    checked_secret,
    is_regional,
    parent_of,
    secret_name,
)
from pulumi_sandbox.services.cloud.secret_manager.refusals import GcpRefusal, invalid, stale
from pulumi_sandbox.services.cloud.secret_manager.store import Kept, SecretStore, Version

Attributes: TypeAlias = Mapping[str, str]
"""What a filter may ask for: `name`, `labels.KEY`, and of a version `state`."""

Test: TypeAlias = Callable[[Attributes], bool]

_WORD: Final = re.compile(
    r"""\s*(?:AND\s+)?(?P<field>[A-Za-z_]+(?:\.[\w-]+)?)\s*(?P<operator>=|:)\s*(?P<value>"[^"]*"|[^\s"()]+)"""
)


def read_filter(text: str) -> Test:
    """Read a filter: conditions that all have to hold, with AND between them or none.

    `=` compares whole values (a name's last part counts as the whole); `:` looks for a part, `:*` for any.

    Raises Refusal INVALID_ARGUMENT.
    """
    tests: list[Test] = []
    position = 0
    while text[position:].strip():
        word = _WORD.match(text, position)
        if word is None:
            raise invalid(f"The filter is not understood from [{text[position:].strip()}] on.")
        position = word.end()
        tests.append(_test(word["field"], word["operator"], word["value"].strip('"')))
    return lambda attributes: all(test(attributes) for test in tests)


def _test(field: str, operator: str, value: str) -> Test:
    if field not in ("name", "state") and not field.startswith("labels."):
        raise invalid(f"The filter names [{field}], by which this stand-in cannot filter.")

    def test(attributes: Attributes) -> bool:
        found = attributes.get(field)
        if found is None or operator == ":":
            return found is not None and (value == "*" or value.lower() in found.lower())
        return found == value or (field == "name" and found.endswith(f"/{value}"))

    return test


State = SecretVersion.State
T = TypeVar("T")


class Secrets:
    """The service without its paths; each method raises Refusal. parent: what a secret lies in (`parent`)."""

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
        secret = checked_secret(secret)
        name = secret_name(parent, secret)
        rules.check_new(wanted, regional=is_regional(parent))
        if self._store.get(parent, secret):
            raise GcpRefusal("ALREADY_EXISTS", f"Secret [{name}] already exists.")
        about = Secret(
            name=name,
            replication=wanted.replication,
            create_time=_now(),
            labels=wanted.labels,
            annotations=wanted.annotations,
            etag=_etag(),
        )
        self._store.save(parent, secret, Kept(about))
        return about

    def get(self, parent: str, secret: str) -> Secret:
        """Read a secret."""
        return self._kept(parent, secret).about

    def list(self, parent: str, filter_: str) -> list[Secret]:
        """Return the secrets that pass a filter, by name."""
        passes = read_filter(filter_)
        kept = (each.about for each in self._store.secrets(parent).values())
        return [secret for secret in kept if passes(_attributes_of(secret))]

    def update(self, parent: str, secret: str, wanted: Secret, mask: str) -> Secret:
        """Take over the fields of a mask."""
        fields = rules.changed_fields(mask)

        def change(kept: Kept) -> Secret:
            _check_etag(wanted.etag, kept.about.etag, kept.about.name)
            rules.check_labels(wanted.labels)
            for field in fields:
                setattr(kept.about, field, getattr(wanted, field))
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
            rules.check_payload(payload)
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

    def list_versions(self, parent: str, secret: str, filter_: str) -> Sequence[SecretVersion]:
        """Return the versions that pass a filter, the newest first."""
        passes = read_filter(filter_)
        versions = [version.about for version in reversed(self._kept(parent, secret).versions)]
        return [each for each in versions if passes({"name": each.name, "state": State(each.state).name})]

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


def _attributes_of(secret: Secret) -> Attributes:
    return {"name": secret.name, **{f"labels.{key}": value for key, value in secret.labels.items()}}


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
