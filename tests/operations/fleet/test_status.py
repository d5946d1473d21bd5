"""`credfleet fleet status`: what states and files tell of all stacks, without a key and without a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from operations.fleet.status import fleet_status
from operations.stack.yaml_file import load_yaml
from sandbox.tests.support import cli_folder
from tests.support.recorded_stacks import RECORDED, ROOT, exported_of

STACK: Final = "staging"


def _deployment() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(exported_of(STACK))
    return record["deployment"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a project whose stack is deployed, and one stack that never was."""
    for name in ("Pulumi.yaml", "stacks"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / f"Pulumi.{STACK}.yaml").write_bytes((RECORDED / STACK / f"Pulumi.{STACK}.yaml").read_bytes())
    (tmp_path / "Pulumi.never.yaml").write_text("config: {}\n")
    for name, text in cli_folder.environment(cli_folder.furnish(tmp_path / "bin"), tmp_path).items():
        monkeypatch.setenv(name, text)
    monkeypatch.chdir(tmp_path)
    _deployed(tmp_path, _deployment())
    return tmp_path


def _deployed(project: Path, deployment: dict[str, Any], stack: str = STACK) -> None:
    folder = project / "state" / ".pulumi" / "stacks" / "credfleet"
    folder.mkdir(parents=True, exist_ok=True)
    (project / "state" / ".pulumi" / "meta.yaml").write_text("version: 1\n")
    state = folder / f"{stack}.json"
    checkpoint = {"stack": f"organization/credfleet/{stack}", "latest": deployment}
    state.write_text(json.dumps({"version": 3, "checkpoint": checkpoint}))


def test_each_stack_is_told_with_what_it_has_and_one_that_was_never_deployed_with_nothing(
    project: Path,
) -> None:
    deployment = _deployment()
    fleet = next(each for each in deployment["resources"] if each["type"] == "credfleet:index:Fleet")
    claims = [each for each in deployment["resources"] if each["type"].endswith(":AccountClaim")]
    found = fleet_status()
    told = {each["stack"]: each for each in found.document["stacks"]}
    assert told[STACK] == {
        "stack": STACK,
        "tenants": len(fleet["inputs"]["tenantNames"]),
        "accounts": len(claims),
        "waiting": 0,
        "files": "as deployed",
        "updated": deployment["manifest"]["time"],
        "failures": (),
    }
    assert told["never"]["files"] == "never deployed"
    assert told["never"]["updated"] is None
    assert found.exit_code == 0


def test_stack_whose_last_update_failed_is_a_failure(project: Path) -> None:
    history = project / "state" / ".pulumi" / "history" / "credfleet" / STACK
    history.mkdir(parents=True)
    failed = {"kind": "update", "startTime": 1, "endTime": 2, "result": "failed", "config": {}, "message": ""}
    (history / f"{STACK}-1.history.json").write_text(json.dumps(failed))
    found = fleet_status()
    told = {each["stack"]: (each["files"], each["failures"]) for each in found.document["stacks"]}
    assert (told[STACK], found.exit_code) == (("deployed in part", ("the last update failed",)), 1)


def test_files_that_changed_and_what_an_update_left_behind_are_told(project: Path) -> None:
    deployment = _deployment()
    begun = {"resource": deployment["resources"][-1], "type": "creating"}
    _deployed(project, {**deployment, "pending_operations": [begun]})
    file = project / f"Pulumi.{STACK}.yaml"
    document: dict[str, Any] = load_yaml(file)
    document["config"]["credfleet:tenants"]["newcomer"] = {"namespace": "tenant-newcomer"}
    file.write_text(yaml.safe_dump(document))
    found = fleet_status()
    told = {each["stack"]: each for each in found.document["stacks"]}
    assert (told[STACK]["files"], found.exit_code) == ("changed since", 1)
    cleared = f"`pulumi up --stack {STACK}`, then `pulumi refresh --clear-pending-creates --stack {STACK}`"
    assert told[STACK]["failures"] == (f"1 call begun and never ended, to clear by {cleared}",)
    file.unlink()
    assert {each["stack"]: each["files"] for each in fleet_status().document["stacks"]}[STACK] == "no file"
