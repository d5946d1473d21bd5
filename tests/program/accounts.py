"""What the API server says of a pool's accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.fleet_project import FleetProject

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


def accounts(admin: DynamicClient, project: FleetProject) -> dict[str, dict[str, Any]]:
    """Return Secret → its metadata."""
    secrets = admin.resources.get(api_version="v1", kind="Secret").get(namespace=project.pool).items
    return {secret.metadata.name: secret.metadata.to_dict() for secret in secrets}


def owned(admin: DynamicClient, project: FleetProject) -> dict[str, tuple[str, str]]:
    """Return tenant → (Secret, uid) of every claimed account; two accounts of one tenant would fail."""
    owners: dict[str, tuple[str, str]] = {}
    for name, metadata in accounts(admin, project).items():
        tenant = metadata["labels"].get("tenant-name")
        if tenant is not None:
            assert tenant not in owners
            owners[tenant] = (name, metadata["uid"])
    return owners
