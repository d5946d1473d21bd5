"""Stacks of a fleet side by side: what they would do, what they did, and one that fails beside them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.program.conftest import CREDENTIALS, pool_of
from tests.program.test_consumer_stacks import consumer
from tests.support import pulumi_shell
from tests.support.fleet_project import STACK, FleetProject

OTHER, BROKEN = f"{STACK}-2", "broken"


def told(fleet: FleetProject, code: int, *words: str) -> dict[str, Any]:
    """Run a command on all stacks of a fleet; return what it tells of each."""
    cluster = () if words == ("status",) else ("--kubeconfig", str(fleet.kubeconfig))
    run = fleet.run("fleet", *words, *cluster, "--output", "json").quiet(code)
    return {each["stack"]: each for each in run.json["stacks"]}


@pytest.mark.life
def test_a_stack_that_fails_and_one_whose_claim_is_skipped_stop_no_other(
    project: FleetProject, tmp_path: Path
) -> None:
    project.configure(credentials=CREDENTIALS, pool=pool_of(1, 2))
    project.up().quiet()
    fleet = consumer(project, tmp_path / "fleet", ["acme", "globex", "hooli"])
    own = fleet.folder / f"Pulumi.{STACK}.yaml"
    for name in (OTHER, BROKEN):
        shutil.copy(own, fleet.folder / f"Pulumi.{name}.yaml")
    nowhere = own.read_text().replace(f'"{project.pool}"', f'"{project.pool}-nowhere"')
    (fleet.folder / f"Pulumi.{BROKEN}.yaml").write_text(nowhere)
    fleets = {"one": {"stacks": {BROKEN: {}, STACK: {"since": "acme"}, OTHER: {"since": "hooli"}}}}
    (fleet.folder / "stacks.yaml").write_text(json.dumps({"fleets": fleets}))
    state = pulumi_shell.state_of(fleet.folder, STACK)
    before = state.read_bytes()

    seen = told(fleet, 0, "preview")
    assert seen[STACK]["changes"]["create"] > 4
    assert seen[BROKEN]["outcome"] == seen[OTHER]["outcome"] == "new"
    assert state.read_bytes() == before

    done = told(fleet, 1, "up")
    assert done[STACK]["changes"] == seen[STACK]["changes"]
    assert done[BROKEN]["code"] == 1
    assert "has no pool" in done[BROKEN]["why"]
    assert (done[OTHER]["outcome"], done[OTHER]["code"]) == ("succeeded", 9)
    assert "no free aws account is left" in str(done[OTHER]["skipped"])
    again = told(fleet, 9, "up", STACK, OTHER)
    assert [each["outcome"] for each in again.values()] == ["nothing changed"] * 2

    foreseen = told(fleet, 9, "preview", OTHER)[OTHER]
    assert {*foreseen["skipped"]} == {*again[OTHER]["skipped"]} - {"copy hooli/aws"} == {"claim hooli/aws"}

    standing = told(fleet, 0, "status")
    assert {name: (each["tenants"], each["accounts"]) for name, each in standing.items()} == {
        STACK: (2, 2),
        OTHER: (1, 0),
        BROKEN: (0, 0),
    }
