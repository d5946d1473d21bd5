"""A snapshot as JSON: deployment format, version 3, as `pulumi stack export` prints it.

See sandbox/docs/engine-facts.md, the format of the state.
"""

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, Final, cast, get_args, get_origin

from pulumi_sandbox.engine.model.resource import (
    CustomTimeouts,
    OperationType,
    PendingOperation,
    Resource,
    Snapshot,
    now,
    spelling,
)
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import signatures
from pulumi_sandbox.protocol.tagged import tag, untag
from pulumi_sandbox.protocol.values import Json, Secret, Value

_FEATURES: Final = {"resource_hooks": "hooks", "taint": "taint", "replace_with": "replaceWith"}
_VALUES: Final = frozenset({"inputs", "outputs", "replacement_trigger"})
_REQUIRED: Final = frozenset({"urn", "custom", "type"})


_FIELDS: Final = {
    spelling(each.name): each.name for each in dataclasses.fields(Resource) if each.name != "other"
}
_KINDS: Final[Mapping[str, Any]] = {each.name: each.type for each in dataclasses.fields(Resource)}


@cache
def engine_version() -> str:
    """Return the version a state is written under: that of the installed SDK, as `v3.272.0`."""
    from importlib.metadata import version

    return f"v{version('pulumi')}"


class Encoder:
    """Writes one snapshot after the other, each resource once as long as it is the same object."""

    __slots__ = ("_crypter", "_known")

    def __init__(self, crypter: PassphraseCrypter) -> None:
        self._crypter = crypter
        self._known: dict[int, tuple[Resource, str]] = {}

    def deployment(self, snapshot: Snapshot) -> str:
        """Return the text of the deployment."""
        pending = [(each, each.resource) for each in snapshot.pending]
        present = [*snapshot.resources, *(resource for _, resource in pending)]
        self._known = {id(each): (each, self.record(each)) for each in present}
        text = {key: compact(value) for key, value in self._head().items()}
        if snapshot.resources:
            text["resources"] = f"[{','.join(self._known[id(each)][1] for each in snapshot.resources)}]"
        if pending:
            operations = (
                f'{{"resource":{self._known[id(resource)][1]},"type":{compact(each.type)}}}'
                for each, resource in pending
            )
            text["pending_operations"] = f"[{','.join(operations)}]"
        text["metadata"] = "{}"
        return "{" + ",".join(f'"{key}":{value}' for key, value in text.items()) + "}"

    def _head(self) -> dict[str, Json]:
        version = engine_version()
        magic = hashlib.sha256(version.encode()).hexdigest()
        return {
            "manifest": {"time": now(), "magic": magic, "version": version},
            "secrets_providers": self._crypter.state,
        }

    def record(self, resource: Resource) -> str:
        """Return the text of one record; it is kept for the deployments that it is in."""
        known = self._known.get(id(resource))
        if known is None:
            known = self._known[id(resource)] = resource, compact(_encode(resource, self._crypter))
        return known[1]


def features(snapshot: Snapshot) -> list[str]:
    """Return the names of what a reader of this snapshot must understand; any of them makes it version 4."""
    return sorted(
        feature
        for field, feature in _FEATURES.items()
        if any(getattr(resource, field) for resource in snapshot.resources)
    )


def decode(deployment: Mapping[str, Any], crypter: PassphraseCrypter) -> Snapshot:
    """Read a deployment (the format's own names; its integrity is not judged here).

    Raises SandboxError `wrong-passphrase` or `ciphertext-unreadable`, for secrets of another passphrase;
    `secrets-provider-unsupported`, for a stack encrypted by a cloud's key; `state-unreadable`, for a record
    without its required fields, or with one of another kind.
    """
    provider = _mapping(deployment, "the state").get("secrets_providers")
    if provider is not None:
        if _mapping(provider, "the state's secrets_providers").get("type") != "passphrase":
            raise SandboxError(
                code="secrets-provider-unsupported",
                place="the state's secrets_providers",
                cause=f"{provider.get('type')} keys cannot be used by the embedded engine",
                mend="run this stack with the Pulumi CLI, or change its provider to passphrase with it",
            )
        salt = _mapping(provider.get("state"), "the state of the state's secrets_providers").get("salt")
        if not isinstance(salt, str):
            raise _unreadable("the state's secrets_providers", "it has no salt")
        crypter = crypter.reopened(salt)
    return Snapshot(
        resources=tuple(_decode(record, crypter) for record in _list(deployment, "resources")),
        pending=tuple(_pending(record, crypter) for record in _list(deployment, "pending_operations")),
    )


def _pending(record: object, crypter: PassphraseCrypter) -> PendingOperation:
    place = "a pending operation of the state"
    operation = _mapping(record, place)
    if operation.get("type") not in get_args(OperationType):
        raise _unreadable(place, f"its type is none of {', '.join(get_args(OperationType))}")
    return PendingOperation(resource=_decode(operation.get("resource"), crypter), type=operation["type"])


def _list(deployment: Mapping[str, Any], key: str) -> list[Any]:
    found = deployment.get(key)
    if found is not None and not isinstance(found, list):
        raise _unreadable("the state", f"its {key} are no list")
    return found or []


