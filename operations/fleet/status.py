"""How the stacks of a project stand, by the states in their backend and the files here alone."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox import pulumi_cli
from pulumi_sandbox.engine import Project, Snapshot, StackAtRest, find_backend
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.progress_line import ProgressLine

from components.errors import CredfleetError, how_many
from operations.cli.answer import Answer
from operations.cli.tables import Column, Table
from operations.config.settings import judged
from operations.fleet.tenants import sealed, states_in, tenants_in
from operations.folders import Folders
from operations.review.record import deployment_in, undeployed
from operations.sandbox.control_plane import OWNER
from operations.sandbox.processes import exports
from operations.sandbox.results import claimed, held_back

_CHANGED: Final = "changed since"
_LAST: Final = 3
"""Lines of what the CLI said that are told of a refresh that failed."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One stack. waiting: what its configuration asks for and it does not declare yet.

    files: whether they are what it was last updated with. updated: when, RFC 3339; None for never.
    drift: what a refresh would find; None where nobody looked.
    """

    stack: str
    tenants: int = 0
    accounts: int = 0
    waiting: int = 0
    files: str = "never deployed"
    updated: str | None = None
    failures: tuple[str, ...] = ()
    drift: str | None = None


def fleet_status(*, drift: bool = False, at_once: int = 1, kubeconfig: Path | None = None) -> Answer:
    """Return how each stack of the project here stands.

    drift: whether to look for it, in so many stacks at the same time.

    Raises:
        SandboxError: as `Folders.find`, `find_backend` and `pulumi_cli.find`.
    """
    folders = Folders.find(Path.cwd())
    project, backend = Project.load(folders.project), find_backend(folders.backend)
    states = states_in(backend, project.name)
    files = {path.name[len("Pulumi.") : -len(".yaml")] for path in project.stack_files.glob("Pulumi.*.yaml")}
    found = [
        _standing(folders.project, backend, name, states.get(name)) for name in sorted({*states, *files})
    ]
    if drift:
        with ThreadPoolExecutor(at_once) as threads:
            found = [*threads.map(_looking_for_drift(folders, kubeconfig), found)]
    failed = [each for each in found if each.failures]
    columns = (
        Column("Stack", names=True),
        *("Tenants", "Accounts", Column("Waiting", leaves=2), "Files", Column("Last update", leaves=1)),
        *(["Drift"] if drift else []),
        Column("Failures", folds=True),
    )
    rows = [
        (
            each.stack,
            *(str(count) for count in (each.tenants, each.accounts, each.waiting)),
            *(each.files, each.updated or "-", *([each.drift or "-"] if drift else [])),
            "; ".join(each.failures),
        )
        for each in found
    ]
    tenants, accounts = sum(each.tenants for each in found), sum(each.accounts for each in found)
    document = {"stacks": [asdict(each) for each in found], "tenants": tenants, "accounts": accounts}
    told = ", ".join(
        (
            how_many(len(found), "stack"),
            how_many(tenants, "tenant"),
            how_many(accounts, "account"),
            f"{len(failed)} with failures",
        )
    )
    return Answer(document, [Table("Stacks", columns, rows), told], 1 if failed else 0)


def _looking_for_drift(folders: Folders, kubeconfig: Path | None) -> Callable[[Standing], Standing]:
    """Return what has the Pulumi CLI say what a refresh of a stack would find, and writes nothing down."""
    with ProgressLine() as progress:
        cli = pulumi_cli.find(OWNER, progress)
    pulumi_cli.furnish(folders.pulumi_home)
    words = [str(cli.program), "refresh", "--preview-only", "--json", "--non-interactive", "--stack"]
    cluster = {"KUBECONFIG": str(kubeconfig)} if kubeconfig else {}

    def look(standing: Standing) -> Standing:
        if standing.updated is None:
            return standing
        environment = {**os.environ, **exports(folders, standing.stack, os.environ, cli), **cluster}
        done = subprocess.run(
            [*words, standing.stack],
            cwd=folders.project,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            why = "; ".join(done.stderr.splitlines()[-_LAST:])
            return replace(standing, drift="unknown", failures=(*standing.failures, why))
        changes: Mapping[str, int] = json.loads(done.stdout)["changeSummary"]
        others = sum(count for op, count in changes.items() if op != "same")
        return replace(standing, drift=how_many(others, "resource"))

    return look


def _standing(project: Path, backend: Path, stack: str, state: Path | None) -> Standing:
    """Return how a stack stands; what keeps it from being read is a failure of it alone."""
    if state is None:
        return Standing(stack)
    try:
        deployment: Mapping[str, Any] = deployment_in(state.read_bytes(), str(state)) or {"manifest": {}}
        snapshot = sealed(deployment)
        files, problem = _files(project, backend, stack, snapshot)
    except (CredfleetError, SandboxError) as error:
        return Standing(stack, files="unknown", failures=(f"{error.place}: {error.cause}",))
    return Standing(
        stack,
        tenants=len(tenants_in(snapshot)),
        accounts=len(claimed(snapshot.resources, ())),
        waiting=len(held_back(snapshot.resources)),
        files=files,
        updated=deployment["manifest"].get("time"),
        failures=(*_failures(snapshot, state), *problem),
    )


def _files(project: Path, backend: Path, stack: str, snapshot: Snapshot) -> tuple[str, tuple[str, ...]]:
    """Return whether the files of a stack are what its state was made with, and what is wrong with them."""
    at_rest = StackAtRest.find(project, stack, backend_dir=backend)
    if not at_rest.stack_file.path.exists():
        return "no file", ()
    try:
        return (_CHANGED if undeployed(at_rest, snapshot, judged(at_rest)) else "as deployed"), ()
    except CredfleetError as error:
        return _CHANGED, (str(error).partition("\n")[0],)


def _failures(snapshot: Snapshot, state: Path) -> Iterator[str]:
    """Yield what an update left behind."""
    if state.with_name(f"{state.name}.steps").exists():
        yield "an update runs, or was killed"
    counts = {
        ("call", "begun and never ended"): len(snapshot.pending),
        ("resource", "still to delete"): sum(each.delete for each in snapshot.resources),
        ("resource", "failed"): sum(bool(each.init_errors) for each in snapshot.resources),
    }
    yield from (f"{how_many(count, noun)} {what}" for (noun, what), count in counts.items() if count)
