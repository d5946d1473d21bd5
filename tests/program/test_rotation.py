"""Keys of declared accounts that are rotated between updates, on the real API server."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from components.account_pool.core.keys import KEY_REPLACED
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import FleetProject, Ran
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


def key(number: int) -> dict[str, str]:
    return {"accessKeyID": f"AKIA{number}", "secretAccessKey": f"sentinel-{number}"}


def rotate(project: FleetProject, *words: str) -> Ran:
    where = ("-n", project.pool, "--kubeconfig", str(project.kubeconfig), "--yes")
    return project.run("pool", "rotate", "aws-1", *words, *where)


def set_by_hand(project: FleetProject, number: int) -> None:
    """Put a new key into use that somebody made."""
    (project.folder / "key.json").write_text(json.dumps(key(number)))
    rotate(project, "--values", "key.json").quiet()


@pytest.mark.life
def test_configured_credential_is_written_when_it_changes_and_undoes_no_rotation(
    project: FleetProject, admin: DynamicClient
) -> None:
    acme = tenant_of(project, "acme")
    acme["accounts"]["aws"]["deliverTo"] = "copy"

    def configure(credential: dict[str, str], **member: Any) -> None:
        pool = pool_of(1)
        pool["members"]["aws-1"] |= member
        pool |= {"admissionPolicy": True}
        credentials = {**CREDENTIALS, "aws-1": json.dumps(credential)}
        read = {"namespace": acme["namespace"], "store": "pool"}
        read["data"] = {"id": {"account": "acme/aws", "key": "accessKeyID"}}
        spec = {"remoteNamespace": project.pool, "auth": {"serviceAccount": {"name": "account-reader"}}}
        stores = {
            "providers": {"api": {"kind": "Kubernetes", "spec": spec}},
            "stores": {"pool": {"cluster": True, "providerRef": "api"}},
            "reads": {"id": read},
        }
        further = {"credfleet:secretStores": stores}
        project.configure(credentials=credentials, tenants={"acme": acme}, pool=pool, further=further)

    configure(key(1))
    project.up().quiet()
    pool, home = Secrets(admin, project.pool), Secrets(admin, acme["namespace"])

    set_by_hand(project, 21)
    previewed = project.preview().quiet()
    assert "acme/aws: account aws-1 has key" in previewed.said
    assert "acme/aws-copy, stores/id-read will follow" in previewed.said
    refused = rotate(project, "--complete")
    assert (refused.code, "tenant acme, slot aws" in refused.said) == (1, True)
    project.up().quiet()
    assert pool.data("aws-1") == home.data("copy") == key(21)
    project.preview("--expect-no-changes").quiet()
    configure(key(2))
    assert "its key is being rotated (delivered)" in project.preview().said
    configure(key(1))
    rotate(project, "--complete").quiet()
    project.preview("--refresh", "--expect-no-changes").quiet()

    configure(key(1), handOver=True)
    refused = project.preview()
    assert "this state remembers the credential from before a rotation" in refused.said
    assert "→ pulumi up --refresh --stack test" in refused.said
    project.up("--refresh").quiet()
    project.up("--refresh").quiet()
    assert pool.data("aws-1") == key(21)

    configure(key(2), handOver=True)
    project.up().quiet()
    assert pool.data("aws-1") == home.data("copy") == key(2)
    configure(key(3), handOver=True)
    project.preview().quiet()
    project.up().quiet()
    assert pool.data("aws-1") == key(3)
    project.preview("--refresh", "--expect-no-changes").quiet()
    assert KEY_REPLACED not in pool.live("aws-1")["metadata"]["annotations"]

    pool.change("aws-1", "secretAccessKey", "sentinel-31")
    refused = project.preview("--refresh")
    assert "wrote another credential than is configured" in refused.said
    kept, written = re.findall(r"(kubectl annotate secret aws-1 .*?key-replaced=\w+)", refused.said)
    for command, after in ((kept, "sentinel-31"), (written, "sentinel-3")):
        pool.annotate("aws-1", {KEY_REPLACED: command.rpartition("=")[2]})
        project.up("--refresh").quiet()
        assert pool.data("aws-1")["secretAccessKey"] == after
