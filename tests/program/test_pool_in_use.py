"""A pool that is used: accounts rotate, are delivered, cannot be taken away, and outlive a destroy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.program.accounts import accounts, owned
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import FleetProject
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


def test_a_pool_in_use_keeps_its_accounts_through_rotation_removal_and_destroy(
    project: FleetProject, admin: DynamicClient
):
    configure(project, 1, 2)
    up = project.sandbox("up").quiet()
    assert "acme/aws: expected to get any of 2 free aws accounts" in up.out
    account, uid = owned(admin, project)["acme"]
    assert delivered(admin, project) == json.loads(CREDENTIALS[account])
    assert roles(admin, project) == ["credfleet-reader:acme:aws"]

    rotated = {**CREDENTIALS, account: '{"accessKeyID":"AKIA9","secretAccessKey":"sentinel-9"}'}
    configure(project, 1, 2, credentials=rotated)
    project.up().quiet()
    assert owned(admin, project)["acme"] == (account, uid)
    assert delivered(admin, project) == json.loads(rotated[account])

    (other,) = {1, 2} - {int(account.removeprefix("aws-"))}
    configure(project, other, credentials=rotated)
    removal = project.sandbox("preview").quiet(1)
    place = f"credfleet:accountPool.members.{account}"
    assert f"{place}: it would be removed, but it is claimed by tenant acme" in removal.out

    project.run("pool", "claim", "-n", project.pool, "-t", "aws", "--tenant", "globex").quiet()
    destroy = project.sandbox("destroy").quiet(1)
    assert f"pool {project.pool} is in use, nothing of it was deleted" in destroy.out
    assert f"{account}: its last tenant's resources may still be in it" in destroy.out
    assert f"aws-{other}: it is claimed by tenant globex; release the claim first" in destroy.out
    assert set(accounts(admin, project)) == {"aws-1", "aws-2"}
    assert accounts(admin, project)[account]["uid"] == uid
    assert delivered(admin, project) is None
    assert roles(admin, project) == []

    project.run("pool", "release", "-n", project.pool, "-t", "aws", "--tenant", "globex").quiet()
    configure(project, 1, 2, claiming=False, allow_destroy=True)
    project.up().quiet()
    project.sandbox("destroy").quiet()
    namespaces = admin.resources.get(api_version="v1", kind="Namespace").get().items
    assert project.pool not in {each.metadata.name for each in namespaces}
    states = [path.read_bytes() for path in (project.folder / ".sandbox").rglob("*.json")]
    assert not [state for state in states if b"sentinel-" in state]


def test_one_tenant_that_cannot_be_served_stops_no_other(project: FleetProject, admin: DynamicClient):
    def two_tenants_share(*members: int) -> None:
        tenants = {name: tenant_of(project, name) for name in ("acme", "globex")}
        for tenant in tenants.values():
            tenant["accounts"]["aws"]["deliverTo"] = "aws-account"
        project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool_of(*members))

    two_tenants_share(1)
    up = project.sandbox("up", "--continue-on-error")
    assert up.code == 1
    assert "no free aws account is left" in up.out
    ((first, account),) = owned(admin, project).items()
    copies = admin.resources.get(api_version="v1", kind="Secret").get().items
    places = {each.metadata.namespace for each in copies if each.metadata.name == "aws-account"}
    assert f"{project.pool}-{first}" in places

    two_tenants_share(1, 2)
    later = project.sandbox("up")
    assert later.code == 0, later.out + later.err
    served = owned(admin, project)
    assert (len(served), served[first]) == (2, account)
