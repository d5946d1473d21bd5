"""Stacks that claim from the pool of another one: they declare nothing of it, and it knows who has what."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN

from sandbox.tests.support.cluster import client_for, keep_while_runs
from tests.program.accounts import accounts, owned
from tests.program.conftest import CREDENTIALS, pool_of
from tests.support.fleet_project import FleetProject
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


def consumer(
    pool: FleetProject, folder: Path, tenants: Sequence[str], elsewhere: Path | None = None
) -> FleetProject:
    """A project of its own, whose tenants, each in its file, want one account of a pool and a copy of it.

    elsewhere: the kubeconfig of its tenants' cluster, where that is another one.
    """
    made = pool.consumer(folder)
    files = folder / "tenants"
    files.mkdir()
    accounts = {"aws": {"type": "aws", "deliverTo": "aws-account"}}
    (files / "_defaults.yaml").write_text(json.dumps({"accounts": accounts}), encoding="utf-8")
    for name in tenants:
        (files / f"{name}.yaml").write_text(f"namespace: {pool.pool}-{name}\n", encoding="utf-8")
    of_pool = {"namespace": pool.pool}
    if elsewhere is not None:
        here = {"context": "pulumi-sandbox", "kubeconfig": str(pool.kubeconfig)}
        made, of_pool = replace(made, kubeconfig=elsewhere), {**of_pool, "cluster": here}
    made.configure(
        pool={"from": of_pool},
        further={"credfleet:tenantsFrom": "tenants"},
    )
    return made


@pytest.mark.life
def test_stacks_claim_from_the_pool_of_another_one_and_leave_it_to_that(
    project: FleetProject, admin: DynamicClient, tmp_path: Path
) -> None:
    guarded = {**pool_of(1, 2), "admissionPolicy": True}
    project.configure(credentials=CREDENTIALS, pool=guarded)
    nobody = consumer(project, tmp_path / "early", ["acme"]).preview().quiet(1)
    assert f"namespace {project.pool} has no pool" in nobody.out
    project.up().quiet()

    first = consumer(project, tmp_path / "first", ["acme"])
    assert "acme/aws: expected to get any of 2 free aws accounts" in first.up().quiet().out
    second = consumer(project, tmp_path / "second", ["globex", "initech"])
    up = second.sandbox_up("--skip-preview", "--output", "json").quiet(9).json
    assert "no free aws account is left" in up["skipped"][0]["reason"]

    served = owned(admin, project)
    assert len(served) == 2
    assert "acme" in served
    for tenant, (account, _) in served.items():
        copy = Secrets(admin, f"{project.pool}-{tenant}").data("aws-account")
        assert copy == json.loads(CREDENTIALS[account])
    roles = admin.resources.get(api_version="rbac.authorization.k8s.io/v1", kind="Role")
    assert not roles.get(namespace=project.pool).items
    project.preview("--expect-no-changes").quiet()

    account = served["acme"][0]
    (other,) = {1, 2} - {int(account.removeprefix("aws-"))}
    project.configure(credentials=CREDENTIALS, pool={**guarded, **pool_of(other)})
    removal = project.preview().quiet(1)
    assert f"{account}: it would be removed, but it is claimed by tenant acme" in removal.out
    assert "held by stack organization/first/test" in removal.out
    shared = consumer(project, tmp_path / "third", ["acme"]).preview().quiet(1)
    assert "acme/aws: shares its account with stack organization/first/test" in shared.out

    first.destroy().quiet()
    assert accounts(admin, project)[account]["labels"]["credfleet.io/pool-state"] == "dirty"


@pytest.mark.life
def test_a_pool_that_names_its_consumers_gives_each_what_it_may_have_and_no_more(
    project: FleetProject, admin: DynamicClient, tmp_path: Path
) -> None:
    def with_quota(most: int) -> None:
        named = {"first": {"holders": ["pulumi/organization/first"], "quotas": {"aws": most}}}
        guarded = {**pool_of(1, 2, 3), "admissionPolicy": True, "consumers": named}
        project.configure(credentials=CREDENTIALS, pool=guarded)

    with_quota(1)
    project.up().quiet()
    stranger = consumer(project, tmp_path / "stranger", ["acme"]).preview().quiet()
    assert "this is not a holder of any of them: first" in stranger.out
    assert not owned(admin, project)

    first = consumer(project, tmp_path / "first", ["acme", "globex"])
    assert "consumer first may have 1 aws account at most" in first.up().quiet().out
    assert len(owned(admin, project)) == 1

    with_quota(0)
    (tenant,) = owned(admin, project)
    lowered = project.preview().quiet()
    assert f"it keeps {tenant}/aws (stack organization/first/test), and gets no more" in lowered.out
    with_quota(2)
    project.up().quiet()
    first.up().quiet()
    assert {*owned(admin, project)} == {"acme", "globex"}
    first.preview("--expect-no-changes").quiet()
    first.destroy().quiet()


@pytest.mark.life
def test_the_pool_of_a_stack_may_be_in_another_cluster_than_its_tenants(
    project: FleetProject, admin: DynamicClient, tmp_path: Path
) -> None:
    keep_while_runs(os.getpid(), tmp_path / "second", tmp_path / "second.ready")
    second = ControlPlane.find(tmp_path / "second")
    assert second is not None
    project.configure(credentials=CREDENTIALS, pool=pool_of(1, 2))
    project.up().quiet()

    far = consumer(project, tmp_path / "far", ["acme"], second.kubeconfig(ADMIN.name))
    assert "acme/aws: expected to get any of 2 free aws accounts" in far.up().quiet().out
    account, _ = owned(admin, project)["acme"]
    with client_for(second.kubeconfig(ADMIN.name), tmp_path / "discovered.json") as there:
        copied = Secrets(there, f"{project.pool}-acme")
        assert copied.data("aws-account") == json.loads(CREDENTIALS[account])
        assert namespaces(there) & {project.pool, f"{project.pool}-acme"} == {f"{project.pool}-acme"}
        assert f"{project.pool}-acme" not in namespaces(admin)
        written = [path for path in (far.folder / ".sandbox").rglob("*") if path.is_file()]
        assert written
        assert not any(b"sentinel" in path.read_bytes() for path in written)

        rotated = {**CREDENTIALS, account: CREDENTIALS[account].replace("sentinel", "sentinel-new")}
        project.configure(credentials=rotated, pool=pool_of(1, 2))
        project.up().quiet()
        far.up().quiet()
        assert copied.data("aws-account") == json.loads(rotated[account])
        far.preview("--expect-no-changes").quiet()
        far.destroy().quiet()
        assert accounts(admin, project)[account]["labels"]["credfleet.io/pool-state"] == "dirty"
        assert not copied.names()


def namespaces(client: DynamicClient) -> set[str]:
    found: Any = client.resources.get(api_version="v1", kind="Namespace").get()
    return {each.metadata.name for each in found.items}
