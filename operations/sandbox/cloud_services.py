"""Which cloud services a stack means by loopback addresses, and stand-ins for them there."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from pulumi_sandbox.documents import read_json
from pulumi_sandbox.services import LOOPBACK, OWN, Clouds, CloudService, Progress, named, port_of

from operations.folders import Folders

if TYPE_CHECKING:
    from components.pull_secret.settings import ClusterEntry, PullSecretsSection

HYPERFLEET: Final = CloudService("hyperfleet", "operations.sandbox.hyperfleet.app")

_CLUSTERS: Final = "/api/hyperfleet/v1/clusters"
_CONDITIONS: Final = ("Applied", "Available", "Health")


def start(
    folders: Folders, values: Mapping[str, str], pull_secrets: PullSecretsSection | None, progress: Progress
) -> None:
    """Start what a stack's configuration names on loopback, and let this process' children trust it.

    values: full key → text, as the CLI passes a configuration. pull_secrets: what it says of them.

    Raises:
        SandboxError: as `Clouds.start`.
    """
    wanted = ports(values, pull_secrets)
    clouds = stand_ins(folders)
    clouds.start(wanted, os.environ, progress)
    os.environ.update(clouds.trust())
    if pull_secrets is not None and HYPERFLEET in wanted:
        for id_, cluster in pull_secrets.clusters.items():
            _introduce(id_, cluster, wanted[HYPERFLEET])


def stand_ins(folders: Folders) -> Clouds:
    """Return the stand-ins of this project's sandbox, HyperFleet's among them."""
    return Clouds(folders.clouds, (*OWN, HYPERFLEET))


def ports(values: Mapping[str, str], pull_secrets: PullSecretsSection | None) -> dict[CloudService, int]:
    """Return the loopback ports a configuration names; an address elsewhere is somebody else's service."""
    hyperfleet = pull_secrets.hyperfleet if pull_secrets else None
    port = port_of(HYPERFLEET, hyperfleet.api_url) if hyperfleet else None
    return named(values) | ({HYPERFLEET: port} if port else {})


def _introduce(id_: str, cluster: ClusterEntry, port: int) -> None:
    """Let HyperFleet know a cluster of this generation, and what the stack has its adapters say of it."""
    path = f"{_CLUSTERS}/{quote(id_, safe='')}"
    known = _call(port, "GET", path)
    if known.get("deleted_time") or known.get("generation", 0) >= cluster.generation:
        return
    brought = {"name": cluster.name, "generation": cluster.generation}
    _call(port, "PUT", f"/sandbox/clusters/{quote(id_, safe='')}", brought)
    for adapter, state in cluster.adapters.items():
        _call(port, "PUT", f"{path}/statuses", _report(adapter, state, cluster.generation))


def _report(adapter: str, state: str, generation: int) -> dict[str, Any]:
    return {
        "adapter": adapter,
        "observed_generation": generation,
        "observed_time": datetime.now(UTC).isoformat(),
        "conditions": [{"type": kind, "status": state} for kind in _CONDITIONS],
    }


def _call(port: int, method: str, path: str, body: object = None) -> dict[str, Any]:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        return read_json(connection.getresponse().read() or "{}")
    finally:
        connection.close()
