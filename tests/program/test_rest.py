"""Accounts that rest after they became free: from the stack file to the claim that waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.program.accounts import owned
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import FleetProject

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


def configure(project: FleetProject, rest_for: str, *names: str) -> None:
    tenants = {name: tenant_of(project, name) for name in names}
    project.configure(credentials=CREDENTIALS, tenants=tenants, pool={**pool_of(1), "restFor": rest_for})


@pytest.mark.life
def test_cleaned_account_rests_before_the_next_tenant_gets_it(
    project: FleetProject, admin: DynamicClient
) -> None:
    for tenants in (["acme"], []):
        configure(project, "24h", *tenants)
        project.up().quiet()
    project.run("pool", "clean", "-n", project.pool, "--command", "aws=true", "--yes").quiet()

    configure(project, "24h", "globex")
    assert "1 resting, the first until" in project.preview().quiet().said
    up = project.sandbox_up("--skip-preview", "--output", "json").quiet(9).json
    assert "1 resting, the first until" in up["skipped"][0]["reason"]
    (account,) = project.run("pool", "status", "-n", project.pool, "--output", "json").json["accounts"]
    assert account["state"] == "resting"
    assert account["reason"].startswith("rests until 20")
    claim = ("--type", "aws", "--tenant", "hooli", "-n", project.pool)
    assert account["reason"] in project.run("pool", "explain", *claim).said
    assert "1 resting, the first until" in project.run("pool", "claim", *claim, "--yes").quiet(3).said

    configure(project, "0s", "globex")
    assert "expected to get the only free aws account" in project.preview().quiet().said
    project.up().quiet()
    assert owned(admin, project).keys() == {"globex"}
    assert "Nothing changed" in project.sandbox_up("--expect-no-changes").quiet().out
