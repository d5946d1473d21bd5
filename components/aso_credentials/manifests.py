"""Parser of Secrets and ASO resources in Kubernetes YAML, including files that a stack declares.

Its messages never quote a line of the YAML.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic import Field

from components.aso_credentials import keys
from components.aso_credentials.resolution import Owner, Resource
from components.config.field_types import ConfigModel, FilePath, ObjectName, optional
from components.documents import Document, Step, Unreadable, read_all, render_path
from components.errors import CredfleetError, Problem
from components.naming import config_path, is_namespace, is_object_name
from components.projection.model import SecretRef

Manifest: TypeAlias = Mapping[str, Any]

_GROUP: Final = ".azure.com"
_DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Found:
    """Object and its place. `document`, `path`: the document it was read from, and the path in it."""

    place: str
    manifest: Manifest
    document: Document | None = None
    path: tuple[Step, ...] = ()

    @property
    def is_secret(self) -> bool:
        """Whether it is a Secret."""
        return (self.manifest.get("apiVersion"), self.manifest.get("kind")) == ("v1", "Secret")

    @property
    def is_resource(self) -> bool:
        """Whether it is a resource of ASO, in any group of azure.com."""
        group, _, version = str(self.manifest.get("apiVersion")).partition("/")
        return bool(version) and group.endswith(_GROUP)

    def at(self, *steps: Step) -> tuple[str, int, int] | None:
        """Return the position of a part of it in its file."""
        return None if self.document is None else self.document.at((*self.path, *steps))

    def as_json(self) -> Manifest:
        """Return it if JSON can represent it; raises CredfleetError, code `yaml-invalid`."""
        if unfit := _unfit(self.manifest):
            problem = "YAML reads one of its values as a date, and Kubernetes has no dates"
            raise self._invalid(problem, "write it in quotes", *unfit)
        return self.manifest

    def secret_name(self) -> SecretRef:
        """Return namespace and name of the Secret; raises CredfleetError, code `yaml-invalid`."""
        metadata = self._metadata()
        return SecretRef(_namespace(metadata), str(metadata["name"]))

    def secret_data(self) -> Mapping[str, bytes]:
        """Return the data of the Secret as Kubernetes would store it.

        Raises CredfleetError, code `yaml-invalid`.
        """
        data = {key: self._bytes(key, text) for key, text in self._texts("data").items()}
        return data | {key: text.encode() for key, text in self._texts("stringData").items()}

    def resource(self) -> Resource:
        """Return the ASO resource in its manifest; raises CredfleetError, code `yaml-invalid`."""
        if not isinstance(self.manifest.get("kind"), str):
            raise self._invalid("it has no kind, so it is unknown what it is", "add its kind", "kind")
        metadata, owner = self._metadata(), self._mapping("spec", "owner")
        return Resource(
            namespace=_namespace(metadata),
            kind=str(self.manifest.get("kind")),
            name=str(metadata["name"]),
            annotations=self._texts("metadata", "annotations"),
            owner=Owner(owner.get("name"), owner.get("kind"), owner.get("armId")) if owner else None,
            misplaced=self._texts("metadata", "annotation"),
            deleting=bool(metadata.get("deletionTimestamp")),
            writes=self._writes(),
        )

    def _writes(self) -> Mapping[str, frozenset[str]]:
        """Return the keys of the Secrets that ASO writes for it; expressions without key might write any."""
        given = self._mapping("spec", "operatorSpec")
        secrets = self._mapping("spec", "operatorSpec", "secrets")
        found: dict[str, frozenset[str]] = {}
        for target in (*secrets.values(), *(given.get("secretExpressions") or ())):
            if not isinstance(target, dict) or not target.get("name"):
                raise self._invalid(
                    "a target under operatorSpec has no name of a Secret",
                    "give name and key",
                    "spec",
                    "operatorSpec",
                )
            keys_of = {str(target["key"])} if target.get("key") else {*keys.REQUIRED}
            name = str(target["name"])
            found[name] = found.get(name, frozenset()) | keys_of
        return found

    def _metadata(self) -> Mapping[str, Any]:
        metadata = self._mapping("metadata")
        if not metadata.get("name"):
            raise self._invalid(
                "it has no metadata.name, so nothing can refer to it", "name it", "metadata", "name"
            )
        for key, fits in (("name", is_object_name), ("namespace", is_namespace)):
            given = metadata.get(key)
            if given is not None and not (isinstance(given, str) and fits(given)):
                raise self._invalid(
                    f"its metadata.{key} is no {key} that Kubernetes takes",
                    "write a-z, 0-9 and, inside, '-'; digits, true and false in quotes",
                    "metadata",
                    key,
                )
        return metadata

    def _mapping(self, *keys: str) -> Mapping[str, Any]:
        value: Any = self.manifest
        for depth, key in enumerate(keys, start=1):
            value = value.get(key)
            if value is None:
                return {}
            if not isinstance(value, dict):
                fix = "write it as a map: {key: value}"
                raise self._invalid(f"its {key} is not a map", fix, *keys[:depth])
        return value

    def _texts(self, *keys: str) -> Mapping[str, str]:
        entries = self._mapping(*keys)
        for key, value in entries.items():
            if not isinstance(value, str):
                raise self._invalid(
                    f"a value under {keys[-1]} is not a string, since YAML parsed a number or a boolean",
                    "write it in quotes",
                    *keys,
                    key,
                )
        return entries

    def _bytes(self, key: str, text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:
            raise self._invalid(
                "a value under data is not base64", "encode it, or move it to stringData", "data", key
            ) from None

    def _invalid(self, problem: str, fix: str, *steps: Step) -> CredfleetError:
        return CredfleetError(
            code="yaml-invalid", place=self.place, problem=problem, fix=fix, at=self.at(*steps)
        )


def objects_in(content: bytes | str, name: str, file: str | None = None) -> Iterator[Found]:
    """Yield each object of a YAML string, including those in lists.

    `name`: of the string, for places; `file`: clickable form. Raises CredfleetError, code `yaml-invalid`.
    """
    try:
        for number, document in enumerate(read_all(content, file or name), start=1):
            if document.data is not None:
                yield from _flattened(Found(f"{name}, document {number}", document.data, document))
    except Unreadable as error:
        raise CredfleetError(
            code="yaml-invalid",
            place=f"{name}:{error.mark.line}",
            problem=error.problem,
            fix=error.fix,
            at=error.at,
        ) from None


def _unfit(value: Any) -> tuple[Step, ...]:
    """Return the path to a value that JSON cannot represent."""
    for step, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict | list):
            if path := _unfit(item):
                return (step, *path)
        elif not isinstance(item, str | int | float | None):
            return (step,)
    return ()


def _namespace(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("namespace") or _DEFAULT_NAMESPACE)


def _flattened(found: Found) -> Iterator[Found]:
    document: object = found.manifest
    if not isinstance(document, dict):
        raise CredfleetError(
            code="yaml-invalid",
            place=found.place,
            problem="it is not a Kubernetes object",
            fix="give it apiVersion, kind and metadata",
            at=found.at(),
        )
    kind, items = str(document.get("kind")), document.get("items")
    if kind.endswith("List") and isinstance(items, list):
        # items of a typed list can omit apiVersion and kind
        known = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
        for number, item in enumerate(items):
            whole = {**known, **item} if isinstance(item, dict) and known["kind"] else item
            place = f"{found.place}, item {number + 1}"
            yield from _flattened(Found(place, whole, found.document, (*found.path, "items", number)))
    else:
        yield found


KEY: Final = "asoCredentials"


class Resources(ConfigModel):
    """A file of ASO resources, declared with the stack."""

    file: FilePath = Field(description="Kubernetes YAML, relative to Pulumi.yaml.")
    credential: ObjectName | None = optional("Entry of named; written as their annotation.")


@dataclass(frozen=True, slots=True)
class DeclaredResource:
    """Resource of a file: place, entry, manifest, credential Secret, and the model that ASO sees.

    `at`: its file, line and column.
    """

    place: str
    entry: str
    manifest: Manifest
    credential: str | None
    resource: Resource
    at: tuple[str, int, int] | None = None

    @property
    def name(self) -> str:
        """Unique name: NAMESPACE/KIND.GROUP/NAME."""
        group = str(self.manifest["apiVersion"]).partition("/")[0]
        return f"{self.resource.namespace}/{self.resource.kind}.{group}/{self.resource.name}"


def read_resources(
    entries: Mapping[str, Resources], root: Path, secrets: Mapping[str, str]
) -> tuple[Sequence[DeclaredResource], Sequence[Problem]]:
    """Read the files of all entries; return the valid resources, and the problems of the others.

    `secrets`: entry of `named` → its Secret.
    """
    read = [
        one
        for name, entry in entries.items()
        for one in _read_file(name, entry, root, secrets.get(entry.credential or "", entry.credential))
    ]
    found = [one for one in read if isinstance(one, DeclaredResource)]
    return found, [one for one in read if isinstance(one, Problem)]


def _read_file(
    name: str, entry: Resources, root: Path, secret: str | None
) -> Iterator[DeclaredResource | Problem]:
    place = config_path(KEY, "resources", name, "file")
    try:
        content = (root / entry.file).read_bytes()
    except OSError as error:
        problem = f"{entry.file} cannot be read ({error.strerror}), so its resources would be missing"
        yield Problem(place, problem, "give the path of a file of Kubernetes YAML, relative to Pulumi.yaml")
        return
    try:
        objects = [*objects_in(content, entry.file, render_path(root / entry.file))]
        if not objects:
            yield Problem(
                place, f"{entry.file} holds no resource", "write its resources, or remove the entry"
            )
        for found in objects:
            yield _read(name, secret, f"{place} ({found.place})", found)
    except CredfleetError as error:
        yield Problem(f"{place} ({error.place})", error.problem, error.fix, error.at)


def _read(name: str, secret: str | None, place: str, found: Found) -> DeclaredResource | Problem:
    if not found.is_resource:
        problem = (
            "it is not a resource of Azure Service Operator, and nothing else is declared from this file"
        )
        fix = "leave it out; only kinds of *.azure.com belong here"
        return Problem(place, problem, fix, found.at("apiVersion"))
    try:
        resource, manifest = found.resource(), found.as_json()
    except CredfleetError as error:
        return Problem(place, error.problem, error.fix, error.at)
    at = found.at("metadata", "namespace")
    given = resource.annotations.get(keys.CREDENTIAL_FROM)
    if secret is None:
        return DeclaredResource(place, name, manifest, None, resource, at)
    if given not in (None, secret):
        problem = f"its annotation {keys.CREDENTIAL_FROM} and the credential of its entry name two Secrets"
        fix = "keep one of the two"
        return Problem(place, problem, fix, found.at("metadata", "annotations", keys.CREDENTIAL_FROM))
    annotations = {**resource.annotations, keys.CREDENTIAL_FROM: secret}
    annotated = replace(resource, annotations=annotations)
    return DeclaredResource(place, name, manifest, secret, annotated, at)
