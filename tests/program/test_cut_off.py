"""An account that is cut off: its copy and its right go at once, and stay away until it is let back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from components.account_pool.core.keys import CUT
from tests.program.accounts import accounts, owned
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import FleetProject

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

RBAC = "rbac.authorization.k8s.io/v1"


def access(admin: DynamicClient, project: FleetProject) -> set[str]:
    """What lets tenants at their accounts: copies by their namespace, Roles and bindings by their name."""
    secrets = admin.resources.get(api_version="v1", kind="Secret").get().items
    copies = {f"copy {one.metadata.namespace}" for one in secrets if one.metadata.name == "aws-account"}
    found: set[str] = {name for name in copies if project.pool in name}
    for kind in ("Role", "RoleBinding"):
        listed: list[Any] = admin.resources.get(api_version=RBAC, kind=kind).get(namespace=project.pool).items
        readers = (one.metadata.name for one in listed)
        found |= {f"{kind} {name}" for name in readers if name.startswith("credfleet-reader:")}
    return found


def of(project: FleetProject, tenant: str) -> set[str]:
    reader = f"credfleet-reader:{tenant}:aws"
    return {f"copy {project.pool}-{tenant}", f"Role {reader}", f"RoleBinding {reader}"}


@pytest.mark.life
def test_account_that_is_cut_off_loses_copy_and_right_until_it_is_let_back(
    project: FleetProject, admin: DynamicClient
) -> None:
    tenants = {name: tenant_of(project, name) for name in ("acme", "globex")}
    for tenant in tenants.values():
        tenant["accounts"]["aws"]["deliverTo"] = "aws-account"
    pool = {**pool_of(1, 2, 3), "admissionPolicy": True}
    project.configure(credentials=CREDENTIALS, tenants=tenants, pool=pool)
    project.up().quiet()
    assert access(admin, project) == of(project, "acme") | of(project, "globex")
    account, _ = owned(admin, project)["acme"]
    where = ("-n", project.pool, "--yes")

    cut = project.run("pool", "quarantine", account, "--cut", "--reason", "a leak", *where).quiet()
    assert f"Secret {project.pool}-acme/aws-account deleted" in cut.out
    assert access(admin, project) == of(project, "globex")
    told = f"account {account} is quarantined, cut off: a leak: its copies and the right to read it stay away"
    assert told in " ".join(project.preview().quiet().said.split())
    for words in (("--skip-preview",), ("--skip-preview", "--expect-no-changes")):
        assert told in " ".join(project.sandbox_up(*words).quiet(9).said.split())
        assert access(admin, project) == of(project, "globex")
    for words in (("pool", "status"), ("pool", "explain", "-t", "aws", "--tenant", "acme", "--slot", "aws")):
        assert "cut off: a leak" in " ".join(project.run(*words, "-n", project.pool).said.split())
    assert "cut off: a leak" in " ".join(project.run("doctor", "-n", project.pool).said.split())
    assert owned(admin, project)["acme"][0] == account

    back = project.run("pool", "unquarantine", account, *where).quiet()
    assert "by `pulumi up --refresh`" in back.said
    assert CUT not in accounts(admin, project)[account]["annotations"]
    project.up("--refresh").quiet()
    assert access(admin, project) == of(project, "acme") | of(project, "globex")
    assert "Nothing changed" in project.sandbox_up("--expect-no-changes").quiet().out
