"""Previews or updates the stacks of `stacks.yaml` in parallel, each pool's stack before its claimers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.progress_line import ProgressLine
from pulumi_sandbox.services.progress import Step

from components.account_pool.forecast.forecast import parse
from components.config.shards import STACKS, Shards, Stacks
from components.errors import ConfigurationError, ExplainedError, Misused, how_many
from components.skipped_lines import skipped_in
from operations.cli.answer import CommandResult
from operations.cli.failures import CANCELLED, CLAIMS_SKIPPED, GENERIC
from operations.cli.tables import Column, Table
from operations.config.settings import read_settings, refuse_what_cannot_run
from operations.fleet.backend import Backend, deployment_of
from operations.fleet.tenants import States, refuse_strays
from operations.folders import Folders
from operations.sandbox.deployment import Deployed, deploy, free_dead_lock, interruptible
from operations.sandbox.public_passphrase import refuse_new
from operations.sandbox.results import held_back
from operations.sandbox.updates import policies_of, reach_cluster
from operations.stack.at_rest import StackAtRest
from operations.stack.state import decode

_FINE: Final = (0, CLAIMS_SKIPPED)
_SHOWN: Final = 3
"""Maximum number of errors per stack in the table."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a stack's update or preview.

    changes: operation → count. skipped: skipped claims and their dependents → reason. code: its exit code.
    """

    stack: str
    outcome: str
    code: int
    changes: Mapping[str, int] = field(default_factory=dict[str, int])
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: float = 0.0
    why: str = ""

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of its row in a table."""
        changes = ", ".join(f"{count} {op}" for op, count in self.changes.items())
        skipped = ", ".join(self.skipped)
        return self.stack, self.outcome, changes or "-", skipped or "-", f"{self.seconds:.0f} s", self.why


Update: TypeAlias = Callable[[str], Outcome]


def up_together(
    names: Sequence[str], at_once: int, kubeconfig: Path | None, *, only_preview: bool = False
) -> CommandResult:
    """Update stacks, by default all of stacks.yaml. at_once: the number of parallel updates.

    Exit code: CLAIMS_SKIPPED if nothing worse happened; GENERIC if an update failed, CANCELLED if stopped.
    Raises Misused for an unknown name, ConfigurationError as `Stacks.read`; and as `Backend`.
    """
    folders = Folders.find(Path.cwd())
    fleets = Stacks.read(folders.project).fleets
    known = [stack for fleet in fleets.values() for stack in (fleet.pool, *fleet.stacks) if stack]
    if not known or {*names} - {*known}:
        raise Misused(
            place=STACKS if not known else " ".join(sorted({*names} - {*known})),
            problem="it is not there, or names no stack" if not known else f"{STACKS} has no such stack",
            fix="write it with `credfleet fleet split --stack STACK --by N --write`",
        )
    backend = Backend.find(folders, kubeconfig)
    wanted = {*names} or {*known}
    with interruptible() as stopped, ProgressLine() as line:
        states = backend.deployments(backend.names(), at_once)
        progress = _Progress(line, "previewed" if only_preview else "up", len(wanted))
        update = _Updates(backend, states, progress, stopped, only_preview=only_preview)
        done = [*update_fleets(fleets, wanted, at_once, update)]
    failed = sum(each.code not in _FINE for each in done)
    columns = ("Outcome", "Changes", Column("Skipped", folds=True), "Took", Column("Why", folds=True))
    title = "Previewed" if only_preview else "Updated"
    return CommandResult(
        {"stacks": [asdict(each) for each in done]},
        [
            Table(title, (Column("Stack", names=True), *columns), [each.row for each in done]),
            f"{how_many(len(done), 'stack')}, {failed} failed",
        ],
        CANCELLED if stopped.is_set() else GENERIC if failed else max(each.code for each in done),
    )


def update_fleets(
    fleets: Mapping[str, Shards], wanted: set[str], at_once: int, update: Update
) -> Iterator[Outcome]:
    """Update the wanted stacks, pools first; stacks that claim from a failed pool are left out."""
    pools = [*dict.fromkeys(fleet.pool for fleet in fleets.values() if fleet.pool in wanted)]
    with ThreadPoolExecutor(at_once) as threads:
        first = {each.stack: each for each in threads.map(update, filter(None, pools))}
        yield from first.values()
        broken = {stack for stack, each in first.items() if each.code not in _FINE}
        rest: list[str] = []
        for fleet in fleets.values():
            own = [stack for stack in fleet.stacks if stack in wanted]
            if fleet.pool in broken:
                yield from (Outcome(stack, "left out", GENERIC, why=f"{fleet.pool} failed") for stack in own)
            else:
                rest += own
        yield from threads.map(update, rest)


