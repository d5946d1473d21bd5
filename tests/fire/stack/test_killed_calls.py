"""An update that is killed at one of its calls is continued by the next one.

The call is one to the API server, or in `make fire` to the stand-in of Secret Manager or of HyperFleet. It is
made and its answer lost, or it never arrives; the state is refreshed before the next update, or not. The end
is that of an update that nobody killed; before, an entry of Secret Manager whose creation was killed is
deleted, as the next update asks for.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import ANY

import pytest
import requests
from pulumi_sandbox.services.cloud.registry import SECRET_MANAGER
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.ports import free_ports
from pulumi_sandbox.services.users import ADMIN

from components.secret_manager import SecretManagerTarget, open_secret_manager
from operations.folders import Folders
from operations.sandbox.cloud_services import HYPERFLEET, stand_ins
from tests.program.accounts import accounts, owned
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.program.test_pull_secrets import PROJECT, READER, RUNNER, cluster, documented, entry, payload
from tests.support import killed_up
from tests.support.fault_proxy import Fault, FaultProxy, before, nothing, running
from tests.support.fleet_project import STACK, FleetProject
from tests.support.proving import PROVES, counted, tried

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

KILLS: Final = counted(1, 40)
NOBODYS: Final = "it exists and this stack has not made it"
"""What is said of an entry of Secret Manager whose creation was killed: nothing tells whose it is."""

MEMBERS: Final = {"aws-1", "aws-2", "aws-3"}


@dataclass
class Death:
    """A plan for proxies: at a call to any of them, whoever makes it is killed."""

    at: int
    fault: Fault
    pid: int = 0
    calls: Iterator[int] = field(default_factory=count, init=False)

    def __call__(self, _number: int, _method: str) -> Fault:
        if next(self.calls) != self.at:
            return Fault.NONE
        os.kill(self.pid, signal.SIGKILL)
        return self.fault


@dataclass(frozen=True)
class Clouds:
    """The stand-ins, each behind a proxy; where none run, a stack has no pull secrets."""

    google: FaultProxy
    hyperfleet: FaultProxy

    def configuration(self, cluster_id: str) -> dict[str, Any]:
        """Bring a cluster, and return what the stack's configuration says of it."""
        known = {"name": "east", "generation": 1}
        requests.put(f"{self.hyperfleet.url}/sandbox/clusters/{cluster_id}", json=known, timeout=10)
        return {
            "gcp:project": PROJECT,
            "gcp:secretManagerCustomEndpoint": f"{self.google.url}/v1/",
            "gcp:accessToken": RUNNER,
            "credfleet:pullSecrets": {
                "namespaceTemplate": "{id}",
                "hyperfleet": {"apiUrl": self.hyperfleet.url},
                "reader": {"serviceAccount": READER},
                "clusters": {cluster_id: cluster("east")},
            },
        }

    def enabled(self, cluster_id: str) -> int:
        """Count the versions of a cluster's pull secret that may be read."""
        manager = open_secret_manager(SecretManagerTarget(f"{self.google.url}/v1/", "any"))
        return sum(each.state.value == "ENABLED" for each in manager.versions(entry(cluster_id)))

    def delete(self, cluster_id: str) -> None:
        """Delete the entry of a cluster's pull secret, as somebody does who is told that it is nobody's."""
        url = f"{self.google.url}/v1/{entry(cluster_id)}"
        requests.delete(url, headers={"Authorization": "Bearer any"}, timeout=10).raise_for_status()


@pytest.fixture
def clouds(tmp_path: Path) -> Generator[Clouds | None]:
    if not PROVES:
        yield None
        return
    services = stand_ins(Folders(tmp_path))
    google, hyperfleet = free_ports(2)
    services.start({SECRET_MANAGER: google, HYPERFLEET: hyperfleet})
    try:
        with before(google) as manager, before(hyperfleet) as fleet:
            allowed = {"member": RUNNER, "permissions": [*documented()]}
            requests.put(f"{manager.url}/sandbox/callers", json=allowed, timeout=10).raise_for_status()
            yield Clouds(manager, fleet)
    finally:
        services.stop()


