"""A fleet whose tenants go to more stacks: no object in the cluster changes, and each stack goes on."""

from __future__ import annotations

import base64
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from components.secret_manager import SecretManagerTarget, open_secret_manager, secret_name
from tests.program.accounts import owned
from tests.program.conftest import CREDENTIALS, pool_of, secret_manager_of
from tests.program.test_consumer_stacks import consumer
from tests.support import pulumi_shell
from tests.support.fleet_project import CREDFLEET, HANGS_AFTER_SECONDS, STACK, FleetProject

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

TENANTS = ("acme", "globex", "hooli", "initech")
FOUR = range(1, 5)
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


def ended(fleet: FleetProject) -> dict[str, Any]:
    """Bring up all stacks of a fleet; return what that changed of each, or how it ended."""
    told = fleet.run("fleet", "up", "--kubeconfig", str(fleet.kubeconfig), "--output", "json").quiet().json
    return {each["stack"]: each["changes"] or each["outcome"] for each in told["stacks"]}


def with_pull_secrets(fleet: FleetProject, google: str, clusters: Mapping[str, str]) -> None:
    """Give tenants a cluster each, with a pull secret in Secret Manager. clusters: tenant → its id."""
    adapters = dict.fromkeys(("validation", "dns", "placement"), "True")
    auth = base64.b64encode(b"user:sentinel-1").decode()
    for name, id_ in clusters.items():
        cluster = {"name": name, "generation": 1, "project": "test-project", "adapters": adapters}
        section = {"clusters": {id_: {**cluster, "pullSecretFrom": f"{name}-pull"}}}
        tenant = {"namespace": f"{fleet.pool}-{name}", "pullSecrets": section}
        (fleet.folder / "tenants" / f"{name}.yaml").write_text(json.dumps(tenant))
    fleet.configure(
        credentials={f"{name}-pull": json.dumps({"auths": {"quay.io": {"auth": auth}}}) for name in clusters},
        pool={"from": {"namespace": fleet.pool}},
        further={
            "credfleet:tenantsFrom": "tenants",
            "credfleet:pullSecrets": {"namespaceTemplate": f"{fleet.pool}-{{id}}"},
            "gcp:project": "test-project",
            "gcp:secretManagerCustomEndpoint": google,
            "gcp:accessToken": "any",
        },
    )


@pytest.mark.life
def test_a_fleet_that_is_split_over_two_stacks_changes_no_object_in_the_cluster_and_in_the_cloud(
    project: FleetProject, admin: DynamicClient, tmp_path: Path
) -> None:
    credentials = {f"aws-{n}": f'{{"accessKeyID":"AKIA{n}","secretAccessKey":"sentinel-{n}"}}' for n in FOUR}
    project.configure(credentials=credentials, pool=pool_of(*FOUR))
    project.up().quiet()
    fleet = consumer(project, tmp_path / "fleet", TENANTS)
    stacks = (STACK, f"{STACK}-2")
    with secret_manager_of(fleet) as google:
        with_pull_secrets(fleet, google, {"acme": "cls-000000000001", "initech": "cls-000000000002"})
        fleet.up().quiet()
        assert {*owned(admin, project)} == {*TENANTS}
        before = versions(admin, project.pool)
        assert len(before) > 4 * len(TENANTS)
        assert sum("pull-secret" in name for name in before) == 2

        split = ("fleet", "split", "--stack", STACK, "--by", "2")
        proposed = fleet.run(*split, "--output", "json").quiet().json
        assert [each["tenants"] for each in proposed["stacks"]] == [[*TENANTS[:2]], [*TENANTS[2:]]]
        assert not (fleet.folder / "stacks.yaml").exists()
        assert "2 tenants of 4 moved" in fleet.run(*split, "--write", "--yes").quiet().out
        assert ended(fleet) == dict.fromkeys(stacks, "nothing changed")
        assert versions(admin, project.pool) == before
        manager = open_secret_manager(SecretManagerTarget(google, "any"))
        entry = secret_name("test-project", "hyperfleet-cls-000000000002-pull-secret")
        assert [one.number for one in manager.versions(entry)] == [1]

    told = fleet.run("fleet", "status", "--output", "json").quiet().json["stacks"]
    assert {each["files"] for each in told} == {"as deployed"}