def _mapping(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _unreadable(place, "it is no object of JSON")
    return cast("dict[str, Any]", value)


def compact(value: Json) -> str:
    """Return JSON in one line without spaces; a number JSON cannot write is an error."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _encode(resource: Resource, crypter: PassphraseCrypter) -> dict[str, Json]:
    record: dict[str, Json] = {}
    for spelled, name in _FIELDS.items():
        value = getattr(resource, name)
        if name in _VALUES and value not in (None, {}):
            write_secret = partial(_write_secret, crypter=crypter)
            record[spelled] = tag(value, write_secret, f"{resource.urn}/{spelled}")
        elif isinstance(value, CustomTimeouts):
            if value != CustomTimeouts():
                record[spelled] = {key: item for key, item in dataclasses.asdict(value).items() if item}
        elif name in _REQUIRED or value:
            record[spelled] = value
    return record | resource.other


def _decode(said: Any, crypter: PassphraseCrypter) -> Resource:
    record = _mapping(said, "a resource in the state")
    fields: dict[str, Any] = {"other": {}}
    read_secret = partial(_read_secret, crypter=crypter)
    for spelled, value in record.items():
        name = _FIELDS.get(spelled)
        if name is None:
            fields["other"][spelled] = value
        elif value is None:
            continue
        elif not _fits(value, _KINDS[name]):
            raise _unreadable(
                f"resource {record.get('urn')} in the state", f"its {spelled} is of another kind"
            )
        elif name in _VALUES:
            fields[name] = untag(value, read_secret, f"{record.get('urn')}/{spelled}")
        elif name == "custom_timeouts":
            fields[name] = CustomTimeouts(**cast("dict[str, float]", value))
        elif isinstance(value, dict):
            fields[name] = {key: tuple(item or ()) for key, item in value.items()}
        else:
            fields[name] = tuple(value) if isinstance(value, list) else value
    if missing := sorted(_REQUIRED - fields.keys()):
        place = f"resource {record.get('urn', 'without a urn')} in the state"
        raise _unreadable(place, f"it has no {' and no '.join(missing)}")
    return Resource(**fields)


def _fits(value: object, kind: Any) -> bool:
    """Whether what the state says of a field is of the kind that the field has."""
    if kind is CustomTimeouts:
        known = {each.name for each in dataclasses.fields(CustomTimeouts)}
        return isinstance(value, dict) and value.keys() <= known and all(map(_is_number, value.values()))
    if kind in (str, bool):
        return isinstance(value, kind)
    if get_origin(kind) is tuple:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if get_origin(kind) is dict:
        inner = get_args(kind)[1]
        is_plain = get_origin(inner) is not tuple
        return isinstance(value, dict) and (
            is_plain or all(each is None or _fits(each, inner) for each in value.values())
        )
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unreadable(place: str, cause: str) -> SandboxError:
    return SandboxError(
        code="state-unreadable",
        place=place,
        cause=cause,
        mend="restore the state from its backup (beside it, with .bak behind its name)",
    )


def _write_secret(secret: Secret, place: str, *, crypter: PassphraseCrypter) -> Json:
    plaintext = compact(tag(secret.value, _write_nested))
    return {signatures.KEY: signatures.SECRET, "ciphertext": crypter.encrypt(plaintext, place=place)}


def _write_nested(secret: Secret, place: str) -> Json:
    """Write a secret inside a secret: not encrypted twice, its JSON stands where the ciphertext would."""
    return {signatures.KEY: signatures.SECRET, "ciphertext": compact(tag(secret.value, _write_nested, place))}


def _read_secret(record: Mapping[str, Json], place: str, *, crypter: PassphraseCrypter) -> Value:
    plaintext = record.get("plaintext")
    if plaintext is None:
        plaintext = crypter.decrypt(str(record.get("ciphertext")), place=place)
    return Secret(untag(json.loads(str(plaintext)), _read_nested))


def _read_nested(record: Mapping[str, Json], place: str) -> Value:
    plaintext = record.get("plaintext", record.get("ciphertext"))
    return Secret(untag(json.loads(str(plaintext)), _read_nested, place))


def verify(snapshot: Snapshot) -> None:
    """Check that all a resource refers to stands before it, and that nobody is there twice.

    Raises SandboxError `state-invalid`, naming the first resource that breaks a rule.
    """
    seen: set[str] = set()
    providers: set[str] = set()
    for resource in snapshot.resources:
        _verify_record(resource)
        for reference in resource.references:
            if reference not in seen:
                raise _invalid(resource.urn, f"it refers to {reference}, which does not stand before it")
        if resource.provider and resource.provider not in providers and not resource.pending_replacement:
            raise _invalid(resource.urn, f"its provider {resource.provider} does not stand before it")
        if resource.is_provider:
            providers.add(f"{resource.urn}::{resource.id}")
        seen.add(resource.urn)
    alive = Counter(resource.urn for resource in snapshot.resources if not resource.delete)
    for urn, count in alive.items():
        if count > 1:
            raise _invalid(urn, "it is there twice, and not marked for deletion")


def _verify_record(resource: Resource) -> None:
    if not resource.urn or not resource.type:
        raise _invalid(resource.urn or "a resource", "it has no urn or no type")
    if not resource.custom and resource.id:
        raise _invalid(resource.urn, "it is a component and must not have an id")
    if resource.is_provider and not resource.id:
        raise _invalid(resource.urn, "it is a provider and must have an id")


def _invalid(urn: str, cause: str) -> SandboxError:
    return SandboxError(
        code="state-invalid",
        place=f"state of {urn}",
        cause=cause,
        mend="restore the state from its backup (beside it, with .bak behind its name)",
    )
