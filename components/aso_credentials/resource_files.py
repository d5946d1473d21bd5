"""The files of ASO resources that a stack declares, and what is read of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import Field

from components.aso_credentials import keys
from components.aso_credentials.manifests import Found, Manifest, objects_in
from components.aso_credentials.resolution import Resource
from components.config.field_types import ConfigModel, FilePath, ObjectName
from components.documents import render_path
from components.errors import CredfleetError, Problem
from components.naming import config_path

KEY: Final = "asoCredentials"


class Resources(ConfigModel):
    """A file of ASO resources, declared with the stack."""

    file: FilePath = Field(description="Kubernetes YAML, relative to Pulumi.yaml.")
    credential: ObjectName | None = Field(
        default=None, description="Entry of named; written as their annotation."
    )


@dataclass(frozen=True, slots=True)
class DeclaredResource:
    """A resource of a file: its place, entry and manifest, the Secret named for it, and what ASO sees.

    at: file, line and column of it.
    """

    place: str
    entry: str
    manifest: Manifest
    credential: str | None
    resource: Resource
    at: tuple[str, int, int] | None = None

    @property
    def name(self) -> str:
        """Its name, which nothing else has: NAMESPACE/KIND.GROUP/NAME."""
        group = str(self.manifest["apiVersion"]).partition("/")[0]
        return f"{self.resource.namespace}/{self.resource.kind}.{group}/{self.resource.name}"


def read_resources(
    entries: Mapping[str, Resources], root: Path, secrets: Mapping[str, str]
) -> tuple[Sequence[DeclaredResource], Sequence[Problem]]:
    """Read the files of all entries; return what is well formed, and what is wrong with the rest.

    secrets: entry of named → its Secret.
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
        yield Problem(
            place,
            f"{entry.file} cannot be read ({error.strerror}), so its resources would be missing",
            "give the path of a file of Kubernetes YAML, relative to Pulumi.yaml",
        )
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
        return Problem(
            place,
            "it is not a resource of Azure Service Operator, and nothing else is declared from this file",
            "leave it out; only kinds of *.azure.com belong here",
            found.at("apiVersion"),
        )
    try:
        resource, manifest = found.resource(), found.as_json()
    except CredfleetError as error:
        return Problem(place, error.problem, error.fix, error.at)
    at = found.at("metadata", "namespace")
    given = resource.annotations.get(keys.CREDENTIAL_FROM)
    if secret is None:
        return DeclaredResource(place, name, manifest, None, resource, at)
    if given not in (None, secret):
        return Problem(
            place,
            f"its annotation {keys.CREDENTIAL_FROM} and the credential of its entry name two Secrets",
            "keep one of the two",
            found.at("metadata", "annotations", keys.CREDENTIAL_FROM),
        )
    annotations = {**resource.annotations, keys.CREDENTIAL_FROM: secret}
    annotated = replace(resource, annotations=annotations)
    return DeclaredResource(place, name, manifest, secret, annotated, at)
