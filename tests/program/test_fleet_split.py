"""A fleet whose tenants go to more stacks: no object in the cluster changes, and each stack goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.program.accounts import owned
from tests.program.conftest import pool_of
from tests.program.test_consumer_stacks import consumer
from tests.support.fleet_project import STACK, FleetProject

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

TENANTS = ("acme", "globex", "hooli", "initech", "stark", "umbrella")
KINDS = (
    *(("v1", kind) for kind in ("Namespace", "Secret", "ConfigMap", "ServiceAccount")),
    *(("rbac.authorization.k8s.io/v1", kind) for kind in ("Role", "RoleBinding")),
)


def versions(admin: DynamicClient, prefix: str) -> dict[str, str]:
    """Return the version of every object in the namespaces of a project, and of those."""
    found = {
        f"{kind} {each.metadata.namespace}/{each.metadata.name}": each.metadata.resourceVersion
        for version, kind in KINDS
        for each in admin.resources.get(api_version=version, kind=kind).get().items
    }
    return {name: version for name, version in found.items() if f" {prefix}" in name or f"/{prefix}" in name}


def test_a_fleet_that_is_split_over_three_stacks_changes_no_object_in_the_cluster(
    project: FleetProject, admin: DynamicClient, tmp_path: Path
) -> None:
    credentials = {
        f"aws-{n}": f'{{"accessKeyID":"AKIA{n}","secretAccessKey":"sentinel-{n}"}}' for n in range(1, 7)
    }
    project.configure(credentials=credentials, tenants={}, pool=pool_of(*range(1, 7)))
    project.up().quiet()
    fleet = consumer(project, tmp_path / "fleet", TENANTS)
    fleet.sandbox("up").quiet()
    assert {*owned(admin, project)} == {*TENANTS}
    before = versions(admin, project.pool)
    assert len(before) > 4 * len(TENANTS)

    proposed = fleet.run("fleet", "split", "--stack", STACK, "--by", "2", "--output", "json").quiet().json
    assert [each["tenants"] for each in proposed["stacks"]] == [
        [*TENANTS[:2]],
        [*TENANTS[2:4]],
        [*TENANTS[4:]],
    ]
    assert not (fleet.folder / "stacks.yaml").exists()
    done = fleet.run("fleet", "split", "--stack", STACK, "--by", "2", "--write", "--yes").quiet()
    assert "4 tenants of 6 moved" in done.out
    again = fleet.run("fleet", "up", "--kubeconfig", str(fleet.kubeconfig), "--output", "json").quiet().json
    stacks = (STACK, f"{STACK}-2", f"{STACK}-3")
    assert {each["stack"]: each["outcome"] for each in again["stacks"]} == dict.fromkeys(
        stacks, "nothing changed"
    )
    assert versions(admin, project.pool) == before

    namespaces = admin.resources.get(api_version="v1", kind="Namespace")
    namespaces.patch(
        name=f"{project.pool}-stark", body={"metadata": {"labels": {"credfleet.io/tenant": "other"}}}
    )
    states = [path.read_bytes() for path in sorted((fleet.folder / ".sandbox" / "backend").rglob("*.json"))]
    told = fleet.run("fleet", "status", "--drift", "--kubeconfig", str(fleet.kubeconfig), "--output", "json")
    assert {each["files"] for each in told.json["stacks"]} == {"as deployed"}
    drift = {each["stack"]: each["drift"] for each in told.quiet().json["stacks"]}
    assert drift == dict(zip(stacks, ("0 resources", "0 resources", "1 resource"), strict=True))
    assert states == [
        path.read_bytes() for path in sorted((fleet.folder / ".sandbox" / "backend").rglob("*.json"))
    ]
