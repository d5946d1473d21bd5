"""Special values written as plain JSON with a signature key: the one encoding of the wire and of the state.

The two differ only in how a secret is written, which the caller decides.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import signatures
from pulumi_sandbox.protocol.values import (
    UNKNOWN,
    Archive,
    Asset,
    Json,
    ResourceReference,
    Secret,
    Unknown,
    Value,
)

SecretWriter: TypeAlias = Callable[[Secret], Json]
SecretReader: TypeAlias = Callable[[Mapping[str, Json], str], Value]
"""Takes the tagged object of a secret and its place (the keys above it, joined by `/`), returns the value."""


def tag(value: Value, write_secret: SecretWriter) -> Json:
    """Write a value as JSON; an unknown is the string that stands for one."""
    match value:
        case list():
            return [tag(item, write_secret) for item in value]
        case dict():
            return {key: tag(item, write_secret) for key, item in value.items()}
        case Secret():
            return write_secret(value)
        case Unknown():
            return signatures.UNKNOWN
        case Asset() | Archive() | ResourceReference():
            return _tag_object(value)
        case _:
            return value


def untag(json: Json, read_secret: SecretReader, place: str = "") -> Value:
    """Read a value back; whole numbers become integers, as the CLI writes them.

    Raises SandboxError `value-unreadable`, for an object with a signature nobody knows.
    """
    match json:
        case str() if json in signatures.UNKNOWNS:
            return UNKNOWN
        case float() if json.is_integer():
            return int(json)
        case list():
            return [untag(item, read_secret, f"{place}/{index}") for index, item in enumerate(json)]
        case dict() if signatures.KEY in json:
            return _untag_object(json, read_secret, place)
        case dict():
            return {key: untag(item, read_secret, f"{place}/{key}") for key, item in json.items()}
        case _:
            return json


def _tag_object(value: Asset | Archive | ResourceReference) -> Json:
    fields: dict[str, Json]
    if isinstance(value, ResourceReference):
        identity = "" if isinstance(value.id, Unknown) else value.id
        fields = {"urn": value.urn, "id": identity, "packageVersion": value.package_version or None}
        kind = signatures.RESOURCE
    elif isinstance(value, Asset):
        fields = {"text": value.text, "path": value.path, "uri": value.uri, "hash": value.hash or None}
        kind = signatures.ASSET
    else:
        members = value.assets
        assets = None if members is None else {name: _tag_object(each) for name, each in members.items()}
        fields = {"assets": assets, "path": value.path, "uri": value.uri, "hash": value.hash or None}
        kind = signatures.ARCHIVE
    return {signatures.KEY: kind, **{name: item for name, item in fields.items() if item is not None}}


def _untag_object(json: Mapping[str, Json], read_secret: SecretReader, place: str) -> Value:
    match json[signatures.KEY]:
        case signatures.SECRET:
            return read_secret(json, place)
        case signatures.OUTPUT:
            value = untag(json["value"], read_secret, place) if "value" in json else UNKNOWN
            return Secret(value) if json.get("secret") else value
        case signatures.RESOURCE:
            identity = _text(json, "id")
            return ResourceReference(
                urn=_text(json, "urn") or "",
                id=UNKNOWN if identity == "" or identity in signatures.UNKNOWNS else identity,
                package_version=_text(json, "packageVersion") or "",
            )
        case signatures.ASSET | signatures.ARCHIVE:
            return _untag_asset(json)
        case unknown:
            raise SandboxError(
                code="value-unreadable",
                place=place or "a property",
                problem=f"its signature {unknown} is none that is known here",
                fix="use an SDK of the release that this was built for",
            )


def _untag_asset(json: Mapping[str, Json]) -> Asset | Archive:
    path, uri, hash_ = (_text(json, name) for name in ("path", "uri", "hash"))
    if json[signatures.KEY] == signatures.ASSET:
        return Asset(text=_text(json, "text"), path=path, uri=uri, hash=hash_ or "")
    members = json.get("assets")
    assets: dict[str, Asset | Archive] | None = None
    if isinstance(members, dict):
        assets = {name: _untag_asset(member) for name, member in members.items() if isinstance(member, dict)}
    return Archive(assets=assets, path=path, uri=uri, hash=hash_ or "")


def _text(json: Mapping[str, Json], name: str) -> str | None:
    value = json.get(name)
    return value if isinstance(value, str) else None
