"""The genuine host of dynamic providers, on the tests' control plane."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from sandbox.tests.support.clouds import Served, secret_manager
from tests.support.dynamic_host import Host, dynamic_host
from tests.support.hyperfleet import served_hyperfleet
from tests.support.members import Members
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane


@pytest.fixture(scope="module")
def host(control_plane: ControlPlane) -> Generator[Host]:
    with dynamic_host({"cluster": {"kubeconfig": str(control_plane.kubeconfig("admin"))}}) as host:
        yield host


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    with secret_manager(tmp_path_factory.mktemp("secret-manager")) as running:
        yield running


@pytest.fixture(scope="module")
def hyperfleet(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    with served_hyperfleet(tmp_path_factory.mktemp("hyperfleet")) as running:
        yield running


@pytest.fixture
def api(admin: DynamicClient) -> Any:
    """Secrets, as an administrator of the cluster has them."""
    return admin.resources.get(api_version="v1", kind="Secret")


@pytest.fixture
def secrets(admin: DynamicClient, namespace: str) -> Secrets:
    return Secrets(admin, namespace)


@pytest.fixture
def members(admin: DynamicClient, namespace: str) -> Members:
    """A pool without members as yet."""
    return Members(admin, namespace)
