"""What reader and adapter may do with a cluster's entry, as the stand-in of Secret Manager enforces it.

What whoever runs the update needs is in tests/program/test_pull_secrets.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import requests

from components.errors import SecretManagerError
from components.pull_secret.rights import EntryUser, EntryWorkload, list_grants
from components.secret_manager import (
    LATEST,
    SecretManager,
    SecretManagerTarget,
    new_secret_manager,
    secret_name,
    version_name,
)
from sandbox.tests.support.clouds import OWNER, Served, secret_manager
from tests.support.cases import tabled

NAME = secret_name("fleet-prod", "hyperfleet-cls-1-pull-secret")
NODES = EntryWorkload.model_validate(
    {
        "projectNumber": "12",
        "project": "fleet-gke",
        "namespace": "hyperfleet-system",
        "serviceAccount": "nodes",
    }
)
MANAGER = EntryUser.model_validate(
    {"serviceAccount": "pullsecret-manager@fleet-prod.iam.gserviceaccount.com"}
)
READER, ADAPTER = NODES.member, MANAGER.member
FIRST = version_name(NAME, 1)

Call = Callable[[SecretManager], object]
CALLS: dict[str, Call] = {
    "secrets.get": lambda manager: manager.secret(NAME),
    "versions.list": lambda manager: manager.versions(NAME),
    "versions.get": lambda manager: manager.version(FIRST),
    "versions.access": lambda manager: manager.access(version_name(NAME, LATEST)),
    "versions.add": lambda manager: manager.add(NAME, b"2"),
    "secrets.create": lambda manager: manager.create(f"{NAME}-other", {}),
    "secrets.delete": lambda manager: manager.delete(NAME, ""),
}


@pytest.fixture
def google(tmp_path: Path) -> Generator[Served]:
    """A Secret Manager with a cluster's entry, and the rights on it that a stack declares."""
    with secret_manager(tmp_path) as running:
        owner = connected(running, "an-owner")
        owner.create(NAME, {})
        owner.add(NAME, b"1")
        bindings = [
            {"role": each.role, "members": [each.member]}
            for each in list_grants(reader=EntryUser(workload=NODES), adapter=MANAGER)
        ]
        path = f"{running.url}/v1/{NAME}:setIamPolicy"
        answer = requests.post(path, json={"policy": {"bindings": bindings}}, headers=OWNER, timeout=10)
        answer.raise_for_status()
        yield running


def connected(google: Served, token: str) -> SecretManager:
    return new_secret_manager(SecretManagerTarget(f"{google.url}/v1/", token))


def allowed(google: Served, member: str) -> set[str]:
    manager = connected(google, member)
    return {name for name, call in CALLS.items() if is_allowed(lambda call=call: call(manager))}


def is_allowed(call: Callable[[], object]) -> bool:
    try:
        call()
    except SecretManagerError as refused:
        if refused.code != "not-allowed":
            raise
        return False
    return True


def test_a_reader_reads_versions_and_nothing_else(google: Served) -> None:
    assert allowed(google, READER) == {"versions.access"}


def test_an_adapter_looks_adds_and_reads_back_and_nothing_else(google: Served) -> None:
    looking = {"secrets.get", "versions.list", "versions.get"}
    assert allowed(google, ADAPTER) == looking | {"versions.add", "versions.access"}


@tabled("stranger")
def test_a_like_name_is_nobody(google: Served, stranger: str) -> None:
    assert allowed(google, stranger) == set()


def test_nobody_gets_rights_by_default() -> None:
    assert [*list_grants(reader=None, adapter=None)] == []


def test_both_forms_of_an_identity_are_as_google_cloud_writes_them() -> None:
    pool = "projects/12/locations/global/workloadIdentityPools/fleet-gke.svc.id.goog"
    nodes = f"principal://iam.googleapis.com/{pool}/subject/ns/hyperfleet-system/sa/nodes"
    manager = "serviceAccount:pullsecret-manager@fleet-prod.iam.gserviceaccount.com"
    assert (NODES.member, MANAGER.member) == (nodes, manager)
