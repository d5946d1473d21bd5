"""deploy/gitops.yaml: with the rights of its ServiceAccount a stack is made, seen again and destroyed.

No operator and no pod runs here. Whether its kinds are the operator's: tests/witness/test_operator.py.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.deployed import Accounts, objects
from tests.support.fleet_project import FleetProject

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane


@pytest.mark.life
def test_a_stack_has_all_it_needs_from_the_rights_that_its_operator_is_given(
    project: FleetProject, control_plane: ControlPlane, admin: DynamicClient, tmp_path: Path
) -> None:
    unique = f"t{secrets.token_hex(4)}"
    for each in objects("gitops.yaml", unique, instead_of="credfleet-stack"):
        if each["kind"] != "Stack":
            api: Any = admin.resources.get(api_version=each["apiVersion"], kind=each["kind"])
            admin.create(api, body=each, namespace=each["metadata"].get("namespace"))
    signed_in = Accounts(control_plane, admin, "credfleet", tmp_path).signed_in(unique)
    theirs = replace(project, kubeconfig=signed_in)
    tenants = {name: tenant_of(project, name) for name in ("acme", "globex")}
    tenants["acme"]["accounts"]["aws"]["deliverTo"] = "aws-account"
    guarded = {
        **pool_of(1, 2, 3),
        "admissionPolicy": True,
        "bringers": {"acme": [{"kind": "User", "name": "someone"}]},
    }
    theirs.configure(credentials=CREDENTIALS, tenants=tenants, pool=guarded, context="c")
    theirs.up().quiet()
    theirs.preview("--expect-no-changes").quiet()
    theirs.destroy().quiet()
