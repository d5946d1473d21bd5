"""Which tenants the states of a project contain, whatever its files declare."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pulumi_sandbox.protocol import urns

from components.account_pool.core.consumers import stack_of
from components.config.shards import STACKS, Shard, Shards, Stacks
from components.errors import CredfleetError
from components.labels import TENANT
from components.naming import TENANT_NAMESPACE, TENANT_NAMESPACE_END
from components.stack_config.stack import Settings
from operations.sandbox.results import FLEET
from operations.stack.at_rest import StackAtRest
from operations.stack.state import deployment_in

States: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Stack → its deployment with encrypted secrets."""


def states_in(folder: Path) -> States:
    """Read the states of a project in a file backend; raises CredfleetError as `deployment_in`."""
    files = (path for ending in ("*.json", "*.json.gz") for path in folder.glob(ending))
    return {path.name.split(".json")[0]: deployment_in(path.read_bytes(), str(path)) for path in files}


def tenants_in(deployment: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of the tenants in a state.

    After a failed update, they can be more than the stack should have.
    """
    found: list[str] = []
    for each in _alive(deployment):
        inputs = each.get("inputs", {})
        if each["type"] == FLEET:
            found += map(str, inputs.get("tenantNames") or ())
        elif each["type"] == TENANT_NAMESPACE and TENANT in (inputs.get("metadata", {}).get("labels") or {}):
            found.append(urns.parse(each["urn"]).name.removesuffix(TENANT_NAMESPACE_END))
    return [*dict.fromkeys(found)]


def stacks_of(
    states: States, stacks: Iterable[str], held_as: str | None = None
) -> Mapping[str, Collection[str]]:
    """Return tenant → the stacks whose states contain it: one, or two after an interrupted split.

    stacks: those of a fleet. held_as: PROJECT/STACK as which the fleet holds accounts; states with such
    claims belong to it too.
    """
    named, found = {*stacks}, dict[str, list[str]]()
    for stack, deployment in states.items():
        holders = (stack_of(str(each.get("inputs", {}).get("holder"))) for each in _alive(deployment))
        if stack in named or (held_as and any(each and each.endswith(f"/{held_as}") for each in holders)):
            for tenant in tenants_in(deployment):
                found.setdefault(tenant, []).append(stack)
    return found


def _alive(deployment: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (each for each in deployment.get("resources") or () if not each.get("delete"))


def refuse_strays(at_rest: StackAtRest, settings: Settings, states: Callable[[], States]) -> None:
    """Raise CredfleetError `tenant-elsewhere` if a stack gets a tenant that another one has.

    Otherwise an update of the other stack could delete the tenant's resources, and one of this stack would
    create them again.
    """
    root, stack = at_rest.project.directory, at_rest.stack
    if settings.tenants_from is None:
        return
    alone, known = Shards(stacks={stack: Shard()}), states()
    fleet = next((each for each in Stacks.read(root).fleets.values() if stack in each.stacks), alone)
    folder, own = root / settings.tenants_from, tenants_in(known.get(stack, {}))
    leaving = (each for each in own if each not in settings.tenants and (folder / f"{each}.yaml").exists())
    strays = {tenant: (stack, fleet.stack_of(tenant)) for tenant in leaving}
    held_as = f"{at_rest.project.name}/{settings.held_as or stack}"
    others = stacks_of(known, fleet.stacks, held_as)
    coming = sorted((settings.tenants.keys() & others.keys()) - {*own})
    strays |= {tenant: (next(iter(others[tenant])), stack) for tenant in coming}
    for tenant, (was, home) in strays.items():
        fix = f"move it with `credfleet fleet split --stack {stack} --write`, or put {STACKS} back"
        if was not in fleet.stacks:
            fix = f"name {was} in {STACKS} again, with a since behind the last tenant; then {fix}"
        raise CredfleetError(
            code="tenant-elsewhere",
            place=f"{STACKS}: tenant {tenant}",
            problem=f"it is to be in stack {home}, and what it has is in the state of {was}, which an update"
            " would not bring there",
            fix=fix,
        )
