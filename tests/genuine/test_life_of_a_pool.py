"""A pool and two stacks that claim from it, under the Pulumi CLI and its own provider, from birth to end.

What happens to the pool is watched from outside by a process of its own, and judged at every instant.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.fire.storm.history import History, changes_in
from tests.program.accounts import accounts, owned
from tests.program.conftest import CREDENTIALS, pool_of
from tests.support.fleet_project import FleetProject
from tests.support.members import Members
from tests.support.secrets import Secrets
from tests.support.watching import watched

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

_PACK: Final = ("--policy-pack", "policies")
_KILLS: Final = 20
_WRITES: Final = 16
"""Of the state, by an update of a consumer that is not killed: about as many."""
_LONGEST: Final = 12.0
"""Seconds after which an update is killed that has not written so often."""


def _want(stack: FleetProject, *tenants: str) -> None:
    """Have a stack want one account, and a copy of it, for each of these tenants."""
    slots = {"aws": {"type": "aws", "deliverTo": "aws-account"}}
    wanted = {name: {"namespace": f"{stack.pool}-{name}", "accounts": slots} for name in tenants}
    stack.configure(credentials={}, tenants=wanted, pool={"from": {"namespace": stack.pool}})


def _copy(admin: DynamicClient, stack: FleetProject, tenant: str) -> dict[str, Any]:
    return Secrets(admin, f"{stack.pool}-{tenant}").data("aws-account")


def test_a_shared_pool_lives_through_everything_with_one_owner_an_account(
    project: FleetProject, admin: DynamicClient, tmp_path: Path
) -> None:
    first, second = (project.consumer(tmp_path / name) for name in ("first", "second"))
    guarded = {**pool_of(1, 2, 3), "admissionPolicy": True, "releasePolicy": "release"}
    project.configure(credentials=CREDENTIALS, tenants={}, pool=guarded)
    project.up(*_PACK).quiet()
    seen = tmp_path / "seen"
    seen.mkdir()
    with watched(project, seen, Members(admin, project.pool), admin):
        _want(first, "acme")
        _want(second, "globex")
        for stack in (first, second):
            stack.up(*_PACK).quiet()
            stack.preview("--expect-no-changes", *_PACK).quiet()
        before = owned(admin, project)
        assert set(before) == {"acme", "globex"}

        _rotate(admin, project, first, guarded)
        _add_and_remove_a_tenant(admin, project, second)
        _repair_what_was_deleted(admin, first)
        _meet_a_member_that_fails(admin, project, guarded)
        _be_killed(admin, project, second)

        assert owned(admin, project)["acme"] == before["acme"]
        for stack in (first, second):
            stack.preview("--expect-no-changes").quiet()
            stack.destroy().quiet()
        assert not owned(admin, project)
    found = History({}).replay(*(changes_in(seen / kind) for kind in ("secrets", "configmaps")))
    assert found.bound
    assert not found.wrong
    project.destroy().quiet()


def _rotate(
    admin: DynamicClient, project: FleetProject, consumer: FleetProject, pool: dict[str, Any]
) -> None:
    account, _ = owned(admin, project)["acme"]
    rotated = {**CREDENTIALS, account: CREDENTIALS[account].replace("sentinel", "sentinel-new")}
    project.configure(credentials=rotated, tenants={}, pool=pool)
    project.up(*_PACK).quiet()
    consumer.up(*_PACK).quiet()
    assert _copy(admin, consumer, "acme") == json.loads(rotated[account])
    project.preview("--expect-no-changes").quiet()


def _add_and_remove_a_tenant(admin: DynamicClient, project: FleetProject, stack: FleetProject) -> None:
    _want(stack, "globex", "initech")
    stack.up(*_PACK).quiet()
    assert set(owned(admin, project)) == {"acme", "globex", "initech"}
    _want(stack, "globex")
    stack.up(*_PACK).quiet()
    assert set(owned(admin, project)) == {"acme", "globex"}


def _repair_what_was_deleted(admin: DynamicClient, stack: FleetProject) -> None:
    had = _copy(admin, stack, "acme")
    secrets = admin.resources.get(api_version="v1", kind="Secret")
    secrets.delete(name="aws-account", namespace=f"{stack.pool}-acme")
    assert stack.pulumi("refresh", "--preview-only", "--expect-no-changes").code == 7
    stack.refresh().quiet()
    stack.up(*_PACK).quiet()
    assert _copy(admin, stack, "acme") == had


def _meet_a_member_that_fails(admin: DynamicClient, project: FleetProject, pool: dict[str, Any]) -> None:
    """An account whose Secret is somebody's already is refused; without it the next update goes through."""
    secrets = admin.resources.get(api_version="v1", kind="Secret")
    body = {"metadata": {"name": "aws-4"}, "data": {}}
    secrets.create(namespace=project.pool, body=body)
    declared = project.folder / "Pulumi.test.yaml"
    kept = declared.read_text(encoding="utf-8")
    document = json.loads(kept)
    members = document["config"]["credfleet:accountPool"]["members"]
    members["aws-4"] = {**members["aws-1"], "accountId": "000000000004"}
    declared.write_text(json.dumps(document), encoding="utf-8")
    failed = project.up(*_PACK)
    assert failed.code != 0, failed.out
    assert "aws-4" in failed.out
    declared.write_text(kept, encoding="utf-8")
    secrets.delete(name="aws-4", namespace=project.pool)
    project.up(*_PACK).quiet()
    assert set(accounts(admin, project)) >= {"aws-1", "aws-2", "aws-3"}


def _be_killed(admin: DynamicClient, project: FleetProject, stack: FleetProject) -> None:
    """Kill updates of a stack at twenty instants; the printed command then converges."""
    chance = random.Random(43)
    for number in range(_KILLS):
        _want(stack, *(("globex", "initech") if number % 2 else ("globex",)))
        stack.up_within(chance.randrange(1, _WRITES), seconds=chance.uniform(1, _LONGEST))
    _want(stack, "globex", "initech")
    converged = stack.up(*_PACK)
    if converged.code:
        stack.refresh("--clear-pending-creates").quiet()
        stack.up(*_PACK).quiet()
    assert set(owned(admin, project)) == {"acme", "globex", "initech"}
    assert _copy(admin, stack, "initech")