@dataclass(frozen=True, slots=True)
class _Updates:
    """Updates stacks, also in parallel. states: as they were before the first update."""

    backend: Backend
    states: States
    progress: _Progress
    stopped: threading.Event
    only_preview: bool
    _reaching: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, stack: str) -> Outcome:
        """Return the result for a stack; its errors are part of it, not raised."""
        if self.stopped.is_set():
            return Outcome(stack, "left out", CANCELLED, why="you stopped it")
        if self.only_preview and stack not in self.states:
            return Outcome(
                stack, "new", 0, why="the backend does not have it yet: `credfleet fleet up` makes it"
            )
        began = time.monotonic()
        self.progress(stack)
        try:
            done = self._deployed(stack)
            found = _outcome(stack, done, self._skipped(stack, done))
        except (ExplainedError, SandboxError) as error:
            found = Outcome(stack, "failed", GENERIC, why=_why(error))
            if self.stopped.is_set():
                found = Outcome(stack, "cancelled", CANCELLED, why="you stopped it")
        found = replace(found, seconds=round(time.monotonic() - began, 3))
        self.progress(stack, f"{found.outcome} after {found.seconds:.0f} s")
        return found

    def _deployed(self, stack: str) -> Deployed:
        """Preview, then update if there are changes and a preview is not all that is wanted."""
        folders, state = self.backend.folders, self.states.get(stack, {})
        at_rest = StackAtRest.find(folders.project, stack, backend_dir=folders.backend)
        refuse_new(folders, at_rest)
        settings = read_settings(at_rest)
        refuse_what_cannot_run(at_rest, settings)
        refuse_strays(at_rest, settings, lambda: self.states)
        variables, is_stale = self.backend.variables(stack), False
        if self.backend.sandbox and self.backend.kubeconfig is None and not self.only_preview:
            with self._reaching:
                cluster, is_stale = reach_cluster(folders, at_rest, settings, None, yes=True)
                variables = {**self.backend.variables(stack), "KUBECONFIG": str(cluster.kubeconfig)}
                cluster.remember(folders.clusters(stack))
        if self.backend.sandbox:
            free_dead_lock(folders.backend, at_rest.project.name, stack)
        made, packs = self.backend.stack(stack, variables), policies_of(folders, stack)
        if is_stale and (caught_up := self._run(made.refresh)).exit_code:
            return caught_up
        foreseen = self._run(made.preview, **packs)
        is_all_there = state.get("resources") and not state.get("pending_operations")
        if self.only_preview or foreseen.exit_code or (is_all_there and not foreseen.changes_anything):
            return foreseen
        done = self._run(made.up, **packs)
        if done.exit_code == 0 and state.get("pending_operations"):
            self._run(made.refresh, clear_pending_creates=True)
        return done

    def _skipped(self, stack: str, done: Deployed) -> Mapping[str, str]:
        """Return what is skipped, according to the preview or the state."""
        if self.only_preview or done.exit_code:
            lines = [line for message in done.messages for line in message.splitlines()]
            claims = {f"claim {'/'.join(claim)}": why for claim, why in parse(lines, ()).skipped.items()}
            return claims | skipped_in(lines)
        resources = decode(deployment_of(self.backend.exported(stack))).resources
        return {each.what: each.reason for each in held_back(resources)}

    def _run(self, run: Callable[..., Any], **options: Any) -> Deployed:
        return deploy(run, lambda _: None, self.stopped, **options)


def _outcome(stack: str, done: Deployed, skipped: Mapping[str, str]) -> Outcome:
    """Return the result of a preview or an update."""
    changes = {op: count for op, count in done.changes.items() if op != "same" and count}
    code = done.exit_code or (CLAIMS_SKIPPED if skipped else 0)
    outcome = done.outcome if changes or done.exit_code else "nothing changed"
    return Outcome(stack, outcome, code, changes, skipped, why="; ".join(done.errors[:_SHOWN]))


def _why(error: ExplainedError | SandboxError) -> str:
    problems = error.problems if isinstance(error, ConfigurationError) else ()
    told = [(each.where, each.problem, each.fix) for each in problems] or [
        (error.place, error.problem, error.fix)
    ]
    return "; ".join(f"{place}: {problem} → {fix}" for place, problem, fix in told[:_SHOWN])


class _Progress:
    """Reports which stacks are in progress, and the result of each."""

    def __init__(self, line: ProgressLine, done: str, total: int) -> None:
        self._line, self._verb, self._total = line, done, total
        self._lock, self._began = threading.Lock(), time.monotonic()
        self._running: list[str] = []
        self._ended = 0

    def __call__(self, stack: str, ended: str = "") -> None:
        """Report that a stack was started, or how it ended."""
        with self._lock:
            if ended:
                self._running.remove(stack)
                self._ended += 1
            else:
                self._running.append(stack)
            what = f"{stack}: {ended}" if ended else f"now {', '.join(self._running)}"
            told = f"{self._ended} of {self._total} stacks {self._verb}; {what}"
            self._line(Step(told, time.monotonic() - self._began))
