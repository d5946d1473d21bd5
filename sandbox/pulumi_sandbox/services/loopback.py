"""Which cloud services a stack's configuration names on loopback."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from pulumi_sandbox.services.cloud.registry import RESOURCE_MANAGER, SECRET_MANAGER, CloudService
from pulumi_sandbox.services.ports import LOOPBACK


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
