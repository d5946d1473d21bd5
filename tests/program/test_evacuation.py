"""An account is evacuated: its tenant gets another one, everything follows, then the first is given back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from components.account_pool.core.keys import CLAIM_TOKEN, POOL_STATE
from tests.program.accounts import accounts
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import FleetProject
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


def evacuate(project: FleetProject, account: str) -> str:
    where = ("--namespace", project.pool, "--kubeconfig", str(project.kubeconfig), "--yes")
    return project.run("pool", "evacuate", account, "--reason", "closed", *where).quiet().out


@pytest.mark.life
def test_a_tenant_leaves_an_account_for_another_one_and_is_never_without(
    project: FleetProject, admin: DynamicClient
) -> None:
    acme = tenant_of(project, "acme")
    acme["accounts"]["aws"]["deliverTo"] = "aws-account"
    project.configure(
        credentials=CREDENTIALS, tenants={"acme": acme}, pool={**pool_of(1, 2), "admissionPolicy": True}
    )
    project.up().quiet()
    secrets = admin.resources.get(api_version="v1", kind="Secret")
    ((first, _),) = [each for each in accounts(admin, project).items() if CLAIM_TOKEN in notes(each[1])]
    ((second, _),) = [each for each in accounts(admin, project).items() if each[0] != first]
    since = secrets.get(namespace=f"{project.pool}-acme").metadata.resourceVersion

    assert "at the next update of stack organization/credfleet/" in evacuate(project, first)
    update = project.up().quiet()
    assert f"acme/aws: leaves {first}: expected to get the only free aws account" in update.out

    copies = Secrets(admin, f"{project.pool}-acme")
    assert copies.data("aws-account") == json.loads(CREDENTIALS[second])
    last = {"metadata": {"name": "last"}}
    secrets.create(namespace=copies.namespace, body=last)
    seen: set[tuple[str, str]] = set()
    for event in secrets.watch(namespace=copies.namespace, resource_version=since, timeout=60):
        if event["object"].metadata.name == "last":
            break
        seen.add((event["object"].metadata.name, event["type"]))
    assert seen == {("aws-account", "MODIFIED")}
    left, taken = (accounts(admin, project)[name] for name in (first, second))
    assert CLAIM_TOKEN not in notes(left)
    assert left["labels"][POOL_STATE] == "quarantined"
    assert CLAIM_TOKEN in notes(taken)
    assert int(left["resourceVersion"]) > int(copies.version("aws-account"))

    evacuate(project, second)
    kept = project.preview("--expect-no-changes").quiet()
    assert f"acme/aws: keeps {second}, which is to be left: expected to find none free" in kept.out
    where = ("--namespace", project.pool, "--kubeconfig", str(project.kubeconfig), "--yes")
    project.run("pool", "unquarantine", first, *where).quiet()
    project.run("pool", "clean", "--command", "aws=true", *where).quiet()
    project.up().quiet()
    assert CLAIM_TOKEN in notes(accounts(admin, project)[first])
    assert copies.data("aws-account") == json.loads(CREDENTIALS[first])
    project.destroy().quiet()


def notes(metadata: dict[str, dict[str, str]]) -> dict[str, str]:
    return metadata.get("annotations") or {}
