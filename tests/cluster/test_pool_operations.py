"""What runs a pool without a person, on a real API server: what it shows, and with which rights it does."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.account_pool.keys import POOL_STATE
from sandbox.tests.support.cluster import ROOT
from tests.support.guarded_pool import MERGE
from tests.support.warm_commands import CREDFLEET

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
