"""Which tenants the states of a project have, whoever is to have them by the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pulumi_sandbox.engine import Snapshot, Workspace, recorded

from components.account_pool.consumers import stack_of
from components.errors import CredfleetError
from components.settings.shards import STACKS, Shard, Shards, Stacks
from components.settings.stack import Settings
from operations.review.record import deployment_in
from operations.review.sealed import unread
from operations.sandbox.results import FLEET


def states_in(backend: Path, project: str) -> Mapping[str, Path]:
    """Return stack → file of its state."""
    return _states(backend / ".pulumi" / "stacks" / project)


def _states(folder: Path) -> Mapping[str, Path]:
    files = (path for ending in ("*.json", "*.json.gz") for path in folder.glob(ending))
    return {path.name.split(".json")[0]: path for path in files}


def sealed(deployment: Mapping[str, Any]) -> Snapshot:
    """Return a state that nobody here decrypts."""
    return recorded(deployment, unread) if "resources" in deployment else Snapshot()


def tenants_in(snapshot: Snapshot) -> Sequence[str]:
    """Return the tenants that a state has, by their names."""
    fleet = next((each for each in snapshot.resources if each.type == FLEET and not each.delete), None)
    names = fleet and fleet.inputs.get("tenantNames")
    return [str(name) for name in names] if isinstance(names, list) else []


def had(states: Mapping[str, Path], stacks: Iterable[str], held_as: str | None = None) -> Mapping[str, str]:
    """Return tenant → the stack whose state has it; raises CredfleetError as `deployment_in`.

    stacks: those of a fleet. held_as: PROJECT/STACK, as whose it holds accounts; a state with such a claim is
    of the fleet too, whatever names its stack.
    """
    named, found = {*stacks}, dict[str, str]()
    for stack, path in states.items():
        if held_as is None and stack not in named:
            continue
        resources = (deployment_in(path.read_bytes(), str(path)) or {}).get("resources") or ()
        there = [each for each in resources if not each.get("delete")]
        holders = (stack_of(str(each.get("inputs", {}).get("holder"))) for each in there)
        if stack in named or any(holder and holder.endswith(f"/{held_as}") for holder in holders):
            found |= {
                str(name): stack
                for each in there
                if each["type"] == FLEET
                for name in each["inputs"].get("tenantNames") or ()
            }
    return found


def refuse_strays(workspace: Workspace, settings: Settings) -> None:
    """Raise CredfleetError `tenant-elsewhere` where a stack is given a tenant that another one has.

    An update of the one would delete what it has, or know nothing of it, and one of the other make it a
    second time.
    """
    root, stack = workspace.project.directory, workspace.stack
    if settings.tenants_from is None:
        return
    alone = Shards(stacks={stack: Shard()})
    fleet = next((each for each in Stacks.read(root).fleets.values() if stack in each.stacks), alone)
    folder, own = root / settings.tenants_from, tenants_in(workspace.store.load())
    leaving = (each for each in own if each not in settings.tenants and (folder / f"{each}.yaml").exists())
    strays = {tenant: (stack, fleet.stack_of(tenant)) for tenant in leaving}
    if coming := settings.tenants.keys() - {*own}:
        held_as = f"{workspace.project.name}/{settings.held_as or stack}"
        others = had(_states(workspace.store.path.parent), fleet.stacks, held_as)
        strays |= {tenant: (others[tenant], stack) for tenant in sorted(coming) if tenant in others}
    for tenant, (was, home) in strays.items():
        mend = f"move it with `credfleet fleet split --stack {stack} --write`, or put {STACKS} back"
        if was not in fleet.stacks:
            mend = f"name {was} in {STACKS} again, with a since behind the last tenant; then {mend}"
        raise CredfleetError(
            code="tenant-elsewhere",
            place=f"{STACKS}: tenant {tenant}",
            cause=f"it is to be in stack {home}, and what it has is in the state of {was}, which an update"
            " would not bring there",
            mend=mend,
        )
