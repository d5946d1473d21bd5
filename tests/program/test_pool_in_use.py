"""A pool that is used: accounts rotate, are delivered, cannot be taken away, and outlive a destroy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from tests.program.accounts import accounts, owned
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import FleetProject, Ran
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


def configure(
    project: FleetProject,
    *members: int,
    credentials: dict[str, str] | None = None,
    claiming: bool = True,
    allow_destroy: bool = False,
) -> None:
    """A tenant whose one account is delivered to it, from a pool that the API server guards."""
    tenant = tenant_of(project, "acme")
    tenant["accounts"]["aws"]["deliverTo"] = "aws-account"
    if not claiming:
        tenant["accounts"] = {}
    pool = {**pool_of(*members), "admissionPolicy": True, "allowDestroy": allow_destroy}
    project.configure(credentials=credentials or CREDENTIALS, tenants={"acme": tenant}, pool=pool)


def delivered(admin: DynamicClient, project: FleetProject) -> dict[str, str] | None:
    """What is in the tenant's copy; None when there is none."""
    secrets = Secrets(admin, f"{project.pool}-acme")
    return secrets.data("aws-account") if "aws-account" in secrets.names() else None


def roles(admin: DynamicClient, project: FleetProject) -> list[str]:
    api = admin.resources.get(api_version="rbac.authorization.k8s.io/v1", kind="Role")
    return [role.metadata.name for role in api.get(namespace=project.pool).items]


def update_by_plan(project: FleetProject) -> Ran:
    """Preview, and do what was planned then and nothing else."""
    plan = project.folder / "plan.json"
    project.preview("--save-plan", str(plan)).quiet()
    assert "sentinel-" not in plan.read_text(encoding="utf-8")
    return project.up("--plan", str(plan)).quiet()


@pytest.mark.life
def test_a_pool_in_use_keeps_its_accounts_through_rotation_removal_and_destroy(
    project: FleetProject, admin: DynamicClient
):
    globex = ("-n", project.pool, "-t", "aws", "--tenant", "globex", "--yes")
    configure(project, 1, 2)
    assert "acme/aws: expected to get any of 2 free aws accounts" in update_by_plan(project).out
    account, uid = owned(admin, project)["acme"]
    assert delivered(admin, project) == json.loads(CREDENTIALS[account])
    assert roles(admin, project) == ["credfleet-reader:acme:aws"]

    rotated = {**CREDENTIALS, account: '{"accessKeyID":"AKIA9","secretAccessKey":"sentinel-9"}'}
    configure(project, 1, 2, credentials=rotated)
    preview = project.preview("--json").quiet().json
    foreseen = {step["urn"].rpartition("::")[2] for step in preview["steps"] if step["op"] == "update"}
    assert foreseen == {f"account-pool-{account}", "acme/aws-copy"}
    update_by_plan(project)
    assert owned(admin, project)["acme"] == (account, uid)
    assert delivered(admin, project) == json.loads(rotated[account])

    (other,) = {1, 2} - {int(account.removeprefix("aws-"))}
    configure(project, other, credentials=rotated)
    removal = project.preview().quiet(1)
    place = f"credfleet:accountPool.members.{account}"
    assert f"{place}: it would be removed, but it is claimed by tenant acme" in removal.out

    project.run("pool", "claim", *globex).quiet()
    destroy = project.destroy().quiet(1)
    assert f"pool {project.pool} is in use, nothing of it was deleted" in destroy.out
    assert f"{account}: its last tenant's resources may still be in it" in destroy.out
    assert f"aws-{other}: it is claimed by tenant globex; release the claim first" in destroy.out
    assert set(accounts(admin, project)) == {"aws-1", "aws-2"}
    assert accounts(admin, project)[account]["uid"] == uid
    assert delivered(admin, project) is None
    assert roles(admin, project) == []

    project.run("pool", "release", *globex).quiet()
    configure(project, 1, 2, claiming=False, allow_destroy=True)
    project.up().quiet()
    project.destroy().quiet()
    namespaces = admin.resources.get(api_version="v1", kind="Namespace").get().items
    assert project.pool not in {each.metadata.name for each in namespaces}
    states = [path.read_bytes() for path in (project.folder / ".sandbox").rglob("*.json")]
    assert not [state for state in states if b"sentinel-" in state]


