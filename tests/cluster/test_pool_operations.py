"""What runs a pool without a person, on a real API server: what it shows, and with which rights it does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.connection import ClusterTarget, connect
from operations.main import app
from tests.support.deployed import Accounts
from tests.support.noticed import until

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane


def add_account(admin: DynamicClient, namespace: str, name: str, **labels: str) -> None:
    body = {"metadata": {"name": name, "labels": {"hyperscaler-type": "aws", **labels}}}
    admin.resources.get(api_version="v1", kind="Secret").create(namespace=namespace, body=body)


def test_who_may_read_one_pool_of_the_cluster_is_shown_that_one(
    control_plane: ControlPlane, admin: DynamicClient, namespace: str, tmp_path: Path
) -> None:
    add_account(admin, namespace, "aws-1")
    settings = {"metadata": {"name": CONFIG_MAP}, "data": PoolConfigMap().render()}
    admin.resources.get(api_version="v1", kind="ConfigMap").create(body=settings, namespace=namespace)
    group, named = "rbac.authorization.k8s.io", {"metadata": {"name": namespace}}
    lists = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}
    bound = {
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": namespace},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
    }
    for kind, body in (("ClusterRole", {"rules": [lists]}), ("ClusterRoleBinding", bound)):
        api: Any = admin.resources.get(api_version=f"{group}/v1", kind=kind)
        api.create(body={**named, **body})
    reads = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}
    records = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
    kubeconfig = Accounts(control_plane, admin, namespace, tmp_path).kubeconfig("reader", [reads, records])
    connection = connect(ClusterTarget(kubeconfig=str(kubeconfig)))
    until(lambda: connection.call("GET", "/api/v1/namespaces?limit=1").status == 200)
    result = CliRunner().invoke(
        app, ["pool", "status", "--all", "-o", "name", "--kubeconfig", str(kubeconfig)]
    )
    assert (result.exit_code, result.stdout) == (0, f"{namespace}/aws-1\n"), result.stderr
