"""What was lost outside of the stack and is created again: it is never taken for new."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from components.account_pool.core.keys import CREATED_AGAIN, CUT, POOL_STATE
from tests.program.accounts import accounts, owned
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import FleetProject
from tests.support.stacks import ROOT

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


def states(admin: DynamicClient, project: FleetProject) -> dict[str, str | None]:
    return {name: meta["labels"].get(POOL_STATE) for name, meta in accounts(admin, project).items()}


def holding(admin: DynamicClient, project: FleetProject) -> dict[str, str]:
    return {tenant: account for tenant, (account, _) in owned(admin, project).items()}


def lose_namespace(admin: DynamicClient, project: FleetProject) -> None:
    """Delete the pool's namespace, and see that it is gone."""
    namespaces = admin.resources.get(api_version="v1", kind="Namespace")
    version = namespaces.get(name=project.pool).metadata.resourceVersion
    namespaces.delete(project.pool)
    events = namespaces.watch(name=project.pool, resource_version=version, timeout=60)
    assert any(event["type"] == "DELETED" for event in events)


@pytest.mark.life
def test_account_in_use_whose_secret_was_deleted_stays_its_tenants(
    project: FleetProject, admin: DynamicClient
) -> None:
    project.up().quiet()
    before = holding(admin, project)
    secrets = admin.resources.get(api_version="v1", kind="Secret")
    secrets.delete(before["acme"], project.pool)
    tenants = {name: tenant_of(project, name) for name in ("acme", "globex", "initech", "hooli")}
    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool_of(1, 2, 3))
    preview = project.preview("--refresh").quiet()
    assert f"{before['acme']} (acme) stay with their tenants" in preview.said
    project.up("--refresh", "--policy-pack", str(ROOT / "policies")).quiet()
    after = holding(admin, project)
    assert {tenant: after[tenant] for tenant in before} == before
    assert len({*after.values()}) == len(after) == 3
    packed = ("--expect-no-changes", "--policy-pack", str(ROOT / "policies"))
    assert "unchanged" in project.up(*packed).quiet().out


@pytest.mark.life
def test_quarantine_by_command_outlives_the_secret_of_an_account_in_use(
    project: FleetProject, admin: DynamicClient
) -> None:
    project.up().quiet()
    account = holding(admin, project)["acme"]
    leaked = ("quarantine", account, "--cut", "--reason", "leaked", "-n", project.pool, "--yes")
    project.run("pool", *leaked).quiet()
    admin.resources.get(api_version="v1", kind="Secret").delete(account, project.pool)
    project.up("--refresh").quiet()
    assert (states(admin, project)[account], holding(admin, project)["acme"]) == ("quarantined", account)
    assert accounts(admin, project)[account]["annotations"][CUT] == "true"
    assert "unchanged" in project.up("--expect-no-changes").quiet().out
    project.run("pool", "unquarantine", account, "-n", project.pool, "--yes").quiet()
    project.up("--refresh").quiet()
    assert states(admin, project)[account] is None


@pytest.mark.life
def test_accounts_of_a_deleted_namespace_are_not_given_to_others(
    project: FleetProject, admin: DynamicClient
) -> None:
    project.up().quiet()
    before = holding(admin, project)
    (leaked,) = {"aws-1", "aws-2", "aws-3"} - {*before.values()}
    project.run("pool", "quarantine", leaked, "--reason", "leaked", "-n", project.pool, "--yes").quiet()
    lose_namespace(admin, project)
    for words in (("status",), ("claim", "-t", "aws", "--tenant", "hooli", "--yes")):
        told = project.run("pool", *words, "-n", project.pool).quiet(1).said
        assert f"namespace {project.pool}: it does not exist" in told
        assert "pulumi refresh" in told
    project.refresh().quiet()
    tenants = {name: tenant_of(project, name) for name in ("acme", "globex", "initech")}
    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool_of(1, 2, 3))
    assert f"pool {project.pool}: the Secrets of 3 accounts are gone" in project.preview().quiet().said
    project.up().quiet()
    assert holding(admin, project) == before
    assert states(admin, project) == {**dict.fromkeys(before.values()), leaked: "dirty"}
    assert CREATED_AGAIN in accounts(admin, project)[leaked]["annotations"]
    left = project.run("pool", "clean", "-n", project.pool, "--command", "aws=true", "--yes")
    assert f"credfleet pool mark-dirty {leaked}" in left.said
    assert states(admin, project)[leaked] == "dirty"
    unused = ("mark-dirty", leaked, "--reason", "nobody uses it", "-n", project.pool, "--yes")
    assert f"account {leaked} is dirty now" in project.run("pool", *unused).quiet().said
    project.run("pool", "clean", "-n", project.pool, "--command", "aws=true", "--yes").quiet()
    assert states(admin, project)[leaked] is None


@pytest.mark.life
def test_stack_of_the_same_name_in_another_backend_neither_claims_nor_releases(
    project: FleetProject, admin: DynamicClient, tmp_path: Path
) -> None:
    project.configure(credentials=CREDENTIALS, pool=pool_of(1, 2, 3))
    project.up().quiet()
    stacks: list[FleetProject] = []
    for backend in ("one", "other"):
        (tmp_path / backend).mkdir()
        stack = project.consumer(tmp_path / backend / "same")
        tenant = {**tenant_of(project, "acme"), "namespace": f"{project.pool}-{backend}"}
        pool = {"from": {"namespace": project.pool}}
        stack.configure(tenants={"acme": tenant}, pool=pool)
        stacks.append(stack)
    first, second = stacks
    first.up().quiet()
    before = accounts(admin, project)
    assert "another Pulumi state" in second.preview().quiet(1).said
    refused = second.up().quiet(1)
    assert "pulumi config set credfleet:heldAs test --stack test" in refused.said
    second.destroy().quiet()
    assert accounts(admin, project) == before
    first.up("--expect-no-changes").quiet()
    second.typed("pulumi config set credfleet:heldAs test --stack test").quiet()
    second.up().quiet()
    first.destroy().quiet()
    assert holding(admin, project).keys() == {"acme"}
    assert states(admin, project) == dict.fromkeys(before)
