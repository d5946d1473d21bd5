"""Accounts given to nobody, from the stack file to the claim: they rest, their keys end, they are held."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
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


@pytest.mark.life
def test_account_whose_key_ends_soon_is_told_and_stays_with_its_tenant_alone(
    project: FleetProject, admin: DynamicClient
) -> None:
    pool, soon = pool_of(1, 2, 3), f"{datetime.now(UTC) + timedelta(days=3):%Y-%m-%d}"
    project.configure(credentials=CREDENTIALS, tenants={"acme": tenant_of(project, "acme")}, pool=pool_of(1))
    project.up().quiet()
    ends = {"aws-1": soon, "aws-2": soon, "aws-3": "2999-01-31"}
    for name, end in ends.items():
        pool["members"][name]["expiresAt"] = end
    tenants = {name: tenant_of(project, name) for name in ("acme", "globex", "hooli")}
    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool)
    for _ in range(2):
        told = " ".join(project.preview().quiet().said.split())
        assert "2 accounts whose key ends soon, not given out:" in told
        assert f"aws-1 ({soon}T00:00:00Z, of acme)" in told
        assert "1 whose key ends soon" in told
        project.up().quiet()
    assert {tenant: name for tenant, (name, _) in owned(admin, project).items()} == {
        "acme": "aws-1",
        "globex": "aws-3",
    }
    status = project.run("pool", "status", "-n", project.pool, "--output", "json").json["accounts"]
    assert {each["secretName"]: (each["state"], each["reason"]) for each in status} == {
        "aws-1": ("claimed", f"its key ends at {soon}T00:00:00Z"),
        "aws-2": ("expiring", f"its key ends at {soon}T00:00:00Z"),
        "aws-3": ("claimed", None),
    }
    metrics = project.run("pool", "metrics", "-n", project.pool).quiet().out
    assert metrics.count("credfleet_pool_key_end_timestamp_seconds{") == 3
    refused = project.run("pool", "claim", "-t", "aws", "--tenant", "initech", "-n", project.pool, "--yes")
    assert "1 whose key ends soon" in refused.quiet(3).said

    pool["members"]["aws-2"]["expiresAt"] = "2999-01-31T00:00:00+02:00"
    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool)
    assert "expected to get the only free aws account" in project.preview().quiet().said


@pytest.mark.life
def test_hold_that_the_stack_declares_outlives_the_settings_of_its_pool(
    project: FleetProject, admin: DynamicClient
) -> None:
    tenants, why = {"acme": tenant_of(project, "acme")}, "a quota, ticket 4711"
    held = {**pool_of(1), "hold": [{"type": "aws", "reason": why}]}
    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=held)
    assert f"aws is held, and the pool gives no new accounts of it: {why}" in project.preview().quiet().said
    project.up().quiet()
    settings = admin.resources.get(api_version="v1", kind="ConfigMap")
    settings.delete("credfleet-pool", project.pool)
    project.up("--refresh").quiet()
    assert owned(admin, project) == {}
    resumed = project.run("pool", "resume", "--type", "aws", "-n", project.pool, "--yes").quiet(5)
    assert "take it out of accountPool.hold in the pool's stack" in resumed.said
    assert why in project.run("pool", "status", "-n", project.pool).quiet().out

    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool_of(1))
    project.up().quiet()
    assert owned(admin, project).keys() == {"acme"}
