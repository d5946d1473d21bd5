"""What runs a pool without a person, on a real API server: what it shows, and with which rights it does."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from components.account_pool.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.keys import POOL_STATE
from components.connection import ClusterTarget, connect
from operations.main import app
from sandbox.tests.support.cluster import ROOT
from tests.support.deployed import Accounts
from tests.support.fleet_project import CREDFLEET
from tests.support.guarded_pool import MERGE
from tests.support.noticed import until

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane


def add_account(admin: DynamicClient, namespace: str, name: str, **labels: str) -> None:
    body = {"metadata": {"name": name, "labels": {"hyperscaler-type": "aws", **labels}}}
    admin.resources.get(api_version="v1", kind="Secret").create(namespace=namespace, body=body)


def document(lines: Iterator[str]) -> Any:
    """Read one document of those that a command goes on writing."""
    text = ""
    for line in lines:
        text += line
        if line == "}\n":
            break
    return json.loads(text)


def test_status_is_shown_again_with_every_change_and_ends_well_when_interrupted(
    control_plane: ControlPlane, admin: DynamicClient, namespace: str, tmp_path: Path
) -> None:
    add_account(admin, namespace, "aws-1")
    where = ("--namespace", namespace, "--kubeconfig", str(control_plane.kubeconfig("admin")))
    command = [str(CREDFLEET), "pool", "status", "--watch", "--output", "json", *where]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    ) as process:
        assert process.stdout is not None
        shown = iter(process.stdout.readline, "")
        assert [each["state"] for each in document(shown)["accounts"]] == ["free"]
        secrets: Any = admin.resources.get(api_version="v1", kind="Secret")
        dirty = {"metadata": {"labels": {POOL_STATE: "dirty"}}}
        booked = secrets.patch(name="aws-1", namespace=namespace, body=dirty, content_type=MERGE)
        (account,) = document(shown)["accounts"]
        assert account["state"] == "dirty"
        assert account["since"] in [str(each["time"]) for each in booked.metadata.managedFields]
        process.send_signal(signal.SIGINT)
    assert process.returncode == 0


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
