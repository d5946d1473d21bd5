"""Accounts of a pool whose credentials are in Secret Manager, on the real API server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from components.secret_manager import (
    LATEST,
    SecretManagerTarget,
    open_secret_manager,
    secret_name,
    version_name,
)
from tests.program.accounts import owned
from tests.program.conftest import tenant_of
from tests.support.fleet_project import FleetProject
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


def content(n: int) -> str:
    return json.dumps({"accessKeyID": "AKIA", "secretAccessKey": f"sentinel-{n}"})


@pytest.mark.life
def test_a_claimed_account_goes_from_an_entry_to_secret_manager_and_its_copy_follows_each_version(
    project: FleetProject, admin: DynamicClient, google: str
) -> None:
    manager, name = (
        open_secret_manager(SecretManagerTarget(google, "any")),
        secret_name("test-project", "aws"),
    )
    acme = tenant_of(project, "acme")
    pool, home = Secrets(admin, project.pool), Secrets(admin, acme["namespace"])

    def configure(credentials: dict[str, str], **member: Any) -> None:
        project.configure(
            credentials=credentials,
            tenants={"acme": {**acme, "accounts": {"aws": {"type": "aws", "deliverTo": "copy"}}}},
            pool={
                "allowDestroy": True,
                "members": {"aws-1": {"type": "aws", "accountId": "000000000001", **member}},
            },
            further={"gcp:secretManagerCustomEndpoint": google, "gcp:accessToken": "any"},
        )

    def update(credentials: dict[str, str], **member: Any) -> None:
        configure(credentials, **member)
        project.up().quiet()

    update({"aws-1": content(1)}, credentialsFrom="aws-1", handOver=True)
    before = owned(admin, project)
    assert {*before} == {"acme"}

    manager.create(name, {})
    manager.add(name, content(2).encode())
    referred = {"credentialsFrom": {"gcpSecret": version_name(name, LATEST)}}
    update({}, **referred)
    assert owned(admin, project) == before
    assert pool.data("aws-1") == home.data("copy") == json.loads(content(2))

    manager.add(name, content(3).encode())
    update({}, **referred)
    assert owned(admin, project) == before
    assert home.data("copy") == json.loads(content(3))
    project.preview("--expect-no-changes").quiet()

    configure({"aws-1": content(1)}, credentialsFrom="aws-1")
    refused = project.preview()
    assert "is written of what a reference names" in refused.said
    assert "pulumi import" not in refused.said
    configure({}, **referred)

    states = [path.read_bytes() for path in (project.folder / ".sandbox" / "backend").rglob("*.json")]
    assert states
    assert not any(b"sentinel" in state for state in states)
    project.destroy().quiet()
