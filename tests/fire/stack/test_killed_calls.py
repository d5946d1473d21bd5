"""An update that is killed at one of its calls to the API server is continued by the next one.

The call is made and its answer lost, or it never arrives; the state is refreshed before the next update, or
not. The end is that of an update that nobody killed.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest.mock import ANY

from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.users import ADMIN

from tests.program.accounts import accounts, owned
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support import killed_up
from tests.support.fault_proxy import Fault, nothing, running
from tests.support.fleet_project import STACK, FleetProject
from tests.support.proving import counted, tried

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

KILLS: Final = counted(1, 40)
MEMBERS: Final = {"aws-1", "aws-2", "aws-3"}


@dataclass
class Death:
    """A plan for the proxy: at a call, whoever makes it is killed."""

    at: int
    fault: Fault
    pid: int = 0
    calls: int = field(default=0, init=False)

    def __call__(self, number: int, _method: str) -> Fault:
        self.calls += 1
        if number != self.at:
            return Fault.NONE
        os.kill(self.pid, signal.SIGKILL)
        return self.fault


def made(folder: Path, kubeconfig: Path) -> FleetProject:
    project = FleetProject.make(folder, kubeconfig, f"t{secrets.token_hex(4)}")
    tenants = {name: tenant_of(project, name) for name in ("acme", "globex")}
    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool_of(1, 2, 3))
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


def declared(project: FleetProject) -> list[str]:
    """Return the resources of the state, without the namespaces' own part of their names."""
    (path,) = project.folder.glob(f".sandbox/backend/**/{STACK}.json")
    latest = json.loads(path.read_text())["checkpoint"]["latest"]
    assert not latest.get("pending_operations")
    unique = project.pool.removesuffix("-pool")
    return sorted(each["urn"].replace(unique, "") for each in latest["resources"])


def judged(project: FleetProject, admin: DynamicClient) -> list[str]:
    project.sandbox("preview", "--expect-no-changes").quiet()
    assert set(accounts(admin, project)) == MEMBERS
    assert set(owned(admin, project)) == {"acme", "globex"}
    records = admin.resources.get(api_version="v1", kind="ConfigMap").get(
        namespace=project.pool, label_selector="credfleet.io/pool-record"
    )
    assert sorted(each.data.phase for each in records.items) == ["Bound", "Bound"]
    return declared(project)


def test_an_update_killed_at_a_call_ends_as_one_that_nobody_killed(
    admin: DynamicClient, control_plane: ControlPlane, tmp_path: Path
) -> None:
    kubeconfig = control_plane.kubeconfig(ADMIN.name)
    with running(kubeconfig, tmp_path) as proxy:
        whole = made(tmp_path / "whole", proxy.kubeconfig)
        assert killed(whole) == (0, ANY)
        calls = proxy.counts().total()
        end = judged(whole, admin)
        for kill in range(KILLS):
            project = made(tmp_path / str(kill), proxy.kubeconfig)
            fault = (Fault.LOST, Fault.REFUSED)[kill % 2]
            death = Death(calls * (2 * kill + 1) // (2 * KILLS), fault)
            proxy.restart_plan(death)
            code, said = killed(project, death)
            assert code in (-signal.SIGKILL, 0), said
            proxy.restart_plan(nothing)
            if kill % 3 == 2:
                project.sandbox("refresh").quiet()
            project.up().quiet()
            assert judged(project, admin) == end, f"killed at call {death.at} of {calls}, {fault}"
            tried("kills of an update at a call to the API server")
