"""Files of Kubernetes YAML, folders of them, and standard input: the Secrets and ASO resources in them."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from components.aso_credentials.manifests import (
    is_resource,
    is_secret,
    objects_in,
    resource_of,
    secret_data,
    secret_name,
)
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
        for place, manifest in objects_in(_text(path), place_of(str(path))):
            if is_secret(manifest):
                secrets[secret_name(manifest, place)] = secret_data(manifest, place)
            elif is_resource(manifest):
                resources.append(resource_of(manifest, place))
    return Manifests(tuple(resources), secrets)


def _each_file(files: Iterable[Path]) -> Iterator[Path]:
    for path in files:
        if path.is_dir():
            yield from sorted(each for each in path.iterdir() if each.suffix in (".yaml", ".yml"))
        else:
            yield path


def _text(path: Path) -> str:
    try:
        content = sys.stdin.buffer.read() if str(path) == STANDARD_INPUT else path.read_bytes()
        return content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CredfleetError(
            code="yaml-invalid",
            place=place_of(str(path)),
            cause=f"it cannot be read as text ({type(error).__name__})",
            mend="name files of Kubernetes YAML, a folder of them, or - for standard input",
        ) from None
