"""The status of a project's stacks, from the states in their backend and local files only."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pulumi_sandbox.errors import SandboxError

from components.errors import CredfleetError, ExplainedError, how_many
from operations.cli.answer import CommandResult
from operations.cli.tables import Column, Table
from operations.config.settings import read_settings
from operations.fleet.backend import Backend, deployment_of
from operations.fleet.tenants import tenants_in
from operations.folders import Folders
from operations.review.record import find_undeployed
from operations.sandbox.results import held_back, list_claimed
from operations.stack.at_rest import StackAtRest
from operations.stack.project_file import Project
from operations.stack.state import Snapshot, decode

_CHANGED: Final = "changed since"
_DEPLOYED: Final = "as deployed"


@dataclass(frozen=True, slots=True)
class StackStanding:
    """The status of a stack. waiting: configured resources that are not declared yet.

    files: whether they match the last update, and that update was complete. updated: in RFC 3339, None for
    never.
    """

    stack: str
    tenants: int = 0
    accounts: int = 0
    waiting: int = 0
    files: str = "never deployed"
    updated: str | None = None
    failures: tuple[str, ...] = ()


def fleet_status(at_once: int = 1) -> CommandResult:
    """Return the status of each stack of the project here. at_once: the number of parallel reads.

    Raises SandboxError as `Backend.find`; CredfleetError as `Folders.find` and `Backend.names`.
    """
    folders = Folders.find(Path.cwd())
    project, backend = Project.load(folders.project), Backend.find(folders)
    known = {*backend.names()}
    with ThreadPoolExecutor(at_once) as threads:
        found = [*threads.map(partial(_standing, backend, known), sorted({*known, *project.stacks()}))]
    failed = [each for each in found if each.failures]
    columns = (
        Column("Stack", names=True),
        *("Tenants", "Accounts", Column("Waiting", leaves=2), "Files", Column("Last update", leaves=1)),
        Column("Failures", folds=True),
    )
    rows = [
        (
            each.stack,
            *(str(count) for count in (each.tenants, each.accounts, each.waiting)),
            *(each.files, each.updated or "-", "; ".join(each.failures)),
        )
        for each in found
    ]
    tenants, accounts = sum(each.tenants for each in found), sum(each.accounts for each in found)
    document = {"stacks": [asdict(each) for each in found], "tenants": tenants, "accounts": accounts}
    counted = ((len(found), "stack"), (tenants, "tenant"), (accounts, "account"))
    told = ", ".join((*(how_many(*each) for each in counted), f"{len(failed)} with failures"))
    return CommandResult(document, [Table("Stacks", columns, rows), told], 1 if failed else 0)


def _standing(backend: Backend, known: Collection[str], stack: str) -> StackStanding:
    """Return the status of a stack; an unreadable state is reported as a failure of this stack."""
    if stack not in known:
        return StackStanding(stack)
    try:
        deployment = deployment_of(backend.exported(stack))
        snapshot = decode(deployment)
        files, problem = _files(backend.folders, stack, snapshot)
    except (ExplainedError, SandboxError) as error:
        return StackStanding(stack, files="unknown", failures=(f"{error.place}: {error.problem}",))
    failures = (*_failures(stack, snapshot), *backend.last_failure(stack))
    return StackStanding(
        stack,
        tenants=len(tenants_in(deployment)),
        accounts=len(list_claimed(snapshot.resources, ())),
        waiting=len(held_back(snapshot.resources)),
        files="deployed in part" if failures and files == _DEPLOYED else files,
        updated=deployment["manifest"].get("time") if snapshot.resources else None,
        failures=(*failures, *problem),
    )


def _files(folders: Folders, stack: str, snapshot: Snapshot) -> tuple[str, tuple[str, ...]]:
    """Return whether a stack's files match its state, and the problems of the files."""
    file = Project.load(folders.project).stack_file(stack)
    if not file.exists():
        return "no file", ()
    at_rest = StackAtRest.find(folders.project, stack, backend_dir=folders.backend)
    try:
        return (_CHANGED if find_undeployed(at_rest, snapshot, read_settings(at_rest)) else _DEPLOYED), ()
    except CredfleetError as error:
        return _CHANGED, (str(error).partition("\n")[0],)


def _failures(stack: str, snapshot: Snapshot) -> Iterator[str]:
    """Yield the failures that an update left in a state."""
    cleared = f"`pulumi up --stack {stack}`, then `pulumi refresh --clear-pending-creates --stack {stack}`"
    counts = {
        ("call", f"begun and never ended, to clear by {cleared}"): len(snapshot.pending),
        ("resource", "still to delete"): sum(each.delete for each in snapshot.resources),
        ("resource", "failed"): sum(bool(each.init_errors) for each in snapshot.resources),
    }
    yield from (f"{how_many(count, noun)} {what}" for (noun, what), count in counts.items() if count)
