"""Reads and writes the JSON of a state: deployment format, version 3.

This is the format of `pulumi stack export`. Field names are those of the format, in snake case.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final, cast

from pulumi_sandbox.protocol import urns, wire
from pulumi_sandbox.protocol.values import Json, Properties, Secret, Value
from pulumi_sandbox.protocol.wire import tag, untag
from pydantic.alias_generators import to_camel

from components.documents import read_json
from components.errors import CredfleetError
from operations.stack.passphrase import PassphraseCrypter

_PACKED: Final = b"\x1f\x8b"
"""First bytes of a gzip file."""
_GIVE: Final = "give it what `pulumi stack export --show-secrets` writes, or the file of a backend"


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource in the state.

    `provider` is `urn::id`; `delete` marks the old half of a replacement, to be deleted; `created` is in RFC
    3339; `other` contains fields that are not read here, as the CLI wrote them.
    """

    urn: str
    type: str
    custom: bool
    delete: bool = False
    id: str = ""
    inputs: Properties = field(default_factory=dict[str, Value])
    outputs: Properties = field(default_factory=dict[str, Value])
    parent: str = ""
    dependencies: tuple[str, ...] = ()
    init_errors: tuple[str, ...] = ()
    provider: str = ""
    property_dependencies: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    aliases: tuple[str, ...] = ()
    deleted_with: str = ""
    replace_with: tuple[str, ...] = ()
    created: str = ""
    replacement_trigger: Value = None
    other: dict[str, Json] = field(default_factory=dict[str, Json])

    @property
    def is_provider(self) -> bool:
        """Whether this is itself a provider."""
        return self.type.startswith(urns.PROVIDER_TYPE_PREFIX)

    @property
    def provider_urn(self) -> str:
        """The URN of the provider that manages this resource, empty if there is none."""
        return urns.of_provider(self.provider)

    @property
    def references(self) -> tuple[str, ...]:
        """All URNs that must precede it in the state, except the provider: parent, dependencies, etc."""
        by_property = (urn for urns in self.property_dependencies.values() for urn in urns)
        single = (urn for urn in (self.parent, self.deleted_with) if urn)
        return tuple(dict.fromkeys((*single, *self.dependencies, *by_property, *self.replace_with)))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stack's resources in order of dependency, and the URNs of pending operations."""

    resources: tuple[Resource, ...] = ()
    pending: tuple[str, ...] = ()


def short_type(type_: str) -> str:
    """Return a type token without repetitions (`gcp:secretmanager/secret:Secret`) and internal parts."""
    package, _, rest = type_.partition(":")
    module, _, name = rest.rpartition(":")
    if package == "pulumi-python":
        return f"{module.removeprefix('dynamic/')}:{name}"
    head, _, tail = module.rpartition("/")
    return f"{package}:{head}:{name}" if head and tail.lower() == name.lower() else type_


_VALUES: Final = frozenset({"inputs", "outputs", "replacement_trigger"})
_REQUIRED: Final = frozenset({"urn", "custom", "type"})
_BARE: Final = Resource("", "", custom=False)


_FIELDS: Final = {
    to_camel(each.name): each.name for each in dataclasses.fields(Resource) if each.name != "other"
}


def deployment_in(content: bytes, place: str, fix: str = _GIVE) -> dict[str, Any]:
    """Parse a state from `pulumi stack export` or a backend: a checkpoint, possibly compressed.

    Raises CredfleetError `state-unreadable`.
    """
    try:
        document = read_json(gzip.decompress(content) if content[:2] == _PACKED else content)
        if "deployment" in document:
            return document["deployment"] or {}
        checkpoint = document["checkpoint"]  # that of a stack without resources only has a name
        return (checkpoint.get("latest") if "stack" in checkpoint else checkpoint["latest"]) or {}
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError):
        raise CredfleetError(
            code="state-unreadable", place=place, problem="it is not a state", fix=fix
        ) from None


def encode(snapshot: Snapshot, encrypt: Callable[[str], str] | None = None) -> dict[str, Any]:
    """Return the deployment, without its secrets provider; secrets are in plaintext without `encrypt`.

    Pending operations are omitted.
    """
    release = f"v{version('pulumi')}"
    records = [_encode(each, encrypt) for each in snapshot.resources]
    return {
        "manifest": {
            "time": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "magic": hashlib.sha256(release.encode()).hexdigest(),
            "version": release,
        },
        **({"resources": records} if records else {}),
        "metadata": {},
    }