@pytest.mark.life
def test_key_of_an_imported_account_is_put_in_place_and_its_copy_follows_and_a_declared_one_stays(
    project: FleetProject, admin: DynamicClient
):
    tenants = {name: tenant_of(project, name) for name in ("acme", "globex")}
    for tenant in tenants.values():
        tenant["accounts"]["aws"]["deliverTo"] = "aws-account"
    pool = {**pool_of(1), "allowDestroy": False}
    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool)
    rows = "name,type,accountId\naws-1,aws,000000000001\naws-9,aws,000000000009\n"
    (project.folder / "more.csv").write_text(rows)
    keys = project.folder / "keys"
    keys.mkdir()
    imports = (
        "pool",
        "import",
        "more.csv",
        "--values",
        "keys",
        "--stack",
        project.stack,
        "-o",
        "json",
        "--yes",
    )
    (keys / "aws-9.json").write_text('{"key": "sentinel-old"}')
    project.up().quiet()
    project.run(*imports).quiet()
    project.up().quiet()
    holder = next(tenant for tenant, (account, _) in owned(admin, project).items() if account == "aws-9")

    for name in ("aws-1", "aws-9"):
        (keys / f"{name}.json").write_text('{"key": "sentinel-new"}')
    rotated = project.run(*imports, "--update").quiet(1).json
    assert [each["outcome"] for each in rotated["accounts"]] == ["differs", "updated"]
    assert "the stack that declares it" in rotated["accounts"][0]["reason"]
    assert [stack.rpartition("/")[2] for stack in rotated["stacks"]] == [project.stack]
    steps = project.preview("--json").quiet().json["steps"]
    assert [each["urn"].rpartition("::")[2] for each in steps if each["op"] == "update"] == [
        f"{holder}/aws-copy"
    ]
    project.up().quiet()
    assert Secrets(admin, tenants[holder]["namespace"]).data("aws-account") == {"key": "sentinel-new"}
    project.preview("--expect-no-changes").quiet()

    destroy = project.destroy().quiet(1)
    assert "no stack has the credential of aws-9, imported or brought: keep copies of them" in destroy.out
    assert set(accounts(admin, project)) == {"aws-1", "aws-9"}
    project.configure(credentials=CREDENTIALS, pool=pool_of(1))
    project.up("--config", "credfleet:allowRemovals=true").quiet()
    assert "no stack has the credential of aws-9" in project.destroy().quiet().out


def five_tenants_share(project: FleetProject, *members: int) -> None:
    """Five tenants that want one account each, with a copy."""
    tenants = {f"t{n}": tenant_of(project, f"t{n}") for n in range(1, 6)}
    for tenant in tenants.values():
        tenant["accounts"]["aws"]["deliverTo"] = "aws-account"
    credentials = {f"aws-{n}": CREDENTIALS["aws-1"] for n in members}
    project.configure(credentials=credentials, tenants=tenants, pool=pool_of(*members))


def created(resources: Sequence[Mapping[str, Any]], key: str, word: str) -> list[str]:
    """What is made by a preview's steps, or an update's answer, besides the stack itself."""
    return sorted(
        each["urn"]
        for each in resources
        if each[key] == word and "::pulumi:pulumi:Stack::" not in each["urn"]
    )


def copies(admin: DynamicClient, project: FleetProject) -> set[str]:
    """Tenants that have a copy of an account."""
    secrets = admin.resources.get(api_version="v1", kind="Secret").get().items
    places = {each.metadata.namespace for each in secrets if each.metadata.name == "aws-account"}
    return {place.removeprefix(f"{project.pool}-") for place in places if place.startswith(project.pool)}


@pytest.mark.life
def test_a_tenant_that_cannot_be_served_is_skipped_and_taken_up_once_there_is_an_account(
    project: FleetProject, admin: DynamicClient
):
    five_tenants_share(project, 1, 2, 3, 4)
    preview = project.preview("--json").quiet().json
    up = project.sandbox_up("--skip-preview", "--output", "json").quiet(9).json
    served = owned(admin, project)
    assert served.keys() == copies(admin, project) == {"t1", "t2", "t3", "t4"}
    assert sorted(roles(admin, project)) == [f"credfleet-reader:{tenant}:aws" for tenant in sorted(served)]
    assert created(preview["steps"], "op", "create") == created(up["declared"], "action", "created")
    assert [each["what"] for each in up["skipped"]] == ["claim t5/aws", "copy t5/aws"]
    assert "no free aws account is left" in up["skipped"][0]["reason"]

    again = project.sandbox_up("--expect-no-changes").quiet(9)
    assert "warning: t5/aws: expected to find none free" in again.out
    assert "info: warning" not in again.out
    assert "the update goes on without it" in again.out
    assert "Nothing changed" in again.out

    five_tenants_share(project, 1, 2, 3, 4, 5)
    preview = project.preview("--json").quiet().json
    later = project.sandbox_up("--skip-preview", "--output", "json").quiet().json
    assert created(preview["steps"], "op", "create") == created(later["declared"], "action", "created")
    assert later["skipped"] == []
    assert owned(admin, project).items() > served.items()
    assert "t5" in copies(admin, project)


@pytest.mark.life
def test_a_failed_claim_stops_no_other_tenant_that_is_told_to_go_on(
    project: FleetProject, admin: DynamicClient
):
    tenants = {name: tenant_of(project, name) for name in ("acme", "globex")}
    for tenant in tenants.values():
        tenant["accounts"]["aws"] |= {"deliverTo": "aws-account", "required": True}
    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool_of(1))
    assert "globex/aws: expected to find none free" in project.preview().out
    up = project.up("--continue-on-error")
    assert up.code != 0
    assert "no free aws account is left" in up.out
    ((first, account),) = owned(admin, project).items()
    assert first in copies(admin, project)

    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool_of(1, 2))
    project.up().quiet()
    served = owned(admin, project)
    assert (len(served), served[first]) == (2, account)
