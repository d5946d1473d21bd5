"""Who may do what: every permission of Secret Manager, by a policy of the secret or by the project."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import requests
from google.api_core import exceptions as errors
from google.iam.v1.policy_pb2 import Binding, Policy
from pulumi_sandbox.services.cloud.secret_manager.callers import EMPTY_ETAG, ROLES, replaced

from sandbox.tests.support.clouds import OWNER, Served, secret_manager

SECRETS = "/v1/projects/acme-prod-1/secrets"
ORDERS = f"{SECRETS}/orders"
ACCESSOR = "roles/secretmanager.secretAccessor"
ADA = "user:ada@example.com"
NODES = "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p.svc.id.goog/subject/ns/a/sa/b"
CALLS: dict[str, tuple[str, str, Any]] = {
    "secrets.create": ("POST", f"{SECRETS}?secretId=other", {"replication": {"automatic": {}}}),
    "secrets.list": ("GET", SECRETS, None),
    "secrets.get": ("GET", ORDERS, None),
    "secrets.update": ("PATCH", f"{ORDERS}?updateMask=labels", {"labels": {"a": "1"}}),
    "secrets.getIamPolicy": ("GET", f"{ORDERS}:getIamPolicy", None),
    "secrets.setIamPolicy": ("POST", f"{ORDERS}:setIamPolicy", {"policy": {}}),
    "versions.add": ("POST", f"{ORDERS}:addVersion", {"payload": {"data": "YQ=="}}),
    "versions.list": ("GET", f"{ORDERS}/versions", None),
    "versions.get": ("GET", f"{ORDERS}/versions/1", None),
    "versions.access": ("GET", f"{ORDERS}/versions/1:access", None),
    "versions.enable": ("POST", f"{ORDERS}/versions/1:enable", {}),
    "versions.disable": ("POST", f"{ORDERS}/versions/1:disable", {}),
    "versions.destroy": ("POST", f"{ORDERS}/versions/1:destroy", {}),
    "secrets.delete": ("DELETE", ORDERS, None),
}


def call(service: Served, method: str, path: str, body: object = None, who: str = "") -> requests.Response:
    headers = {"Authorization": f"Bearer {who}"} if who else OWNER
    return requests.request(method, f"{service.url}{path}", json=body, headers=headers, timeout=10)


@pytest.fixture
def service(tmp_path: Path) -> Generator[Served]:
    """One with a secret of one version, which nobody but owners may use."""
    with secret_manager(tmp_path) as running:
        call(running, "POST", f"{SECRETS}?secretId=orders", {"replication": {"automatic": {}}})
        call(running, "POST", f"{ORDERS}:addVersion", {"payload": {"data": "YQ=="}})
        yield running


def bind(service: Served, role: str, member: str) -> None:
    wanted = {"policy": {"version": 3, "bindings": [{"role": role, "members": [member]}]}}
    call(service, "POST", f"{ORDERS}:setIamPolicy", wanted).raise_for_status()


def allow(service: Served, member: str, *permissions: str) -> None:
    given = {"member": member, "permissions": permissions}
    requests.put(f"{service.url}/sandbox/callers", json=given, timeout=10).raise_for_status()


def used(service: Served, member: str) -> list[str]:
    return requests.get(f"{service.url}/sandbox/callers", params={"member": member}, timeout=10).json()


def possible(service: Served, member: str) -> set[str]:
    """Every call that is not denied; the last one deletes the secret."""
    return {
        name
        for name, (method, path, body) in CALLS.items()
        if call(service, method, path, body, member).status_code != 403
    }


def test_a_permission_of_the_project_allows_its_call_and_no_other(service: Served) -> None:
    for permission in CALLS:
        allow(service, ADA, permission)
        assert possible(service, ADA) == {permission}
        assert used(service, ADA) == [permission]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("member", [ADA, NODES])
def test_a_role_on_a_secret_allows_what_it_holds_there_and_nothing_of_the_project(
    service: Served, role: str, member: str
) -> None:
    bind(service, role, member)
    of_the_project = {"secrets.create", "secrets.list"}
    asked = [name for name in CALLS if name not in of_the_project | {"secrets.setIamPolicy"}]
    allowed = {name for name in asked if call(service, *CALLS[name], member).status_code != 403}
    assert allowed == ROLES[role] & {*asked}
    assert {call(service, *CALLS[name], member).status_code for name in of_the_project} == {403}
    told = call(service, "GET", ORDERS, who="user:eve@example.com").json()["error"]["message"]
    assert told.startswith(
        "Permission 'secretmanager.secrets.get' denied for resource 'projects/acme-prod-1/"
    )


def test_a_role_of_everybody_is_each_ones(service: Served) -> None:
    bind(service, "roles/secretmanager.viewer", "allUsers")
    assert call(service, "GET", ORDERS, who=ADA).status_code == 200


def test_what_is_not_there_is_denied_to_who_might_not_see_it(service: Served) -> None:
    bind(service, "roles/secretmanager.viewer", ADA)
    assert call(service, "GET", f"{SECRETS}/none", who=ADA).status_code == 403
    allow(service, ADA, "secrets.get")
    assert call(service, "GET", f"{SECRETS}/none", who=ADA).status_code == 404


def policy(*bindings: tuple[str, str], etag: bytes = b"", condition: bool = False) -> Policy:
    made = Policy(etag=etag, bindings=[Binding(role=role, members=[member]) for role, member in bindings])
    if condition:
        made.bindings[0].condition.expression = "true"
    return made


@pytest.mark.parametrize(
    "member",
    [
        ADA,
        NODES,
        "serviceAccount:reader@acme-prod-1.iam.gserviceaccount.com",
        "serviceAccount:acme-prod-1.svc.id.goog[hyperfleet-system/pullsecret-adapter-job]",
    ],
)
def test_the_ways_to_name_somebody_are_accepted(member: str) -> None:
    assert replaced(Policy(), policy((ACCESSOR, member))).bindings[0].members == [member]


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (policy((ACCESSOR, "ada@example.com")), errors.InvalidArgument),
        (policy((ACCESSOR, "users:ada@example.com")), errors.InvalidArgument),
        (policy(("roles/owner", ADA)), errors.InvalidArgument),
        (policy((ACCESSOR, ADA), condition=True), errors.MethodNotImplemented),
        (policy((ACCESSOR, ADA), etag=b"of another"), errors.Aborted),
    ],
)
def test_a_policy_that_cannot_be_kept_is_refused(wanted: Policy, error: type[Exception]) -> None:
    with pytest.raises(error):
        replaced(Policy(etag=EMPTY_ETAG), wanted)


def test_bindings_of_one_role_become_one_and_the_etag_another() -> None:
    own = "roles/secretmanager.admin"
    kept = replaced(Policy(etag=EMPTY_ETAG), policy((own, NODES), (ACCESSOR, ADA), (own, ADA)))
    assert [(each.role, [*each.members]) for each in kept.bindings] == [
        (own, [NODES, ADA]),
        (ACCESSOR, [ADA]),
    ]
    assert kept.etag != EMPTY_ETAG
    assert replaced(kept, Policy()).bindings == []
