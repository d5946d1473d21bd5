"""`credfleet bootstrap --check`, on a real API server that goes by the printed Roles."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pulumi_sandbox.services.parts import ADMIN

from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import FleetProject
from tests.support.noticed import until
from tests.support.printed_roles import apply, printed

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

_RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def project(tmp_path: Path, control_plane: ControlPlane, admin: DynamicClient) -> FleetProject:
    """A stack, and the namespaces that its first update makes."""
    unique = f"t{secrets.token_hex(4)}"
    made = FleetProject.make(tmp_path / "project", control_plane.kubeconfig(ADMIN.name), unique)
    made = replace(made, stack=unique)
    made.configure(credentials=CREDENTIALS, tenants={"acme": tenant_of(made, "acme")}, pool=pool_of(1))
    namespaces = admin.resources.get(api_version="v1", kind="Namespace")
    namespaces.create(body={"metadata": {"name": made.pool}})
    return made


def test_check_names_what_an_identity_lacks_and_what_it_has_too_much(
    project: FleetProject, admin: DynamicClient
) -> None:
    check = ("bootstrap", "--stack", project.stack, "--check", "--kubeconfig", str(project.kubeconfig))
    without = project.run(*check).quiet(5)
    assert f"✗ preview lacks: list secrets in {project.pool}" in without.out
    assert f"--stack {project.stack} --format yaml | kubectl apply -f -" in without.said

    assert apply(admin, printed(project)) == 2  # of the tenant's namespace, of drift
    until(lambda: project.run(*check).code == 0)
    well = project.run(*check).quiet(0)
    assert f"· {project.pool}-acme is not there yet" in well.out

    assert "· not asked: GitHub: gh api 'repos/{owner}/{repo}/environments'" in well.out

    name = f"credfleet-{project.stack}-preview"
    metadata: dict[str, Any] = {"name": "careless", "namespace": project.pool}
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["update"]}
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": "careless"},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": name}],
    }
    apply(admin, [role, binding])
    until(lambda: project.run(*check).code == 1)
    careless = project.run(*check).quiet(1)
    assert f"✗ preview can update secrets in {project.pool}, and does not need to" in careless.out
    assert careless.out.count("✗") == 1
