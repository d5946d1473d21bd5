"""The cloud services with emulators in the sandbox; projects can add their own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from pulumi_sandbox.protocol.values import Path, get
from pulumi_sandbox.services.ports import LOOPBACK


@dataclass(frozen=True, slots=True)
class CloudService:
    """A service; its name identifies its process, folder and log.

    module: contains `make_app(folder)`, which returns the emulator. address: full key and path inside of it
    where a configuration has the service's address. usual: the port if the configuration contains `:0`.
    scheme: the protocol of its clients.
    """

    name: str
    module: str
    address: Path
    usual: int
    scheme: str = "http"

    def __str__(self) -> str:
        """Return its name."""
        return self.name


SECRET_MANAGER: Final = CloudService(
    "secret-manager",
    "pulumi_sandbox.services.cloud.secret_manager.app",
    address=("gcp:secretManagerCustomEndpoint",),
    usual=18551,
)

RESOURCE_MANAGER: Final = CloudService(
    "resource-manager",
    "pulumi_sandbox.services.cloud.resource_manager.app",
    address=("azure-native:metadataHost",),
    usual=18552,
    scheme="https",
)
"""Its clients accept only HTTPS."""

OWN: Final = (SECRET_MANAGER, RESOURCE_MANAGER)


def named(values: Mapping[str, str], services: Sequence[CloudService] = OWN) -> dict[CloudService, int]:
    """Return the ports of the services that a configuration (full key → text) names on loopback.

    0 is a port that the configuration leaves open.
    """
    found = {service: _port(service, _address(service, values)) for service in services}
    return {service: port for service, port in found.items() if port is not None}


def addresses(values: Mapping[str, str], ports: Mapping[CloudService, int]) -> dict[Path, str]:
    """Return the complete addresses of services whose ports a configuration leaves open."""
    written = {service: _address(service, values) for service in ports}
    return {
        service.address: written[service].replace(":0", f":{port}", 1)
        for service, port in ports.items()
        if _port(service, written[service]) == 0
    }


def _address(service: CloudService, values: Mapping[str, str]) -> str:
    """Return a service's address in a configuration; empty if it cannot be read."""
    key, *inside = service.address
    text: Any = values.get(str(key), "")
    if inside:
        try:
            text = get(json.loads(text or "null"), tuple(inside))[1]
        except (ValueError, RecursionError):
            return ""
    return text if isinstance(text, str) else ""


def _port(service: CloudService, address: str) -> int | None:
    """Return the port of a loopback address; None for a service elsewhere.

    An invalid address is reported by the client that gets it.
    """
    try:
        parts = urlsplit(address if "://" in address else f"{service.scheme}://{address}")
        port = parts.port
    except ValueError:
        return None
    is_ours = parts.scheme == service.scheme and parts.hostname in (LOOPBACK, "localhost")
    return port if is_ours else None
