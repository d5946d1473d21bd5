"""A review of what the Pulumi CLI really writes, from a pool that is really looked at."""

import json
import secrets
from pathlib import Path

import pytest
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN

from tests.support.fleet_project import FleetProject

SENTINEL = "sentinel-of-a-credential"


@pytest.fixture
def project(tmp_path: Path, control_plane: ControlPlane) -> FleetProject:
    """One account in the pool, two tenants that want one, nothing deployed yet."""
    kubeconfig = control_plane.kubeconfig(ADMIN.name)
    made = FleetProject.make(tmp_path / "project", kubeconfig, f"t{secrets.token_hex(4)}")
    made.configure(
        credentials={"aws-1": json.dumps({"accessKeyID": "AKIA1", "secretAccessKey": SENTINEL})},
        tenants={
            name: {"namespace": f"{made.pool}-{name}", "accounts": {"aws": {"type": "aws"}}}
            for name in ("acme", "globex")
        },
        pool={"members": {"aws-1": {"type": "aws", "accountId": "1" * 12, "credentialsFrom": "aws-1"}}},
    )
    return made


@pytest.mark.life
def test_a_review_has_the_forecast_and_the_policies_of_the_preview_it_is_of(project: FleetProject) -> None:
    words = "pulumi preview --json --policy-pack policies --stack test --non-interactive"
    preview = project.typed(f"PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true {words}")
    (project.folder / "preview.json").write_text(preview.out)
    review = project.run("preview-report", "preview.json", "--format", "json").json
    assert review["failed"] is False
    assert review["policies"] == []
    assert review["poolSeen"] is True
    assert [(each["tenant"], each["doomed"]) for each in review["claims"]] == [
        ("acme", False),
        ("globex", True),
    ]
    assert review["freeAccounts"] == [{"accounts": "aws", "now": 1, "expected": 0}]
    assert {each["tenant"] for each in review["changes"]} == {"acme", "globex", None}
    text = project.run("preview-report", "preview.json").out
    assert "**Claims that can expect no account: 1.**" in text
    assert SENTINEL not in text + json.dumps(review)
