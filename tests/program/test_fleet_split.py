"""A fleet whose tenants go to more stacks: no object in the cluster changes, and each stack goes on."""

from __future__ import annotations

import base64
import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.secret_manager import SecretManagerTarget, open_secret_manager, secret_name
from tests.program.accounts import owned
from tests.program.conftest import CREDENTIALS, pool_of, secret_manager_of, tenant_of
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
    fleet.up().quiet()
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


def ended(fleet: FleetProject) -> dict[str, Any]:
    """Bring up all stacks of a fleet; return what that changed of each, or how it ended."""
    told = fleet.run("fleet", "up", "--kubeconfig", str(fleet.kubeconfig), "--output", "json").quiet().json
    return {each["stack"]: each["changes"] or each["outcome"] for each in told["stacks"]}


def test_a_split_fleet_is_split_otherwise_by_number_and_by_hand_and_no_object_changes(
    project: FleetProject, admin: DynamicClient, tmp_path: Path
) -> None:
    names = TENANTS[:4]
    credentials = {f"aws-{n}": f'{{"accessKeyID":"AKIA{n}"}}' for n in range(1, 5)}
    project.configure(credentials=credentials, tenants={}, pool=pool_of(*range(1, 5)))
    project.up().quiet()
    fleet = consumer(project, tmp_path / "fleet", names)
    fleet.sandbox("up").quiet()
    before = versions(admin, project.pool)
    split, stacks = ("fleet", "split", "--stack", STACK), [STACK, *(f"{STACK}-{n}" for n in (2, 3, 4))]
    fleet.run(*split, "--by", "2", "--write", "--yes").quiet()
    assert "3 tenants of 4 moved" in fleet.run(*split, "--by", "1", "--write", "--yes").quiet().out
    assert ended(fleet) == dict.fromkeys(stacks, "nothing changed")

    file = fleet.folder / "stacks.yaml"
    file.write_text(file.read_text().replace(f"since: {names[1]}", f"since: {names[1]}x"))
    mends = set[str]()
    for stack in stacks[:2]:
        refused = fleet.run("sandbox", "up", "--stack", stack, "--kubeconfig", str(fleet.kubeconfig), "--yes")
        assert refused.code != 0
        cause = f"it is to be in stack {STACK}, and what it has is in the state of {STACK}-2"
        assert f"stacks.yaml: tenant {names[1]}: {cause}" in refused.err
        mends |= {*re.findall("`credfleet (.*?)`", refused.err)}
    assert mends == {f"fleet split --stack {stack} --write" for stack in stacks[:2]}
    assert versions(admin, project.pool) == before

    moved = fleet.run(*shlex.split(max(mends)), "--yes").quiet()
    assert "1 tenant of 4 moved" in moved.out
    assert ended(fleet) == dict.fromkeys(stacks, "nothing changed")
    assert versions(admin, project.pool) == before


def test_a_tenant_of_a_stack_that_is_named_nowhere_any_more_is_made_by_no_other(
    project: FleetProject, admin: DynamicClient, tmp_path: Path
) -> None:
    names = TENANTS[:2]
    credentials = {f"aws-{n}": f'{{"accessKeyID":"AKIA{n}"}}' for n in (1, 2)}
    project.configure(credentials=credentials, tenants={}, pool=pool_of(1, 2))
    project.up().quiet()
    fleet = consumer(project, tmp_path / "fleet", names)
    fleet.up().quiet()
    fleet.run("fleet", "split", "--stack", STACK, "--by", "1", "--write", "--yes").quiet()
    before, file = versions(admin, project.pool), fleet.folder / "stacks.yaml"
    stacks = file.read_text()
    cause = f"it is to be in stack {STACK}, and what it has is in the state of {STACK}-2"
    shortened = re.sub(f" *{STACK}-2:\n.*\n", "", stacks)

    for text in (shortened, "fleets: {}\n"):
        file.write_text(text)
        refused = fleet.sandbox("up")
        assert refused.code != 0
        assert f"stacks.yaml: tenant {names[1]}: {cause}" in refused.err
        assert f"name {STACK}-2 in stacks.yaml again" in refused.err
    (fleet.folder / f"Pulumi.{STACK}-2.yaml").rename(tmp_path / "forgotten")
    assert cause in fleet.sandbox("preview").err
    assert versions(admin, project.pool) == before

    (tmp_path / "forgotten").rename(fleet.folder / f"Pulumi.{STACK}-2.yaml")
    file.write_text(stacks.replace(f"since: {names[1]}", f"since: {names[1]}x"))
    fleet.run("fleet", "split", "--stack", STACK, "--write", "--yes").quiet()
    file.write_text(shortened)
    assert fleet.sandbox("up", "--expect-no-changes").quiet().code == 0
    assert versions(admin, project.pool) == before


def test_a_tenant_goes_to_another_stack_with_its_pull_secret(
    project: FleetProject, admin: DynamicClient, tmp_path: Path
) -> None:
    project.configure(credentials=CREDENTIALS, tenants={}, pool=pool_of(1, 2))
    project.up().quiet()
    fleet = project.consumer(tmp_path / "fleet")
    with secret_manager_of(fleet) as google:
        _moves_with_its_pull_secret(fleet, admin, google)


def _moves_with_its_pull_secret(fleet: FleetProject, admin: DynamicClient, google: str) -> None:
    (fleet.folder / "tenants").mkdir()
    adapters = dict.fromkeys(("validation", "dns", "placement"), "True")
    auth = base64.b64encode(b"user:sentinel-1").decode()
    credentials: dict[str, str] = {}
    for name, id_ in (("acme", "cls-000000000001"), ("globex", "cls-000000000002")):
        credentials[f"{name}-pull"] = json.dumps({"auths": {"quay.io": {"auth": auth}}})
        cluster = {"name": name, "generation": 1, "project": "test-project", "adapters": adapters}
        clusters = {"clusters": {id_: {**cluster, "pullSecretFrom": f"{name}-pull"}}}
        tenant = {**tenant_of(fleet, name), "pullSecrets": clusters}
        (fleet.folder / "tenants" / f"{name}.yaml").write_text(json.dumps(tenant))
    fleet.configure(
        credentials=credentials,
        tenants={},
        pool={"from": {"namespace": fleet.pool}},
        further={
            "credfleet:tenantsFrom": "tenants",
            "credfleet:pullSecrets": {"namespaceTemplate": f"{fleet.pool}-{{id}}"},
            "gcp:project": "test-project",
            "gcp:secretManagerCustomEndpoint": google,
            "gcp:accessToken": "any",
        },
    )
    fleet.sandbox("up").quiet()
    before = versions(admin, fleet.pool)
    assert sum("pull-secret" in name for name in before) == 2

    fleet.run("fleet", "split", "--stack", STACK, "--by", "1", "--write", "--yes").quiet()
    assert ended(fleet) == dict.fromkeys((STACK, f"{STACK}-2"), "nothing changed")
    assert versions(admin, fleet.pool) == before
    manager = open_secret_manager(SecretManagerTarget(google, "any"))
    entry = secret_name("test-project", "hyperfleet-cls-000000000002-pull-secret")
    assert [one.number for one in manager.versions(entry)] == [1]