def made(folder: Path, kubeconfig: Path, clouds: Clouds | None, cluster_id: str) -> FleetProject:
    project = FleetProject.make(folder, kubeconfig, f"t{secrets.token_hex(4)}")
    tenants = {name: tenant_of(project, name) for name in ("acme", "globex")}
    pull_secret = {"east": payload("sentinel-1")} if clouds else {}
    further = clouds.configuration(cluster_id) if clouds else {}
    project.configure(
        credentials={**CREDENTIALS, **pull_secret}, tenants=tenants, pool=pool_of(1, 2, 3), further=further
    )
    return project


def killed(project: FleetProject, death: Death | None = None) -> tuple[int, str]:
    """Update in a process of its own; return its exit code and what it said."""
    backend, said = project.folder / ".sandbox" / "backend", project.folder / "said.txt"
    arguments = (killed_up.__file__, str(project.folder), STACK, str(backend), "0")
    with (
        said.open("w", encoding="utf-8") as to,
        subprocess.Popen(
            [sys.executable, "-P", *arguments],
            cwd=project.folder,
            env=project.environment,
            stdout=to,
            stderr=to,
        ) as update,
    ):
        if death is not None:
            death.pid = update.pid
    return update.returncode, said.read_text(encoding="utf-8")


def declared(project: FleetProject, cluster_id: str) -> list[str]:
    """Return the resources of the state, without the part of their names that is this one's own."""
    (path,) = project.folder.glob(f".sandbox/backend/**/{STACK}.json")
    latest = json.loads(path.read_text())["checkpoint"]["latest"]
    assert not latest.get("pending_operations")
    unique = project.pool.removesuffix("-pool")
    return sorted(each["urn"].replace(unique, "").replace(cluster_id, "") for each in latest["resources"])


def judged(project: FleetProject, admin: DynamicClient, clouds: Clouds | None, cluster_id: str) -> list[str]:
    project.sandbox("preview", "--expect-no-changes").quiet()
    assert set(accounts(admin, project)) == MEMBERS
    assert set(owned(admin, project)) == {"acme", "globex"}
    records = admin.resources.get(api_version="v1", kind="ConfigMap").get(
        namespace=project.pool, label_selector="credfleet.io/pool-record"
    )
    assert sorted(each.data.phase for each in records.items) == ["Bound", "Bound"]
    if clouds:
        assert clouds.enabled(cluster_id) == 1
        secret = admin.resources.get(api_version="v1", kind="Secret").get(
            name=f"{cluster_id}-pull-secret", namespace=cluster_id
        )
        assert base64.b64decode(secret.data[".dockerconfigjson"]).decode() == payload("sentinel-1")
    return declared(project, cluster_id)


def test_an_update_killed_at_a_call_ends_as_one_that_nobody_killed(
    admin: DynamicClient, control_plane: ControlPlane, clouds: Clouds | None, tmp_path: Path
) -> None:
    kubeconfig = control_plane.kubeconfig(ADMIN.name)
    with running(kubeconfig, tmp_path) as proxy:
        ids = (f"cls-{secrets.token_hex(6)}" for _ in count())
        name = next(ids)
        whole = made(tmp_path / "whole", proxy.kubeconfig, clouds, name)
        of_clouds = (clouds.google, clouds.hyperfleet) if clouds else ()
        for each in of_clouds:
            each.restart_plan(nothing)
        assert killed(whole) == (0, ANY)
        called = [(proxy,), of_clouds]
        calls = [sum(each.counts().total() for each in proxies) for proxies in called]
        end = judged(whole, admin, clouds, name)
        for kill in range(KILLS):
            name = next(ids)
            project = made(tmp_path / str(kill), proxy.kubeconfig, clouds, name)
            fault = (Fault.LOST, Fault.REFUSED)[kill % 2]
            where = int(bool(clouds) and kill % 4 > 1)
            death = Death(calls[where] * (2 * kill + 1) // (2 * KILLS), fault)
            for each in called[where]:
                each.restart_plan(death)
            code, said = killed(project, death)
            assert code in (-signal.SIGKILL, 0), said
            for each in called[where]:
                each.restart_plan(nothing)
            if kill % 3 == 2:
                project.sandbox("refresh").quiet()
            ended = project.up()
            if clouds and NOBODYS in ended.out:
                clouds.delete(name)
                ended = project.up()
            ended.quiet()
            what = ("the API server", "stand-ins")[where]
            told = f"killed at call {death.at} of {calls[where]} to {what}, {fault}"
            assert judged(project, admin, clouds, name) == end, told
            tried(f"kills of an update at a call to {what}")
