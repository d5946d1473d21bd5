"""A member whose Secret the API server refuses: its trouble alone, and nothing in use goes because of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from tests.program.accounts import accounts, owned
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import FleetProject
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


def configure(project: FleetProject, *tenants: str, further: int = 3) -> None:
    """Three accounts, the credential of the first outside of the stack; tenants with a copy of theirs."""
    wanted: dict[str, Any] = {name: tenant_of(project, name) for name in tenants}
    for tenant in wanted.values():
        tenant["accounts"]["aws"]["deliverTo"] = "copy"
    pool: dict[str, Any] = {**pool_of(*range(1, further + 1)), "allowDestroy": False}
    pool["members"]["aws-1"]["credentialsFrom"] = {"secret": f"{project.pool}-outside/first/json"}
    project.configure(credentials={**CREDENTIALS, "aws-4": CREDENTIALS["aws-3"]}, tenants=wanted, pool=pool)


def copied(admin: DynamicClient, project: FleetProject, *tenants: str) -> Mapping[str, bool]:
    return {name: "copy" in Secrets(admin, f"{project.pool}-{name}").names() for name in tenants}


def resources(project: FleetProject) -> Mapping[str, Mapping[str, Any]]:
    """The stack's resources by their name."""
    state = project.pulumi("stack", "export").quiet().json["deployment"]
    return {each["urn"].rpartition("::")[2]: each for each in state["resources"]}


def needed(project: FleetProject, name: str) -> set[str]:
    return {urn.rpartition("::")[2] for urn in resources(project)[name]["dependencies"]}


@pytest.fixture
def outside(project: FleetProject, admin: DynamicClient) -> Secrets:
    """Where the credential of the first account is to be."""
    namespace = f"{project.pool}-outside"
    admin.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": namespace}})
    return Secrets(admin, namespace)


@pytest.mark.life
def test_member_that_fails_stops_no_claim_and_the_pool_stays_guarded(
    project: FleetProject, admin: DynamicClient, outside: Secrets
) -> None:
    configure(project, "acme", "globex")

    first = project.up("--continue-on-error")

    assert first.code
    assert "account-pool-aws-1-elsewhere" in first.out
    assert "account-pool-aws-1-elsewhere" in project.preview().quiet(1).out
    state = "pulumi stack export --show-secrets --stack test"
    record = project.typed(f"{state} | credfleet review export --stack test --state -")
    assert record.quiet().json["stack"] == "test"
    served = owned(admin, project)
    assert {tenant: name for tenant, (name, _) in served.items()}.keys() == {"acme", "globex"}
    assert copied(admin, project, "acme", "globex") == {"acme": True, "globex": True}
    assert needed(project, "acme") == {"account-pool", "account-pool-settings"}
    assert {"account-pool-aws-2", "account-pool-aws-3"} <= needed(project, "account-pool-seal")

    shared = {"credfleet.io/shared-with": project.pool}
    outside.put("first", {"json": CREDENTIALS["aws-1"]}, annotations=shared)
    configure(project, "acme", "globex", "initech")
    project.up().quiet()
    outside.change("first", "json", "no credential any more")
    configure(project, "acme", "globex", "initech", "late", further=4)

    later = project.up("--continue-on-error")

    assert later.code
    assert "account-pool-aws-1-elsewhere" in later.out
    assert owned(admin, project).items() >= {*served.items()}
    assert owned(admin, project)["late"][0] == "aws-4"
    for _ in range(3):
        assert project.destroy().code
        assert accounts(admin, project).keys() == {f"aws-{n}" for n in range(1, 5)}


@pytest.mark.life
def test_state_whose_claims_depend_on_every_member_is_current_and_a_member_is_deleted_with_none_of_them(
    project: FleetProject, admin: DynamicClient
) -> None:
    project.up().quiet()
    served, former = owned(admin, project), project.pulumi("stack", "export").quiet().json
    members = [each for each in former["deployment"]["resources"] if "AccountPool$" in each["urn"]]
    for each in former["deployment"]["resources"]:
        if each["type"] == "credfleet:index:TenantAccounts":
            each["dependencies"] = [member["urn"] for member in members]
    (project.folder / "former.json").write_text(json.dumps(former), encoding="utf-8")
    project.pulumi("stack", "import", "--file", "former.json").quiet()

    project.pulumi("up", "--yes", "--expect-no-changes").quiet()
    one = next(each["urn"] for each in members if each["urn"].endswith("::account-pool-aws-1"))
    deleted = project.destroy("--target", one, "--target-dependents")

    assert needed(project, "acme") == {"account-pool", "account-pool-settings"}
    assert owned(admin, project) == served
    assert f"pool {project.pool} is in use, nothing of it was deleted" in deleted.out
    assert accounts(admin, project).keys() == {"aws-1", "aws-2", "aws-3"}
