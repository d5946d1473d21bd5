"""Reads Secrets and ASO resources from Kubernetes YAML. What it says of a fault never holds a line of it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from components.aso_credentials import keys
from components.aso_credentials.nouns import Owner, Resource, SecretName
from components.errors import CredfleetError

Manifest: TypeAlias = Mapping[str, Any]

_GROUP: Final = ".azure.com"
_DEFAULT_NAMESPACE: Final = "default"


def objects_in(text: str, name: str) -> Iterator[tuple[str, Manifest]]:
    """Yield each object of YAML text with its place, those in lists too.

    name: of the text, for places. Raises CredfleetError, code `yaml-invalid`.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        for number, document in enumerate(YAML(typ="safe").load_all(text), start=1):
            if document is not None:
                yield from _flattened(document, f"{name}, document {number}")
    except MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise _invalid(f"{name}{line}", "it is not valid YAML", "correct this line") from None
    except YAMLError:
        raise _invalid(
            name, "it is not valid YAML", "correct it; YAML is text without control characters"
        ) from None


def is_secret(manifest: Manifest) -> bool:
    """Whether an object is a Secret."""
    return (manifest.get("apiVersion"), manifest.get("kind")) == ("v1", "Secret")


def is_resource(manifest: Manifest) -> bool:
    """Whether an object is a resource of ASO: of any group of azure.com."""
    group, _, version = str(manifest.get("apiVersion")).partition("/")
    return bool(version) and group.endswith(_GROUP)


def resource_of(manifest: Manifest, place: str) -> Resource:
    """Return a resource of ASO as its manifest says it; raises CredfleetError, code `yaml-invalid`."""
    return _Body(place, manifest).resource()


def as_json(manifest: Manifest, place: str) -> Manifest:
    """Return an object as JSON has it, every key a text; raises CredfleetError, code `yaml-invalid`."""
    try:
        return json.loads(json.dumps(manifest, allow_nan=False))
    except (TypeError, ValueError):
        cause = "a value of it is a date, bytes or no number to YAML, and Kubernetes knows none of these"
        raise _invalid(place, cause, "write it in quotes") from None


def secret_name(secret: Manifest, place: str) -> SecretName:
    """Return where a Secret is; raises CredfleetError, code `yaml-invalid`."""
    return _Body(place, secret).secret_name()


def secret_data(secret: Manifest, place: str) -> Mapping[str, bytes]:
    """Return the data of a Secret as Kubernetes would keep it; raises CredfleetError, code `yaml-invalid`."""
    body = _Body(place, secret)
    try:
        data = {key: base64.b64decode(text, validate=True) for key, text in body.texts("data").items()}
    except (binascii.Error, ValueError):
        raise body.invalid(
            "a value under data is not base64", "encode it, or move it to stringData"
        ) from None
    return data | {key: text.encode() for key, text in body.texts("stringData").items()}


@dataclass(frozen=True, slots=True)
class _Body:
    """A manifest and where it stands."""

    place: str
    manifest: Manifest

    def secret_name(self) -> SecretName:
        metadata = self.metadata()
        return SecretName(_namespace(metadata), str(metadata["name"]))

    def resource(self) -> Resource:
        if not isinstance(self.manifest.get("kind"), str):
            raise self.invalid("it has no kind, so nobody knows what it is", "add its kind")
        metadata = self.metadata()
        return Resource(
            namespace=_namespace(metadata),
            kind=str(self.manifest.get("kind")),
            name=str(metadata["name"]),
            annotations=_Body(self.place, metadata).texts("annotations"),
            owner=self.owner(),
            misplaced=_Body(self.place, metadata).texts("annotation"),
            deleting=bool(metadata.get("deletionTimestamp")),
            writes=self.writes(),
        )

    def writes(self) -> Mapping[str, frozenset[str]]:
        """Return the keys of each Secret that ASO writes of it; an expression without a key may be any id."""
        given = self.mapping(self.mapping(self.manifest, "spec"), "operatorSpec")
        targets = [*self.mapping(given, "secrets").values(), *(given.get("secretExpressions") or ())]
        found: dict[str, frozenset[str]] = {}
        for target in targets:
            if not isinstance(target, dict) or not target.get("name"):
                raise self.invalid("a target under operatorSpec has no name of a Secret", "give name and key")
            keys_of = {str(target["key"])} if target.get("key") else {*keys.REQUIRED}
            name = str(target["name"])
            found[name] = found.get(name, frozenset()) | keys_of
        return found

    def owner(self) -> Owner | None:
        owner = self.mapping(self.mapping(self.manifest, "spec"), "owner")
        return Owner(owner.get("name"), owner.get("kind"), owner.get("armId")) if owner else None

    def metadata(self) -> Mapping[str, Any]:
        metadata = self.mapping(self.manifest, "metadata")
        if not metadata.get("name"):
            raise self.invalid("it has no metadata.name, so nothing can refer to it", "name it")
        return metadata

    def mapping(self, within: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        value = within.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.invalid(f"its {key} is no map", "write it as a map: {key: value}")
        return value or {}

    def texts(self, key: str) -> Mapping[str, str]:
        entries = self.mapping(self.manifest, key)
        if not all(isinstance(value, str) for value in entries.values()):
            raise self.invalid(
                f"a value under {key} is no text: YAML takes digits, true and false for something else",
                "write it in quotes",
            )
        return entries

    def invalid(self, cause: str, mend: str) -> CredfleetError:
        return _invalid(self.place, cause, mend)


def _namespace(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("namespace") or _DEFAULT_NAMESPACE)


def _flattened(document: object, place: str) -> Iterator[tuple[str, Manifest]]:
    if not isinstance(document, dict):
        raise _invalid(place, "it is no Kubernetes object", "give it apiVersion, kind and metadata")
    kind, items = str(document.get("kind")), document.get("items")
    if kind.endswith("List") and isinstance(items, list):
        # the items of a list of one kind need not repeat it
        known = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
        for number, item in enumerate(items, start=1):
            whole = {**known, **item} if isinstance(item, dict) and known["kind"] else item
            yield from _flattened(whole, f"{place}, item {number}")
    else:
        yield place, document


def _invalid(place: str, cause: str, mend: str) -> CredfleetError:
    return CredfleetError(code="yaml-invalid", place=place, cause=cause, mend=mend)
