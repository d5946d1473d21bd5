"""One state, and two machines with another folder, another path of the kubeconfig and other settings each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pulumi_sandbox import pulumi_cli

from operations.sandbox.control_plane import OWNER
from tests.support.fleet_project import PASSPHRASE, STACK, FleetProject

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

PROVIDER = "pulumi:providers:kubernetes"
OF_ONE = {"GOOGLE_PROJECT": "of-one", "PULUMI_K8S_SUPPRESS_HELM_HOOK_WARNINGS": "true", "USER": "one"}
OF_OTHER = {"GOOGLE_PROJECT": "of-other", "PULUMI_K8S_SUPPRESS_HELM_HOOK_WARNINGS": "false", "USER": "other"}


@dataclass(frozen=True)
class Machine:
    """A copy of the project with a home of its own, on the state of both."""

    folder: Path
    variables: Mapping[str, str]

    @classmethod
    def of(cls, project: FleetProject, folder: Path, state: Path, variables: Mapping[str, str]) -> Machine:
        copy = FleetProject.make(folder, folder / "my.kubeconfig", "unused")
        shutil.copy(project.kubeconfig, copy.kubeconfig)
        shutil.copy(project.folder / f"Pulumi.{STACK}.yaml", folder)
        home = folder / "home"
        cli = pulumi_cli.find(OWNER, lambda _step: None)
        pulumi_cli.furnish(home)
        own = {
            "HOME": str(home),
            "KUBECONFIG": str(copy.kubeconfig),
            "PATH": os.pathsep.join(
                (str(cli.program.parent), str(Path(sys.executable).parent), os.environ["PATH"])
            ),
            "PULUMI_BACKEND_URL": state.as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_HOME": str(home),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }
        return cls(folder, {**os.environ, **own, **variables})

    def pulumi(self, *words: str, given: str | None = None) -> str:
        """Run the CLI on the stack, and return what it prints; it has to succeed."""
        done = subprocess.run(
            ["pulumi", *words, "--stack", STACK, "--non-interactive"],
            cwd=self.folder,
            env=dict(self.variables),
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def exported(self) -> dict[str, Any]:
        return json.loads(self.pulumi("stack", "export"))


@pytest.fixture
def machines(project: FleetProject, tmp_path: Path, admin: DynamicClient) -> tuple[Machine, Machine]:
    file = project.folder / f"Pulumi.{STACK}.yaml"
    said = json.loads(file.read_text(encoding="utf-8"))
    uid = admin.resources.get(api_version="v1", kind="Namespace").get(name="kube-system").metadata.uid
    said["config"]["credfleet:cluster"]["uid"] = uid
    file.write_text(json.dumps(said), encoding="utf-8")
    state = tmp_path / "state"
    state.mkdir()
    one = Machine.of(project, tmp_path / "one", state, OF_ONE)
    other = Machine.of(project, tmp_path / "other", state, OF_OTHER)
    one.pulumi("stack", "init")
    one.pulumi("up", "--yes", "--skip-preview")
    return one, other


@pytest.mark.life
def test_a_state_that_moves_to_another_machine_has_nothing_to_change(
    machines: tuple[Machine, Machine],
) -> None:
    for machine in machines:
        machine.pulumi("preview", "--expect-no-changes")
        machine.pulumi("refresh", "--preview-only", "--expect-no-changes")

    said = json.dumps(machines[0].exported())
    assert not [word for word in (str(machines[0].folder), "of-one", "127.0.0.1") if word in said]


@pytest.mark.life
def test_a_path_that_an_earlier_version_left_is_taken_out_once_and_nothing_is_replaced(
    machines: tuple[Machine, Machine],
) -> None:
    one, other = machines
    state = one.exported()
    for resource in state["deployment"]["resources"]:
        if resource["type"] == PROVIDER:
            resource["inputs"]["kubeconfig"] = one.variables["KUBECONFIG"]
            resource["outputs"]["kubeconfig"] = one.variables["KUBECONFIG"]
    one.pulumi("stack", "import", given=json.dumps(state))

    foreseen = json.loads(other.pulumi("preview", "--json"))
    other.pulumi("up", "--yes", "--skip-preview")

    steps = [(each["op"], each["newState"]["type"]) for each in foreseen["steps"]]
    assert [each for each in steps if each[0] not in ("same", "read")] == [("update", PROVIDER)] * 2
    one.pulumi("preview", "--expect-no-changes")