def state_text(project: str, stack: str, snapshot: Snapshot, crypter: PassphraseCrypter) -> str:
    """Return the content of a state file in the CLI's file backend."""
    provider = {"type": "passphrase", "state": {"salt": crypter.salt}}
    latest = {**encode(snapshot, crypter.encrypt), "secrets_providers": provider}
    checkpoint = {"stack": f"organization/{project}/{stack}", "latest": latest}
    return _compact({"version": 3, "checkpoint": checkpoint})


def _compact(value: Any) -> str:
    """Return compact JSON; raises ValueError for numbers that JSON cannot represent."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _encode(resource: Resource, encrypt: Callable[[str], str] | None) -> dict[str, Json]:
    record: dict[str, Json] = {}
    for spelled, name in _FIELDS.items():
        value = getattr(resource, name)
        if name in _VALUES and value not in (None, {}):
            record[spelled] = tag(value, lambda secret: _write_secret(secret, encrypt))
        elif name in _REQUIRED or value:
            record[spelled] = value
    return record | resource.other


def _write_secret(secret: Secret, encrypt: Callable[[str], str] | None) -> Json:
    """Return a secret as JSON; nested secrets are not encrypted twice, but written as JSON."""
    inner = str if encrypt else None
    plaintext = _compact(tag(secret.value, lambda nested: _write_secret(nested, inner)))
    held = {"ciphertext": encrypt(plaintext)} if encrypt else {"plaintext": plaintext}
    return {wire.KEY: wire.SECRET, **held}


def decode(deployment: Mapping[str, Any], decrypt: Callable[[str], str] = json.dumps) -> Snapshot:
    """Parse a deployment; without `decrypt`, an encrypted secret becomes its ciphertext.

    Raises CredfleetError `state-unreadable` for a record with missing fields or fields of a wrong type.
    Whether references are valid is for the Pulumi CLI to judge.
    """
    pending = (_mapping(each, "a pending operation") for each in _list(deployment, "pending_operations"))
    return Snapshot(
        resources=tuple(_decode(record, decrypt) for record in _list(deployment, "resources")),
        pending=tuple(_decode(each.get("resource"), decrypt).urn for each in pending),
    )


def _list(deployment: Mapping[str, Any], key: str) -> list[Any]:
    found = deployment.get(key)
    if found is not None and not isinstance(found, list):
        raise _unreadable("the state", f"its {key} are not a list")
    return found or []


def _mapping(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _unreadable(place, "it is not an object of JSON")
    return cast("dict[str, Any]", value)


def _decode(said: Any, decrypt: Callable[[str], str]) -> Resource:
    record = _mapping(said, "a resource in the state")

    def read_secret(held: Mapping[str, Json], place: str) -> Value:
        plaintext = held.get("plaintext")
        if plaintext is None:
            plaintext = decrypt(str(held.get("ciphertext")))
        return _read_plain(plaintext, place)

    known = {key: record[key] for key in _FIELDS if record.get(key) is not None}
    place = f"resource {record.get('urn', 'without a urn')} in the state"
    if missing := sorted(_REQUIRED - known.keys()):
        raise _unreadable(place, f"it has no {' and no '.join(missing)}")
    fields: dict[str, Any] = {}
    for key, value in known.items():
        name = _FIELDS[key]
        bare = getattr(_BARE, name)
        if bare is not None and not isinstance(value, list if bare == () else type(bare)):
            raise _unreadable(place, f"its {key} is of another kind")
        if name in _VALUES:
            fields[name] = untag(value, read_secret, f"{record['urn']}/{key}")
        elif isinstance(value, dict):
            fields[name] = {
                inner: tuple(urns) if isinstance(urns, list) else () for inner, urns in value.items()
            }
        else:
            fields[name] = tuple(value) if isinstance(value, list) else value
    return Resource(**fields, other={key: value for key, value in record.items() if key not in _FIELDS})


def _unreadable(place: str, problem: str) -> CredfleetError:
    return CredfleetError(
        code="state-unreadable",
        place=place,
        problem=problem,
        fix="restore the state from its backup (beside it, with .bak behind its name)",
    )


def _read_plain(plaintext: Json, place: str) -> Value:
    def read_nested(held: Mapping[str, Json], inner: str) -> Value:
        return _read_plain(held.get("plaintext", held.get("ciphertext")), inner)

    try:
        return Secret(untag(json.loads(str(plaintext)), read_nested, place))
    except (ValueError, RecursionError):
        raise _unreadable(place, "it is marked as a secret, and holds none") from None
