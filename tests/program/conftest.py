"""The whole program, on the real API server."""

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pulumi_sandbox.services.cloud.registry import SECRET_MANAGER
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN
from pulumi_sandbox.services.ports import LOOPBACK, free_ports

from operations.folders import Folders
from operations.sandbox.cloud_services import stand_ins
from tests.support.fleet_project import FleetProject

CREDENTIALS = {f"aws-{n}": f'{{"accessKeyID":"AKIA{n}","secretAccessKey":"sentinel-{n}"}}' for n in (1, 2, 3)}


def pool_of(*members: int) -> dict[str, Any]:
    """A pool with these members, each with its own credential."""
    return {
        "allowDestroy": True,
        "members": {
            f"aws-{n}": {"type": "aws", "accountId": f"{n:012}", "credentialsFrom": f"aws-{n}"}
            for n in members
        },
    }


def tenant_of(project: FleetProject, name: str) -> dict[str, Any]:
    """A tenant with one account."""
    return {"namespace": f"{project.pool}-{name}", "accounts": {"aws": {"type": "aws"}}}


@pytest.fixture
def project(tmp_path: Path, control_plane: ControlPlane) -> FleetProject:
    """Two tenants, a pool of three accounts, nothing deployed yet."""
    made = FleetProject.make(
        tmp_path / "project", control_plane.kubeconfig(ADMIN.name), f"t{secrets.token_hex(4)}"
    )
    made.configure(
        credentials=CREDENTIALS,
        tenants={name: tenant_of(made, name) for name in ("acme", "globex")},
        pool=pool_of(1, 2, 3),
    )
    return made


@contextmanager
def secret_manager_of(project: FleetProject) -> Generator[str]:
    """Let a project have a Secret Manager, and give its address."""
    services, (port,) = stand_ins(Folders(project.folder.resolve())), free_ports(1)
    services.start({SECRET_MANAGER: port})
    try:
        yield f"http://{LOOPBACK}:{port}/v1/"
    finally:
        services.stop()


@pytest.fixture
def google(project: FleetProject) -> Generator[str]:
    """Return the address of a Secret Manager."""
    with secret_manager_of(project) as address:
        yield address
