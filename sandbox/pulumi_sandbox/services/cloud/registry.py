"""The cloud services the sandbox has stand-ins for; a project adds its own by describing them alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from pulumi_sandbox.services.ports import LOOPBACK


@dataclass(frozen=True, slots=True)
class CloudService:
    """A service by the word that starts its process and names its folder and log.

    module: where `make_app(folder)` is, which returns the stand-in. scheme: what its clients speak.
    """

    name: str
    module: str
    scheme: str = "http"

    def __str__(self) -> str:
        """Return its name."""
        return self.name


SECRET_MANAGER: Final = CloudService("secret-manager", "pulumi_sandbox.services.cloud.secret_manager.app")

RESOURCE_MANAGER: Final = CloudService(
    "resource-manager", "pulumi_sandbox.services.cloud.resource_manager.app", scheme="https"
)
"""Its clients take nothing but HTTPS."""

OWN: Final = (SECRET_MANAGER, RESOURCE_MANAGER)


def named(values: Mapping[str, str]) -> dict[CloudService, int]:
    """Return the ports of the services that a configuration (full key → text) names on loopback."""
    addresses = {
        SECRET_MANAGER: values.get("gcp:secretManagerCustomEndpoint"),
        RESOURCE_MANAGER: f"https://{values.get('azure-native:metadataHost', '')}",
    }
    found = {service: port_of(service, address) for service, address in addresses.items()}
    return {service: port for service, port in found.items() if port}


def port_of(service: CloudService, address: str | None) -> int | None:
    """Return the port of a loopback address; None for somebody else's service.

    What is no address at all is told by the client that gets it.
    """
    try:
        parts = urlsplit(address or "")
        port = parts.port
    except ValueError:
        return None
    is_ours = parts.scheme == service.scheme and parts.hostname in (LOOPBACK, "localhost")
    return port if is_ours else None
