"""What refusals print to make an existing object the stack's: pasted as it is, under the Pulumi CLI."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import FleetProject

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


def printed(text: str) -> str:
    """Return the command of a refusal, without the remark behind it."""
    (command,) = set(re.findall(r"pulumi import --stack .+?(?= \(if it says|\n|$)", text))
    return command


def paste(project: FleetProject, command: str) -> str:
    done = project.typed(f"{command} --yes --non-interactive")
    assert "sentinel-" not in done.out + done.err
    return "" if done.code == 0 else done.out + done.err


def uid(admin: DynamicClient, kind: str, name: str, namespace: str | None = None) -> str:
    found = admin.resources.get(api_version="v1", kind=kind).get(name=name, namespace=namespace)
    return str(found.metadata.uid)


def make(admin: DynamicClient, kind: str, name: str, namespace: str | None = None, **more: Any) -> str:
    body = {"metadata": {"name": name}, **more}
    admin.resources.get(api_version="v1", kind=kind).create(body=body, namespace=namespace)
    return uid(admin, kind, name, namespace)


def configure(project: FleetProject, tenants: tuple[str, ...], *members: int) -> None:
    project.configure(
        credentials=CREDENTIALS,
        tenants={name: tenant_of(project, name) for name in tenants},
        pool=pool_of(*members),
    )


CASES = {
    "member": (("acme",), (1, 2), "Secret", "aws-2"),
    "namespace": (("acme", "globex"), (1, 2), "Namespace", "globex"),
}


@pytest.mark.life
@pytest.mark.parametrize("case", CASES)
def test_printed_import_in_a_preview_makes_the_object_the_stacks(
    case: str, project: FleetProject, admin: DynamicClient
) -> None:
    tenants, members, kind, name = CASES[case]
    configure(project, ("acme",), 1)
    project.pulumi("up", "--yes", "--skip-preview").quiet()
    namespace = project.pool if kind == "Secret" else None
    name = name if namespace else f"{project.pool}-{name}"
    data = {"data": {"other": base64.b64encode(b"theirs").decode()}} if namespace else {}
    before = make(admin, kind, name, namespace, **data)
    configure(project, tenants, *members)

    refused = project.pulumi("preview")
    assert refused.code != 0
    assert f"{kind} {f'{namespace}/' if namespace else ''}{name} exists, and no stack" in refused.out
    assert paste(project, printed(refused.out + refused.err)) == ""
    project.pulumi("up", "--yes", "--skip-preview").quiet()
    project.pulumi("preview", "--expect-no-changes").quiet()
    assert uid(admin, kind, name, namespace) == before


@pytest.mark.life
def test_printed_import_in_an_update_finds_its_parent_in_a_lost_state(
    project: FleetProject, admin: DynamicClient
) -> None:
    make(admin, "Namespace", project.pool)
    configure(project, (), 1)
    command = printed((refused := project.pulumi("preview")).out + refused.err)
    assert "unknown parent" in paste(project, command)
    assert project.pulumi("up", "--yes", "--skip-preview").code != 0
    assert paste(project, command) == ""
    project.pulumi("up", "--yes", "--skip-preview").quiet()
    project.pulumi("preview", "--expect-no-changes").quiet()
