"""Claims, copies and names under the Pulumi CLI: limited updates, a renamed stack."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pulumi_sandbox.services.parts import ADMIN

from tests.support.fleet_project import FleetProject, Ran
from tests.support.slot_stack import SlotStack

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

SKIPPED = "warning: zeta/main: expected to find none free"
CLAIMS = {"acme": ["main"], "zeta": ["main"]}


@pytest.fixture
def stack(tmp_path: Path, control_plane: ControlPlane) -> SlotStack:
    """A stack with nothing in it yet."""
    project = FleetProject.make(
        tmp_path / "project", control_plane.kubeconfig(ADMIN.name), f"t{secrets.token_hex(4)}"
    )
    made = SlotStack(project)
    made.declare(1, {"acme": ["main"]})
    return made


def copy_of(stack: SlotStack, admin: DynamicClient, tenant: str) -> dict[str, Any]:
    api = admin.resources.get(api_version="v1", kind="Secret")
    return api.get(name="account", namespace=f"{stack.project.pool}-{tenant}").to_dict()


def told(ran: Ran) -> str:
    """What it says under Diagnostics."""
    return ran.out.partition("Diagnostics:")[2]


def accounts(stack: SlotStack) -> list[str]:
    """The accounts in the state, tenant by tenant."""
    exported = stack.pulumi("stack", "export").quiet().json
    claims = [one for one in exported["deployment"]["resources"] if one["type"].endswith(":AccountClaim")]
    return [f"{one['outputs']['tenant']} {one['outputs']['secretName']}" for one in claims]


@pytest.mark.life
def test_limited_updates_of_a_claim_without_an_account_say_why_and_claim_later(stack: SlotStack) -> None:
    stack.up().quiet()
    stack.declare(1, CLAIMS)
    assert SKIPPED in told(stack.preview("--target", "**zeta**").quiet())
    assert SKIPPED in told(stack.up("--skip-preview", "--target", "**zeta**").quiet())
    assert SKIPPED in told(stack.up("--skip-preview", "--exclude", "**acme**").quiet())
    stack.preview("--expect-no-changes").quiet()

    stack.declare(2, CLAIMS)
    stack.up("--skip-preview", "--exclude", "**zeta**").quiet()
    stack.up("--skip-preview", "--target", "**zeta**").quiet()
    assert accounts(stack) == ["acme aws-1", "zeta aws-2"]
    stack.up("--skip-preview").quiet()
    stack.preview("--expect-no-changes").quiet()


@pytest.mark.life
def test_claim_released_by_another_command_is_claimed_by_the_next_update(stack: SlotStack) -> None:
    stack.up("--skip-preview").quiet()
    stack.declare(2, {"acme": ["main"]})
    stack.up("--skip-preview").quiet()
    holder = "pulumi/organization/credfleet/test/acme/main"
    named = ("-n", stack.project.pool, "-t", "aws", "--tenant", "acme", "--slot", "main")
    stack.project.run("pool", "release", *named, "--holder", holder, "--yes").quiet()
    assert "3 to update" in stack.preview().quiet().out
    stack.up("--skip-preview").quiet()
    assert accounts(stack) == ["acme aws-2"]
    stack.preview("--expect-no-changes").quiet()


@pytest.mark.life
def test_renamed_stack_moves_nothing_until_it_is_held_as_before(
    stack: SlotStack, admin: DynamicClient
) -> None:
    services = {"db": {"namespace": f"{stack.project.pool}-acme", "credentialsFrom": "service"}}
    stack.declare(2, CLAIMS, services=services)
    stack.up("--skip-preview").quiet()
    before = [copy_of(stack, admin, tenant) for tenant in CLAIMS]

    renamed = stack.renamed("new")
    for ran in (
        renamed.preview(),
        renamed.up("--skip-preview"),
        renamed.up("--skip-preview", "--target", "**acme/main**"),
    ):
        assert ran.code != 0
        assert "pulumi config set credfleet:heldAs test" in told(ran)
        assert "shares its account" not in ran.out + ran.err
        assert "delete" not in told(ran)
    renamed.pulumi("config", "set", "credfleet:heldAs", "test", "--stack", "new").quiet()
    renamed.up("--skip-preview").quiet()
    renamed.preview("--expect-no-changes").quiet()
    assert [copy_of(stack, admin, tenant) for tenant in CLAIMS] == before


@pytest.mark.life
def test_renamed_stack_keeps_the_ids_of_services_without_the_roster(stack: SlotStack) -> None:
    services = {"db": {"namespace": f"{stack.project.pool}-acme", "credentialsFrom": "service"}}
    stack.declare(1, {"acme": []}, services=services)
    stack.up("--skip-preview").quiet()
    ran = stack.renamed("new").preview("--target", "**db-source")
    assert ran.code != 0
    assert "pulumi config set credfleet:heldAs" in told(ran)


@pytest.mark.life
def test_a_copy_that_cannot_be_delivered_is_refused_before_anything_is_claimed(
    stack: SlotStack, admin: DynamicClient
) -> None:
    namespace = f"{stack.project.pool}-acme"
    stack.declare(1, {"acme": []})
    stack.up("--skip-preview").quiet()
    api = admin.resources.get(api_version="v1", kind="Secret")
    api.create(body={"metadata": {"name": "account"}}, namespace=namespace)
    stack.declare(1, {"acme": ["main"]})
    ran = stack.up()
    assert ran.code != 0
    assert f"Secret {namespace}/account" in told(ran)
    assert accounts(stack) == []


@pytest.mark.life
def test_stack_of_the_former_version_sees_no_change(stack: SlotStack) -> None:
    """The state of a version without forecasts and with claims in the roster."""
    stack.up("--skip-preview").quiet()
    exported = stack.pulumi("stack", "export").quiet().json
    for each in exported["deployment"]["resources"]:
        for side in ("inputs", "outputs"):
            for key in ("forecast", "owner") if "credfleet:Account" in each["type"] else ():
                each.get(side, {}).pop(key, None)
            if each["type"].endswith(":PoolRoster"):
                each[side].pop("owner")
                each[side]["claims"] = []
    file = stack.project.folder / "state.json"
    file.write_text(json.dumps(exported), encoding="utf-8")
    stack.pulumi("stack", "import", "--file", str(file)).quiet()
    stack.preview("--expect-no-changes").quiet()
