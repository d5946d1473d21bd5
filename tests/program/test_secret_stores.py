"""Secret stores of a stack on the real API server: what is read and pushed, as whom, and what goes first."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.cases import table
from tests.support.fleet_project import FleetProject
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

SERVICE = {"type": "database", "password": "sentinel-db"}
TOKEN = "sentinel-gitlab-token"


class Stack:
    """A project of two tenants that share a store, and what it has in the cluster."""

    def __init__(self, project: FleetProject, admin: DynamicClient, vault: str) -> None:
        self.project = project
        self.vault = vault
        self._admin = admin

    def namespace(self, tenant: str) -> str:
        return f"{self.project.pool}-{tenant}"

    def configure(self) -> None:
        """Declare what the dev stack has."""
        spaces = {"POOL": self.project.pool, "VAULT": self.vault}
        text = json.dumps(table(__file__, "STORES"))
        stores = json.loads(re.sub("POOL|VAULT", lambda found: spaces[found[0]], text))
        acme = self.namespace("acme")
        self.project.configure(
            credentials={**CREDENTIALS, "db": json.dumps(SERVICE), "gitlab": TOKEN},
            tenants={name: tenant_of(self.project, name) for name in ("acme", "globex")},
            pool=pool_of(1, 2),
            services={"db": {"namespace": acme, "credentialsFrom": "db"}},
            further={"credfleet:secretStores": stores},
        )

    def grant(self, tenant: str) -> None:
        """Let the ServiceAccount of a tenant write to the vault."""
        subject = {"kind": "ServiceAccount", "name": "account-reader", "namespace": self.namespace(tenant)}
        rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create", "update", "delete"]}
        group = "rbac.authorization.k8s.io"
        for kind, body in (
            ("Role", {"rules": [rule]}),
            (
                "RoleBinding",
                {"subjects": [subject], "roleRef": {"apiGroup": group, "kind": "Role", "name": tenant}},
            ),
        ):
            api = self._admin.resources.get(api_version=f"{group}/v1", kind=kind)
            api.create(body={"metadata": {"name": tenant}, **body}, namespace=self.vault)

    def secrets(self, namespace: str) -> Secrets:
        return Secrets(self._admin, namespace)


@pytest.fixture
def stack(project: FleetProject, admin: DynamicClient, namespace: str) -> Stack:
    return Stack(project, admin, namespace)


@pytest.mark.life
def test_each_tenant_reads_its_own_account_through_one_store_and_pushes_where_it_may(stack: Stack) -> None:
    acme, globex = stack.namespace("acme"), stack.namespace("globex")
    stack.configure()
    stack.grant("acme")

    said = stack.project.up().quiet().out

    keys = {stack.secrets(acme).data("acme-account")["key"], stack.secrets(globex).data("copied")["key"]}
    assert keys == {"sentinel-1", "sentinel-2"}
    assert json.loads(stack.secrets(stack.vault).data("db")["credentials"]) == SERVICE
    assert stack.secrets(acme).data("gitlab-credentials") == {"token": TOKEN}
    assert "ExternalSecret ci-token" in said
    assert "install External Secrets Operator" in said
    stack.project.preview("--expect-no-changes").quiet()
    state = [path.read_bytes() for path in (stack.project.folder / ".sandbox").rglob("*.json")]
    assert state
    assert not any(b"sentinel-" in each for each in state)

    stack.project.destroy().quiet()
    assert stack.secrets(stack.vault).names() == set()
