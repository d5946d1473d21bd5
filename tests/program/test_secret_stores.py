"""Secret stores of a stack on the real API server: what is read and pushed, as whom, and what goes first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
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

    def configure(self, **changes: Any) -> None:
        """Declare what the dev stack has, and change sections of it."""
        acme, globex = self.namespace("acme"), self.namespace("globex")
        reader = {"serviceAccount": {"name": "account-reader"}}
        stores = {
            "providers": {
                "cluster-api": {
                    "kind": "Kubernetes",
                    "spec": {"remoteNamespace": self.project.pool, "auth": reader},
                },
                "vault": {"kind": "Kubernetes", "spec": {"remoteNamespace": self.vault, "auth": reader}},
                "gitlab": {
                    "kind": "GitLab",
                    "namespace": acme,
                    "credentialsFrom": "gitlab",
                    "spec": {"projectID": "7"},
                },
            },
            "stores": {
                "shared": {
                    "cluster": True,
                    "providerRef": "cluster-api",
                    "conditions": [{"namespaces": [acme, globex]}],
                },
                "acme": {"namespace": acme, "providerRef": "vault"},
                "ci": {"namespace": acme, "providerRef": "gitlab"},
            },
            "reads": {
                "acme-account": {
                    "namespace": acme,
                    "store": "shared",
                    "data": {"key": {"account": "acme/aws", "key": "secretAccessKey"}},
                },
                "globex-account": {
                    "namespace": globex,
                    "store": "shared",
                    "target": "copied",
                    "data": {"key": {"account": "globex/aws", "key": "secretAccessKey"}},
                },
                "ci-token": {"namespace": acme, "store": "ci", "backend": "eso", "data": {"t": {"key": "T"}}},
            },
            "pushes": {
                "acme-db": {
                    "namespace": acme,
                    "store": "acme",
                    "deletionPolicy": "Delete",
                    "data": {"db": {"secret": "db", "key": "credentials", "property": "credentials"}},
                }
            },
        }
        self.project.configure(
            credentials={**CREDENTIALS, "db": json.dumps(SERVICE), "gitlab": TOKEN},
            tenants={name: tenant_of(self.project, name) for name in ("acme", "globex")},
            pool=pool_of(1, 2),
            services={"db": {"namespace": acme, "credentialsFrom": "db"}},
            further={"credfleet:secretStores": {**stores, **changes}},
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
