"""A real API server for tests: one control plane per test run, a namespace per test."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pulumi_sandbox.locks import exclusive
from pulumi_sandbox.services import processes
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

KEEPER = Path(__file__).with_name("cluster_keeper.py")
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def control_plane(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The control plane of this test run, started by whichever worker asks first.

    All tests share it: none may stop, kill or restart a part of it, nor leave something cluster-wide there
    under a name another test could use.
    """
    base = tmp_path_factory.getbasetemp()
    is_worker = hasattr(pytestconfig, "workerinput")
    shared, run = (base.parent, os.getppid()) if is_worker else (base, os.getpid())
    folder, ready = shared / "control-plane", shared / "control-plane.ready"
    with exclusive(shared / "control-plane.lock"):
        if not ready.exists():
            keep_while_runs(run, folder, ready)
    plane = ControlPlane.find(folder)
    assert plane is not None
    return plane


@pytest.fixture(scope="session")
def api_of(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Callable[[str], DynamicClient]]:
    """Return a client by the name of its user: `admin`, `provisioner` or `janitor`."""
    discovered = tmp_path_factory.mktemp("discovery") / "cache.json"
    with ExitStack() as clients:

        @cache
        def client_of(user: str) -> DynamicClient:
            return clients.enter_context(client_for(control_plane.kubeconfig(user), discovered))

        yield client_of


@pytest.fixture(scope="session")
def admin(api_of: Callable[[str], DynamicClient]) -> DynamicClient:
    """A client that may do everything."""
    return api_of(ADMIN.name)


@pytest.fixture
def namespace(admin: DynamicClient) -> str:
    """A fresh namespace with a name of its own. It stays: all data are throw-away."""
    name = f"test-{secrets.token_hex(5)}"
    admin.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": name}})
    return name


@contextmanager
def client_for(kubeconfig: Path, discovered: Path) -> Generator[DynamicClient]:
    """Talk to the cluster of a kubeconfig file; the file `discovered` remembers what its API serves."""
    from kubernetes import client, config
    from kubernetes.dynamic import DynamicClient

    configuration = client.Configuration()
    config.load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)
    with client.ApiClient(configuration) as connection:
        yield DynamicClient(connection, cache_file=str(discovered))


def keep_while_runs(run: int, folder: Path, ready: Path) -> None:
    """Start the keeper, which outlives this worker, and wait until it says ready or ends."""
    log = folder.with_name("control-plane-keeper.log")
    keeper = processes.spawn(
        [sys.executable, str(KEEPER), str(folder), str(ready), str(run)],
        log,
        environment=os.environ,
    )
    while not ready.exists():
        if processes.first_ended([keeper], 0.05):
            pytest.exit(f"no control plane for the tests: {log.read_text()}")
