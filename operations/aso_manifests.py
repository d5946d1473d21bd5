"""Reads Secrets and ASO resources from Kubernetes YAML. What it says of a fault never holds a line of it."""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from components.aso_credentials.nouns import Owner, Resource, SecretName, Secrets
from components.errors import CredfleetError

STDIN: Final = Path("-")
_GROUP: Final = ".azure.com"
_DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Manifests:
    """What files hold, resources in their order; other objects are passed over."""

    resources: tuple[Resource, ...]
    secrets: Secrets


def read_manifests(files: Iterable[Path]) -> Manifests:
    """Read files, `-` for standard input, and the YAML files of folders.

    Raises CredfleetError: `yaml-invalid` with file and line or object; `file-unreadable`.
    """
    resources: list[Resource] = []
    secrets: dict[SecretName, Mapping[str, bytes]] = {}
    for path in _each_file(files):
        for place, manifest in _objects(path):
            body = _Body(place, manifest)
            group, _, version = str(manifest.get("apiVersion")).partition("/")
            if (group, manifest.get("kind")) == ("v1", "Secret"):
                secrets[body.secret_name()] = secret_data(manifest, place)
            elif version and group.endswith(_GROUP):
                resources.append(body.resource())
    return Manifests(tuple(resources), secrets)


def secret_data(secret: Mapping[str, Any], place: str) -> Mapping[str, bytes]:
    """Give the data of a Secret as Kubernetes would keep it; raises CredfleetError, code `yaml-invalid`."""
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
    manifest: Mapping[str, Any]

    def secret_name(self) -> SecretName:
        metadata = self.metadata()
        return SecretName(_namespace(metadata), str(metadata["name"]))

    def resource(self) -> Resource:
        metadata = self.metadata()
        return Resource(
            namespace=_namespace(metadata),
            kind=str(self.manifest.get("kind")),
            name=str(metadata["name"]),
            annotations=_Body(self.place, metadata).texts("annotations"),
            owner=self.owner(),
            misplaced=_Body(self.place, metadata).texts("annotation"),
            deleting=bool(metadata.get("deletionTimestamp")),
        )

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


def _each_file(files: Iterable[Path]) -> Iterator[Path]:
    for path in files:
        if path.is_dir():
            yield from sorted(each for each in path.iterdir() if each.suffix in (".yaml", ".yml"))
        else:
            yield path


def _objects(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give each object of a file with its place, those in lists too."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    name = "standard input" if path == STDIN else str(path)
    try:
        for number, document in enumerate(YAML(typ="safe").load_all(_text(path)), start=1):
            if document is not None:
                yield from _flattened(document, f"{name}, document {number}")
    except MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise _invalid(f"{name}{line}", "it is not valid YAML", "correct this line") from None
    except YAMLError:
        raise _invalid(
            name, "it is not valid YAML", "correct it; YAML is text without control characters"
        ) from None


def _text(path: Path) -> str:
    try:
        return sys.stdin.read() if path == STDIN else path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CredfleetError(
            code="file-unreadable",
            place=str(path),
            cause=f"this file cannot be read as text ({type(error).__name__})",
            mend="name files of Kubernetes YAML, a folder of them, or - for standard input",
        ) from None


def _flattened(document: object, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(document, dict):
        raise _invalid(place, "it is no Kubernetes object", "give it apiVersion, kind and metadata")
    items = document.get("items")
    if str(document.get("kind")).endswith("List") and isinstance(items, list):
        for number, item in enumerate(items, start=1):
            yield from _flattened(item, f"{place}, item {number}")
    else:
        yield place, document


def _invalid(place: str, cause: str, mend: str) -> CredfleetError:
    return CredfleetError(code="yaml-invalid", place=place, cause=cause, mend=mend)
