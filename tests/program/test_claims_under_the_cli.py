"""Claims, copies and names under the Pulumi CLI: limited updates, a renamed stack."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.program.conftest import CREDENTIALS, pool_of
from tests.support.fleet_project import FleetProject, Ran

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

SKIPPED = "warning: zeta/main: expected to find none free"
CLAIMS = {"acme": ["main"], "zeta": ["main"]}


@pytest.fixture
def stack(project: FleetProject) -> FleetProject:
    """A stack with nothing in it yet."""
    declare(project, 1, {"acme": ["main"]})
    return project


def declare(
    project: FleetProject, accounts: int, tenants: Mapping[str, Sequence[str]], **sections: Any
) -> None:
    """Have tenants with a claim and a copy in each of their slots. tenants: name → slots."""
    slot = {"type": "aws", "deliverTo": {"name": "account"}}
    project.configure(
        credentials={**CREDENTIALS, "service": '{"user":"u","password":"sentinel-s"}'},
        tenants={
            name: {"namespace": f"{project.pool}-{name}", "accounts": dict.fromkeys(slots, slot)}
            for name, slots in tenants.items()
        },
        pool=pool_of(*range(1, accounts + 1)),
        **sections,
    )


def copy_of(stack: FleetProject, admin: DynamicClient, tenant: str) -> dict[str, Any]:
    api = admin.resources.get(api_version="v1", kind="Secret")
    return api.get(name="account", namespace=f"{stack.pool}-{tenant}").to_dict()


def told(ran: Ran) -> str:
    """What it says under Diagnostics."""
    return ran.out.partition("Diagnostics:")[2]


def accounts(stack: FleetProject) -> list[str]:
    """The accounts in the state, tenant by tenant."""
    exported = stack.pulumi("stack", "export").quiet().json
    claims = [one for one in exported["deployment"]["resources"] if one["type"].endswith(":AccountClaim")]
    return [f"{one['outputs']['tenant']} {one['outputs']['secretName']}" for one in claims]


@pytest.mark.life
def test_limited_updates_of_a_claim_without_an_account_say_why_and_claim_later(stack: FleetProject) -> None:
    stack.pulumi("up", "--yes").quiet()
    declare(stack, 1, CLAIMS)
    assert SKIPPED in told(stack.preview("--target", "**zeta**").quiet())
    assert SKIPPED in told(stack.up("--target", "**zeta**").quiet())
    assert SKIPPED in told(stack.up("--exclude", "**acme**").quiet())
    stack.preview("--expect-no-changes").quiet()

    declare(stack, 2, CLAIMS)
    stack.up("--exclude", "**zeta**").quiet()
    stack.up("--target", "**zeta**").quiet()
    assert accounts(stack) == ["acme aws-1", "zeta aws-2"]
    stack.up().quiet()
    stack.preview("--expect-no-changes").quiet()


@pytest.mark.life
def test_claim_released_by_another_command_is_claimed_by_the_next_update(stack: FleetProject) -> None:
    stack.up().quiet()
    declare(stack, 2, {"acme": ["main"]})
    stack.up().quiet()
    holder = "pulumi/organization/credfleet/test/acme/main"
    named = ("-n", stack.pool, "-t", "aws", "--tenant", "acme", "--slot", "main")
    stack.run("pool", "release", *named, "--holder", holder, "--yes").quiet()
    assert "3 to update" in stack.preview().quiet().out
    stack.up().quiet()
    assert accounts(stack) == ["acme aws-2"]
    stack.preview("--expect-no-changes").quiet()


@pytest.mark.life
def test_renamed_stack_moves_nothing_until_it_is_held_as_before(
    stack: FleetProject, admin: DynamicClient
) -> None:
    services = {"db": {"namespace": f"{stack.pool}-acme", "credentialsFrom": "service"}}
    declare(stack, 2, CLAIMS, services=services)
    stack.up().quiet()
    before = [copy_of(stack, admin, tenant) for tenant in CLAIMS]

    stack.pulumi("stack", "rename", "new").quiet()
    renamed = replace(stack, stack="new")
    for ran in (
        renamed.preview(),
        renamed.up(),
        renamed.up("--target", "**acme/main**"),
    ):
        assert ran.code != 0
        assert "pulumi config set credfleet:heldAs test" in told(ran)
        assert "shares its account" not in ran.out + ran.err
        assert "delete" not in told(ran)
    renamed.pulumi("config", "set", "credfleet:heldAs", "test", "--stack", "new").quiet()
    renamed.up().quiet()
    renamed.preview("--expect-no-changes").quiet()
    assert [copy_of(stack, admin, tenant) for tenant in CLAIMS] == before


@pytest.mark.life
def test_renamed_stack_keeps_the_ids_of_services_without_the_roster(stack: FleetProject) -> None:
    services = {"db": {"namespace": f"{stack.pool}-acme", "credentialsFrom": "service"}}
    declare(stack, 1, {"acme": []}, services=services)
    stack.up().quiet()
    stack.pulumi("stack", "rename", "new").quiet()
    ran = replace(stack, stack="new").preview("--target", "**db-source")
    assert ran.code != 0
    assert "pulumi config set credfleet:heldAs" in told(ran)


@pytest.mark.life
def test_a_copy_that_cannot_be_delivered_is_refused_before_anything_is_claimed(
    stack: FleetProject, admin: DynamicClient
) -> None:
    namespace = f"{stack.pool}-acme"
    declare(stack, 1, {"acme": []})
    stack.up().quiet()
    api = admin.resources.get(api_version="v1", kind="Secret")
    api.create(body={"metadata": {"name": "account"}}, namespace=namespace)
    declare(stack, 1, {"acme": ["main"]})
    ran = stack.pulumi("up", "--yes")
    assert ran.code != 0
    assert f"Secret {namespace}/account" in told(ran)
    assert accounts(stack) == []


@pytest.mark.life
def test_stack_of_the_former_version_sees_no_change(stack: FleetProject) -> None:
    """The state of a version without forecasts and with claims in the roster."""
    stack.up().quiet()
    exported = stack.pulumi("stack", "export").quiet().json
    for each in exported["deployment"]["resources"]:
        for side in ("inputs", "outputs"):
            for key in ("forecast", "owner") if "credfleet:Account" in each["type"] else ():
                each.get(side, {}).pop(key, None)
            if each["type"].endswith(":PoolRoster"):
                each[side].pop("owner")
                each[side]["claims"] = []
    file = stack.folder / "state.json"
    file.write_text(json.dumps(exported), encoding="utf-8")
    stack.pulumi("stack", "import", "--file", str(file)).quiet()
    stack.preview("--expect-no-changes").quiet()
