"""The Roles that `credfleet bootstrap` prints: enough for each identity's work, and not one rule too many."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from pulumi_sandbox.services.parts import ADMIN

from tests.program.conftest import CREDENTIALS, pool_of
from tests.support.fleet_project import FleetProject, Ran
from tests.support.noticed import until
from tests.support.printed_roles import Manifest, apply, printed, to_accounts, workers

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

_ID: Final = "00000000-0000-4000-8000-0000000000aa"
_SECRETS: Final = {
    **CREDENTIALS,
    "db": '{"type": "postgresql", "password": "sentinel-db"}',
    "sp": '{"clientSecret": "sentinel-sp"}',
}


def _stack(folder: Path, kubeconfig: Path, admin: DynamicClient) -> FleetProject:
    """Lay out a stack with a guarded pool, tenants, a service, an ASO credential and a read."""
    unique = f"t{secrets.token_hex(4)}"
    made = replace(FleetProject.make(folder, kubeconfig, unique), stack=unique)
    admin.resources.get(api_version="v1", kind="Namespace").create(
        body={"metadata": {"name": f"{unique}-aso"}}
    )
    _configure(made, admin, "acme", "globex")
    return made


def _configure(project: FleetProject, admin: DynamicClient, *tenants: str, rotated: str = "") -> None:
    slots = {"aws": {"type": "aws", "deliverTo": "aws-account"}}
    aso, acme = project.pool.replace("-pool", "-aso"), f"{project.pool}-acme"
    uid = admin.resources.get(api_version="v1", kind="Namespace").get(name="kube-system").metadata.uid
    principal = {"subscriptionId": _ID, "tenantId": _ID, "clientId": _ID, "secretFrom": "sp"}
    login = {"remoteNamespace": project.pool, "auth": {"serviceAccount": {"name": "account-reader"}}}
    key = {"accessKeyID": {"account": "acme/aws", "key": "accessKeyID"}}
    project.configure(
        credentials={name: text.replace("sentinel", f"sentinel{rotated}") for name, text in _SECRETS.items()},
        tenants={name: {"namespace": f"{project.pool}-{name}", "accounts": slots} for name in tenants},
        pool={
            **pool_of(1, 2, 3),
            "admissionPolicy": True,
            "releasePolicy": "release",
            "cleaners": [] if rotated else [{"kind": "User", "name": "janitor"}],
        },
        services={"db": {"namespace": acme, "credentialsFrom": "db", "bindings": {"orders": {}}}},
        further={
            "credfleet:cluster": {"context": "pulumi-sandbox", "uid": uid, "existingNamespaces": [aso]},
            "credfleet:asoCredentials": {
                "operator": {"namespace": aso},
                "namespaces": {acme: {"servicePrincipal": principal}},
            },
            "credfleet:secretStores": {
                "providers": {"pool": {"kind": "Kubernetes", "spec": login}},
                "stores": {
                    "pool": {"cluster": True, "providerRef": "pool", "conditions": [{"namespaces": [acme]}]}
                },
                "reads": {"key": {"namespace": acme, "store": "pool", "data": key}},
            },
        },
    )


@pytest.fixture
def stack(tmp_path: Path, control_plane: ControlPlane, admin: DynamicClient) -> FleetProject:
    """A stack of which nothing is deployed."""
    return _stack(tmp_path / "project", control_plane.kubeconfig(ADMIN.name), admin)


@pytest.mark.life
def test_printed_roles_are_enough_from_the_first_preview_to_the_end(
    stack: FleetProject, admin: DynamicClient
) -> None:
    preview, drift, deploy = workers(admin, stack).values()
    assert apply(admin, printed(stack), to_accounts)  # those of namespaces that are not there yet
    until(partial(_may, admin, stack, "deploy", "", "namespaces"))
    for identity in (preview, drift):
        first = identity.preview().quiet()
        assert "the pool was not looked at" in first.said
    deploy.up().quiet()
    assert apply(admin, printed(stack), to_accounts) == 0
    until(partial(_may, admin, stack, "drift", stack.pool, "secrets"))
    until(partial(_may, admin, stack, "preview", f"{stack.pool}-acme", "secrets"))
    preview.preview("--expect-no-changes").quiet()
    drift.pulumi("refresh", "--preview-only", "--expect-no-changes").quiet()
    _configure(stack, admin, "acme", "initech", rotated="-new")
    for identity in (preview, drift):
        changed = identity.preview().quiet()
        assert "initech-namespace" in changed.out
    deploy.up().quiet()
    preview.preview("--expect-no-changes").quiet()
    deploy.destroy().quiet()


@pytest.mark.life
@pytest.mark.parametrize("identity", ["preview", "drift", "deploy"])
def test_without_any_one_rule_the_work_of_an_identity_fails(
    tmp_path: Path, stack: FleetProject, admin: DynamicClient, identity: str
) -> None:
    name, roles = f"credfleet-{stack.stack}-{identity}", printed(stack)
    worker = workers(admin, stack)[name]
    if identity != "deploy":
        stack.up().quiet()
    apply(admin, roles, to_accounts)
    until(partial(_may, admin, stack, identity, stack.pool, "secrets"))

    def works(number: int) -> Ran:
        match identity:
            case "preview":
                return worker.preview()
            case "drift":
                return worker.pulumi("refresh", "--preview-only")
            case _:
                fresh = _stack(tmp_path / f"fresh-{number}", stack.kubeconfig, admin)
                return replace(fresh, kubeconfig=worker.kubeconfig).up()

    needless: list[str] = []
    for number, (what, (less, whole)) in enumerate(_one_rule_less(roles, name).items()):
        apply(admin, [less])
        ran = works(number)
        apply(admin, [whole])
        if ran.code == 0 and "was not looked at" not in ran.said and "forbidden" not in ran.said:
            needless.append(what)
    assert needless == []


def _one_rule_less(roles: list[Manifest], name: str) -> Mapping[str, tuple[Manifest, Manifest]]:
    """Return resource → a Role of an identity without the rule for it, and the whole Role."""
    found: dict[str, tuple[Manifest, Manifest]] = {}
    for role in roles:
        for rule in role.get("rules", ()) if role["metadata"]["name"] == name else ():
            rest = [each for each in role["rules"] if each is not rule]
            found.setdefault(rule["resources"][0], ({**role, "rules": rest}, role))
    return found


def _may(admin: DynamicClient, stack: FleetProject, identity: str, namespace: str, resource: str) -> bool:
    user = f"system:serviceaccount:kube-system:credfleet-{stack.stack}-{identity}"
    asked = {"namespace": namespace, "resource": resource, "verb": "get"}
    reviews = admin.resources.get(api_version="authorization.k8s.io/v1", kind="SubjectAccessReview")
    return bool(reviews.create(body={"spec": {"user": user, "resourceAttributes": asked}}).status.allowed)
