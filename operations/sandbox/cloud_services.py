"""The cloud services that a stack addresses on loopback, and their emulators.

If the stack's file leaves a port open (`:0`), the sandbox of this folder chooses one and keeps it; programs
and providers get the address from an environment variable.
"""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from pulumi_sandbox.services.cloud.registry import OWN, CloudService, named
from pulumi_sandbox.services.cloud.registry import addresses as open_addresses
from pulumi_sandbox.services.clouds import Clouds
from pulumi_sandbox.services.ports import LOOPBACK
from pulumi_sandbox.services.progress import Progress

from components.documents import read_json
from components.open_ports import VARIABLES
from operations.folders import Folders
from operations.sandbox import hyperfleet

if TYPE_CHECKING:
    from components.pull_secret.settings import ClusterEntry, PullSecretsSection

HYPERFLEET: Final = CloudService(
    "hyperfleet",
    f"{hyperfleet.__name__}.app",
    address=("credfleet:pullSecrets", "hyperfleet", "apiUrl"),
    usual=18553,
)
SERVICES: Final = (*OWN, HYPERFLEET)

_CLUSTERS: Final = "/api/hyperfleet/v1/clusters"
_CONDITIONS: Final = ("Applied", "Available", "Health")


def start(
    folders: Folders, values: Mapping[str, str], pull_secrets: PullSecretsSection | None, progress: Progress
) -> None:
    """Start the services that a configuration names on loopback, and make child processes trust them.

    values: full key → text, as the CLI passes a configuration. pull_secrets: its section about them. Raises
    SandboxError as `Clouds.start`.
    """
    clouds = stand_ins(folders)
    ports = clouds.start(named(values, SERVICES), os.environ, progress)
    os.environ.update(clouds.trust())
    if pull_secrets is not None and HYPERFLEET in ports:
        for id_, cluster in pull_secrets.clusters.items():
            _introduce(id_, cluster, ports[HYPERFLEET])


def stand_ins(folders: Folders) -> Clouds:
    """Return the emulators of this project's sandbox, including HyperFleet's."""
    return Clouds(folders.clouds, SERVICES)


def addresses(folders: Folders, values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with the address of each service whose port a stack's file leaves open.

    Raises SandboxError as `Clouds.started`.
    """
    chosen = {each.service: each.port for each in stand_ins(folders).started()}
    return {
        VARIABLES[".".join(map(str, path))]: address
        for path, address in open_addresses(values, chosen).items()
    }


def _introduce(id_: str, cluster: ClusterEntry, port: int) -> None:
    """Register a cluster of this generation in HyperFleet, with the adapter reports in the stack."""
    path = f"{_CLUSTERS}/{quote(id_, safe='')}"
    known = _call(port, "GET", path)
    if known.get("deleted_time") or known.get("generation", 0) >= cluster.generation:
        return
    brought = {"name": cluster.name, "generation": cluster.generation}
    _call(port, "PUT", f"/sandbox/clusters/{quote(id_, safe='')}", brought)
    for adapter, state in cluster.adapters.items():
        report = {
            "adapter": adapter,
            "observed_generation": cluster.generation,
            "observed_time": datetime.now(UTC).isoformat(),
            "conditions": [{"type": kind, "status": state} for kind in _CONDITIONS],
        }
        _call(port, "PUT", f"{path}/statuses", report)


def _call(port: int, method: str, path: str, body: object = None) -> dict[str, Any]:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        return read_json(connection.getresponse().read() or "{}")
    finally:
        connection.close()
