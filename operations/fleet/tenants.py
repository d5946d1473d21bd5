"""Which tenants the states of a project have, whoever is to have them by the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox.engine import Snapshot, Workspace, recorded

from components.errors import CredfleetError
from components.settings.shards import STACKS, Stacks
from components.settings.stack import Settings
from operations.review.record import deployment_in
from operations.review.sealed import unread

FLEET: Final = "credfleet:index:Fleet"


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


def had(states: Mapping[str, Path], stacks: Iterable[str]) -> Mapping[str, str]:
    """Return tenant → the stack whose state has it; raises CredfleetError as `deployment_in`."""
    found = {stack: states[stack] for stack in stacks if stack in states}
    return {
        str(tenant): stack
        for stack, path in found.items()
        for each in (deployment_in(path.read_bytes(), str(path)) or {}).get("resources") or ()
        if each["type"] == FLEET and not each.get("delete")
        for tenant in each["inputs"].get("tenantNames") or ()
    }


def refuse_strays(workspace: Workspace, settings: Settings) -> None:
    """Raise CredfleetError `tenant-elsewhere` where stacks.yaml gives a tenant to another stack than has it.

    An update of the one would delete what it has, and one of the other make it a second time.
    """
    root, stack = workspace.project.directory, workspace.stack
    fleet = next((each for each in Stacks.read(root).fleets.values() if stack in each.stacks), None)
    if fleet is None or settings.tenants_from is None:
        return
    folder, own = root / settings.tenants_from, tenants_in(workspace.store.load())
    leaving = (each for each in own if each not in settings.tenants and (folder / f"{each}.yaml").exists())
    strays = {tenant: (stack, fleet.stack_of(tenant)) for tenant in leaving}
    if coming := settings.tenants.keys() - {*own}:
        others = had(_states(workspace.store.path.parent), fleet.stacks)
        strays |= {tenant: (others[tenant], stack) for tenant in coming if tenant in others}
    for tenant, (was, home) in strays.items():
        raise CredfleetError(
            code="tenant-elsewhere",
            place=f"{STACKS}: tenant {tenant}",
            cause=f"it is to be in stack {home}, and what it has is in the state of {was}, which an update"
            " would not bring there",
            mend=f"move it with `credfleet fleet split --stack {stack} --write`, or put {STACKS} back",
        )