@pytest.mark.life
def test_a_split_fleet_is_split_otherwise_by_number_and_by_hand_and_no_tenant_is_made_twice(
    project: FleetProject, admin: DynamicClient, tmp_path: Path
) -> None:
    names = TENANTS[:3]
    project.configure(credentials=CREDENTIALS, pool=pool_of(1, 2, 3))
    project.up().quiet()
    fleet = consumer(project, tmp_path / "fleet", names)
    fleet.up().quiet()
    before = versions(admin, project.pool)
    split, stacks = ("fleet", "split", "--stack", STACK), [STACK, f"{STACK}-2", f"{STACK}-3"]
    fleet.run(*split, "--by", "2", "--write", "--yes").quiet()
    assert "1 tenant of 3 moved" in fleet.run(*split, "--by", "1", "--write", "--yes").quiet().out

    file = fleet.folder / "stacks.yaml"
    problem = f"it is to be in stack {STACK}, and what it has is in the state of {STACK}-2"
    file.write_text(file.read_text().replace(f"since: {names[1]}", f"since: {names[1]}x"))

    def update(stack: str) -> Sequence[str]:
        return "sandbox", "up", "--stack", stack, "--kubeconfig", str(fleet.kubeconfig), "--yes"

    fixes = set[str]()
    for stack in stacks[:2]:
        refused = fleet.run(*update(stack))
        assert refused.code != 0
        assert f"stacks.yaml: tenant {names[1]}: {problem}" in refused.err
        fixes |= {*re.findall(r"`\S*credfleet (.*?)`", refused.err)}
    assert fixes == {f"fleet split --stack {stack} --write" for stack in stacks[:2]}
    assert versions(admin, project.pool) == before

    text = file.read_text()
    shortened = re.sub(f" *{STACK}-2:\n.*\n", "", text)
    for short in (shortened, "fleets: {}\n"):
        file.write_text(short)
        refused = fleet.sandbox_up()
        assert refused.code != 0
        assert f"stacks.yaml: tenant {names[1]}: {problem}" in refused.err
        assert f"name {STACK}-2 in stacks.yaml again" in refused.err
    (fleet.folder / f"Pulumi.{STACK}-2.yaml").rename(tmp_path / "forgotten")
    assert problem in fleet.sandbox_up().err
    (tmp_path / "forgotten").rename(fleet.folder / f"Pulumi.{STACK}-2.yaml")
    file.write_text(text)

    fix = (*shlex.split(max(fixes)), "--yes")
    was, home = (pulumi_shell.state_of(fleet.folder, stack) for stack in (stacks[1], STACK))
    command = [sys.executable, str(CREDFLEET), *fix]
    with subprocess.Popen(command, cwd=fleet.folder, env=fleet.environment) as killed:
        pulumi_shell.kill_at(killed, home, 1, HANGS_AFTER_SECONDS)
    assert all(f"-{names[1]}".encode() in state.read_bytes() for state in (was, home))
    assert problem in fleet.run(*update(stacks[1])).err
    bare = fleet.typed(f"pulumi up --yes --skip-preview --stack {stacks[1]}")
    assert bare.code != 0
    assert "protected" in bare.said
    assert versions(admin, project.pool) == before
    assert "1 tenant of 3 moved" in fleet.run(*fix).quiet().out
    assert f"-{names[1]}".encode() not in was.read_bytes()
    assert ended(fleet) == dict.fromkeys(stacks, "nothing changed")
    file.write_text(shortened)
    fleet.sandbox_up("--expect-no-changes").quiet()
    assert versions(admin, project.pool) == before
