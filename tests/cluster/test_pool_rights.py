"""The Roles a pool declares, as real users have them: what each may do, and what the API server refuses."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.dynamic.exceptions import DynamicApiError

from components.account_pool.component import (
    AccountPool,
    AccountPoolArgs,
    Grantee,
    TenantAccounts,
    TenantAccountsArgs,
)
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.model import ClaimRequest
from tests.support.cases import table
from tests.support.guarded_pool import MERGE
from tests.support.noticed import until
from tests.support.people import impersonating
from tests.support.recorder import record

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

RBAC = "rbac.authorization.k8s.io/v1"
READER = "system:serviceaccount:tenant-acme:account-reader"


@dataclass(frozen=True)
class Place:
    """A pool with two accounts, `mine` claimed by acme, whose people have the Roles a stack declares."""

    namespace: str
    people: dict[str, DynamicClient]

    def allows(self, user: str) -> bool:
        """Whether a user has any right in the pool, as those have who were given one a moment ago."""
        return not self.refuses(user, "Secret", "get")

    def refuses(self, user: str, kind: str, verb: str, name: str = "mine") -> bool:
        """Let a user try something, as a dry run; whether the API server forbids it."""
        api: Any = self.people[user].resources.get(api_version="v1", kind=kind)
        body, here, dry = _body(kind, name), {"namespace": self.namespace}, {"dry_run": "All"}
        try:
            match verb:
                case "get":
                    api.get(name=name, **here)
                case "list":
                    api.get(**here)
                case "patch":
                    api.patch(name=name, body={}, content_type=MERGE, **here, **dry)
                case "update":
                    api.replace(body=body, **here, **dry)
                case "delete":
                    api.delete(name=name, body={"dryRun": ["All"]}, **here)
                case _:
                    api.create(body=_body(kind, f"x-{secrets.token_hex(4)}"), **here, **dry)
        except DynamicApiError as error:
            return error.status == 403
        return False


def _body(kind: str, name: str) -> dict[str, Any]:
    body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
    return {**body, "involvedObject": {}} if kind == "Event" else body


@pytest.fixture(scope="module")
def place(
    control_plane: ControlPlane, admin: DynamicClient, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Place]:
    namespace, folder = f"test-{secrets.token_hex(5)}", tmp_path_factory.mktemp("people")
    admin.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": namespace}})
    for kind, names in (("Secret", ("mine", "other")), ("ConfigMap", ("mine",))):
        api = admin.resources.get(api_version="v1", kind=kind)
        for name in names:
            api.create(body={"metadata": {"name": name}}, namespace=namespace)
    declare_rights(admin, namespace)
    with ExitStack() as clients:
        people = {
            user: clients.enter_context(
                impersonating(control_plane.kubeconfig("admin"), folder / "discovery.json", user)
            )
            for user in ("provisioner", "janitor", READER, "nobody")
        }
        here = Place(namespace, people)
        for user in ("provisioner", "janitor", READER):
            until(partial(here.allows, user))
        yield here


def declare_rights(admin: DynamicClient, namespace: str) -> None:
    """Create for people the very Roles that a stack declares."""

    def program() -> None:
        AccountPool(
            "pool",
            AccountPoolArgs(
                namespace=namespace,
                settings=PoolConfigMap(),
                members={},
                claimers=[Grantee(kind="User", name="provisioner")],
                cleaners=[Grantee(kind="User", name="janitor")],
            ),
        )
        TenantAccounts(
            "acme",
            TenantAccountsArgs(
                pool_namespace=namespace,
                tenant="acme",
                claims=[ClaimRequest("acme", "aws", holder="h")],
                reader=Grantee(kind="ServiceAccount", name="account-reader", namespace="tenant-acme"),
            ),
        )

    claimed = {"pulumi-python:dynamic/credfleet:AccountClaim": {"secretName": "mine"}}
    recorder = record(program, outputs=claimed)
    for kind in ("Role", "RoleBinding"):
        for drawn in recorder.of_type(f"kubernetes:{RBAC}:{kind}").values():
            admin.resources.get(api_version=RBAC, kind=kind).create(body=dict(drawn.inputs))


MAY: dict[str, dict[str, Sequence[str]]] = table(__file__, "MAY")
TRIED: dict[str, Sequence[str]] = {
    "Secret": ("get", "list", "patch", "create", "update", "delete"),
    "ConfigMap": ("get", "list", "patch", "create", "update", "delete"),
    "Event": ("list", "create"),
}


@pytest.mark.parametrize("kind", TRIED)
@pytest.mark.parametrize("user", MAY)
def test_each_may_do_what_its_work_needs_and_nothing_else(place: Place, user: str, kind: str) -> None:
    allowed = [verb for verb in TRIED[kind] if not place.refuses(user, kind, verb)]
    assert allowed == list(MAY[user][kind])


def test_a_tenant_reads_the_account_it_claimed_and_no_other(place: Place) -> None:
    assert not place.refuses(READER, "Secret", "get", "mine")
    assert place.refuses(READER, "Secret", "get", "other")


def test_nobody_has_rights_in_another_namespace(place: Place, namespace: str) -> None:
    elsewhere = Place(namespace, place.people)
    for user in place.people:
        assert elsewhere.refuses(user, "Secret", "list")
