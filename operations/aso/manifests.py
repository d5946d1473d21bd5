"""Files of Kubernetes YAML, folders of them, and standard input: the Secrets and ASO resources in them."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from components.aso_credentials.manifests import objects_in
from components.aso_credentials.nouns import Resource, SecretName, Secrets
from components.errors import CredfleetError
from operations.cli.inputs import STANDARD_INPUT, place_of


@dataclass(frozen=True, slots=True)
class Manifests:
    """What files hold, resources in their order; other objects are passed over."""

    resources: tuple[Resource, ...]
    secrets: Secrets


def read_manifests(files: Iterable[Path]) -> Manifests:
    """Read files, `-` for standard input, and the YAML files of folders.

    Raises CredfleetError, code `yaml-invalid`, with file and line or object.
    """
    resources: list[Resource] = []
    secrets: dict[SecretName, Mapping[str, bytes]] = {}
    for path in _each_file(files):
        for found in objects_in(_content(path), place_of(str(path))):
            if found.is_secret:
                secrets[found.secret_name()] = found.secret_data()
            elif found.is_resource:
                resources.append(found.resource())
    return Manifests(tuple(resources), secrets)


def _each_file(files: Iterable[Path]) -> Iterator[Path]:
    for path in files:
        if path.is_dir():
            yield from sorted(each for each in path.iterdir() if each.suffix in (".yaml", ".yml"))
        else:
            yield path


def _content(path: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(path) == STANDARD_INPUT else path.read_bytes()
    except OSError as error:
        raise CredfleetError(
            code="yaml-invalid",
            place=place_of(str(path)),
            cause=f"it cannot be read ({error.strerror})",
            mend="name files of Kubernetes YAML, a folder of them, or - for standard input",
        ) from None
