"""What `sandbox up` and its like do, step by step: the cluster, then the engine, then what to tell of it."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

import typer
from pulumi_sandbox import engine
from pulumi_sandbox.engine import (
    Diagnostic,
    Display,
    Event,
    Import,
    Options,
    Outputs,
    PreviewDigest,
    Result,
    Selection,
    Serialised,
    Sink,
    Snapshot,
    StepFinished,
    Workspace,
    display_for,
)
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.progress_line import ProgressLine
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import equal
from pulumi_sandbox.providers import STAND_INS
from pulumi_sandbox.services import fork_from
from pulumi_sandbox.stack_cluster import StackCluster, choose
from pulumi_sandbox.steering import visible

from components.account_pool.forecast import heard
from components.errors import CredfleetError, how_many
from components.pull_secret.skipping import SKIPPED
from components.report_lines import MARKER
from components.settings.stack import Settings
from operations.cli.answer import Answer, Part
from operations.cli.ask import ask
from operations.cli.failures import CLAIMS_SKIPPED, DOOMED
from operations.cli.forking import keep_process
from operations.cli.options import Form
from operations.config.settings import judged, refuse_what_cannot_run
from operations.fleet.tenants import refuse_strays
from operations.folders import Folders
from operations.sandbox import cloud_services, control_plane, existing, results
from operations.sandbox.public_passphrase import refuse_new
from operations.sandbox.report import write
from operations.sandbox.runs import ImportRun, Protected, Run
from operations.sandbox.stack_state import open_workspace, outputs
from operations.sandbox.summary import as_document, as_parts, held_back, report_of, shown, skipped_table

_TAKEN_AWAY: Final = ("delete", "replace", "delete-replaced")
_SHOWN: Final = 20
"""Resources told one by one before the question."""

_NOT_GOING_ON: Final = "The preview found a reason not to go on"

Deploy: TypeAlias = Callable[[Workspace, Options, Sink], Result]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A stack on its cluster, ready for the engine."""

    folders: Folders
    cluster: StackCluster
    workspace: Workspace
    options: Options


@dataclass(slots=True)
class _Silent:
    """A display that shows nothing and keeps what failed, for the document at the end."""

    errors: list[str] = field(default_factory=list[str])

    def handle(self, event: Event) -> None:
        """Keep an error."""
        match event:
            case Diagnostic("error", message):
                self.errors.append(message)
            case StepFinished(step, _, str(error)):
                self.errors.append(f"{step.name}: {error}")
            case _:
                pass

    def close(self) -> None:
        """Nothing is held open."""


@dataclass(frozen=True, slots=True)
class _Listening:
    """A display, and the lines for programs that went through it."""

    display: Sink
    lines: list[str]

    def handle(self, event: Event) -> None:
        """Keep such a line, and pass every event on."""
        match event:
            case Diagnostic(_, message) if message.startswith(MARKER):
                self.lines.extend(message.splitlines())
            case _:
                pass
        self.display.handle(event)


@dataclass(frozen=True, slots=True)
class ForPeople:
    """A display that is told neither lines and outputs for programs, nor what the tables say at the end."""

    display: Sink

    def handle(self, event: Event) -> None:
        """Pass an event on, unless it is of these."""
        match event:
            case Diagnostic(_, message) if message.startswith((MARKER, SKIPPED)):
                pass
            case Outputs():
                pass
            case _:
                self.display.handle(event)


def up(wanted: Run) -> Answer:
    """Preview, update, tell and report; raises as `_prepare` and `refuse_strays`."""
    ready = _prepare(wanted, refuse_strays)
    silent = _Silent()
    display = _display(wanted, silent, ahead=not (wanted.expect_no_changes or wanted.skip_preview))
    if wanted.skip_preview:
        where = f"Stack {wanted.stack} on {ready.cluster.server}"
        ask(f"{where} will be updated without a preview. Go on?", yes=wanted.yes)
        ready.cluster.remember(ready.folders.clusters(wanted.stack))
        done = _deploy(engine.up, ready, wanted, display)
        return _told(ready, wanted, done, done, silent)
    foreseen = _deploy(engine.preview, ready, wanted, display)
    if foreseen.exit_code:
        why = "You stopped the preview" if foreseen.summary.outcome == "cancelled" else _NOT_GOING_ON
        typer.echo(f"{why}; nothing was changed.", err=True)
        return _summed_up(wanted, foreseen, silent)
    ready.cluster.remember(ready.folders.clusters(wanted.stack))
    if _is_all_there(ready.workspace.store.load(), foreseen):
        return _told(ready, wanted, foreseen, None, silent)
    _agree(ready, wanted, foreseen)
    return _told(ready, wanted, foreseen, _deploy(engine.up, ready, wanted, display), silent)


def preview(wanted: Run) -> Answer:
    """Show what an update would change and skip; exit code DOOMED where it would fail at a claim.

    Raises as `_prepare` and `refuse_strays`.
    """
    ready = _prepare(wanted, refuse_strays)
    gathered, lines = io.StringIO(), list[str]()
    if wanted.events or wanted.output in (Form.JSON, Form.YAML):
        with Serialised(PreviewDigest(gathered)) as display:
            result = engine.preview(ready.workspace, ready.options, _Listening(display, lines))
        document = json.loads(gathered.getvalue())
    else:
        display, document = _display(wanted, _Silent()), None
        result = _deploy(engine.preview, ready, wanted, display, lines)
    dooms = heard(lines, results.claims_touched(result.steps)).dooms
    parts: list[Part] = [*skipped_table(held_back(result.outputs))]
    if document is None and result.exit_code == 0:
        report = report_of(ready.folders, ready.cluster, ready.workspace, result, None)
        count = len(report.pending)
        report = replace(report, headline=f"An update would change {count or 'no'} resources")
        parts.append(f"\n  report  {shown(write(report, ready.folders.report))}")
    return Answer(document, parts, result.exit_code or (DOOMED if dooms else 0))


def refresh(wanted: Run) -> Answer:
    """Bring the state up to what is there."""
    ready = _prepare(wanted)
    silent = _Silent()
    return _summed_up(wanted, _deploy(engine.refresh, ready, wanted, _display(wanted, silent)), silent)


def destroy(wanted: Run) -> Answer:
    """Delete what the stack declared, or what is meant of it, after asking."""
    ready = _prepare(wanted)
    count = not wanted.preview_only and len(results.declared(ready.workspace.store.load().resources, []))
    if count:
        where = f"stack {wanted.stack} on {ready.cluster.server}"
        some = "" if ready.options.selection.is_whole else "What is meant of "
        ask(f"{some}{how_many(count, 'resource')} of {where} will be deleted. Go on?", yes=wanted.yes)
    silent = _Silent()
    result = _deploy(engine.destroy, ready, wanted, _display(wanted, silent))
    is_whole = ready.options.selection.is_whole and not wanted.preview_only
    if is_whole and result.exit_code == 0:
        ready.folders.clusters(wanted.stack).unlink(missing_ok=True)
    return _summed_up(wanted, result, silent)


def import_(wanted: ImportRun) -> Answer:
    """Show an import, let it be done after asking, and print the code for what was imported.

    Raises:
        CredfleetError: code `not-confirmed`, and as `_prepare`.
        SandboxError: code `import-invalid`, and as `_prepare`.
    """
    imported = Import(
        wanted.token,
        wanted.name,
        wanted.object_id,
        wanted.parent,
        wanted.provider,
        wanted.protect is Protected.TRUE,
    )
    ready = _prepare(wanted)
    ready = replace(ready, options=replace(ready.options, imported=imported))
    shown_only = replace(ready, options=replace(ready.options, preview_only=True))
    silent = _Silent()
    display = _display(wanted, silent, ahead=not wanted.preview_only)
    foreseen = _deploy(engine.import_, shown_only, wanted, display)
    if foreseen.exit_code or wanted.preview_only:
        return _summed_up(wanted, foreseen, silent)
    where = f"{wanted.token} {wanted.name} of stack {wanted.stack} on {ready.cluster.server}"
    ask(f"{wanted.object_id} will be recorded as {where}. Go on?", yes=wanted.yes)
    ready.cluster.remember(ready.folders.clusters(wanted.stack))
    result = _deploy(engine.import_, ready, wanted, display)
    if result.exit_code:
        return _summed_up(wanted, result, silent)
    try:
        code = engine.constructor_of(imported, ready.workspace, result.foreseen)
    except SandboxError as error:
        typer.echo(visible(f"· {error}"), err=True)
        return _summed_up(wanted, result, silent, {"code": None})
    told = (f"\n{engine.how_to_use(imported)}\n", code.rstrip())
    return _summed_up(wanted, result, silent, {"code": code}, told)


def _prepare(wanted: Run, refuse: Callable[[Workspace, Settings], None] | None = None) -> _Prepared:
    """Find project, services and cluster; let a state that speaks of a cluster that is gone catch up.

    refuse: raises for a stack that is not to be run like this, before anything is started.

    Raises:
        CredfleetError: as `judged`, `choose`, `existing.bring_kinds` and `existing.bring`;
            `refresh-failed` or `cancelled` while catching up.
        SandboxError: as these, as `cloud_services.start` and as `engine.refresh`.
    """
    folders = Folders.find(Path.cwd())
    workspace = _open(folders, wanted.stack)
    settings = judged(workspace, workspace.crypter)
    if refuse:
        refuse_what_cannot_run(workspace, settings)
        refuse(workspace, settings)
    with ProgressLine() as progress:
        values = workspace.config().values
        given = cloud_services.start(folders, values, settings.pull_secrets, progress)
        workspace = replace(workspace, given=given)
        cluster, is_stale = choose(
            folders,
            wanted.stack,
            wanted.kubeconfig,
            start=lambda: control_plane.start(folders, progress),
            confirm=lambda question: ask(question, yes=wanted.yes),
            context=settings.cluster.context,
            context_from="credfleet:cluster.context",
        )
    os.environ["KUBECONFIG"] = str(cluster.kubeconfig)
    if cluster.own:
        fork_from(folders.zygotes)
        existing.bring_kinds(cluster.kubeconfig)
        if is_stale or StackCluster.recall(folders.clusters(wanted.stack)) is None:
            existing.bring(folders.existing(wanted.stack), cluster.kubeconfig)
    chosen = folders.policy_packs if wanted.policy_pack is None else wanted.policy_pack
    packs = tuple(pack.resolve() for pack in chosen)
    own = folders.policy_config(wanted.stack) if wanted.policy_pack is None else None
    configs = dict.fromkeys(packs, own) if own else {}
    options = Options(
        parallel=wanted.parallel,
        providers=STAND_INS,
        policy_packs=packs,
        policy_configs=configs,
        expect_no_changes=wanted.expect_no_changes,
        continue_on_error=wanted.continue_on_error,
        clear_pending_creates=wanted.clear_pending_creates,
        refresh=wanted.refresh,
        run_program=wanted.run_program,
        preview_only=wanted.preview_only,
        selection=Selection(
            tuple(wanted.target or ()),
            tuple(wanted.exclude or ()),
            dependents=wanted.target_dependents or wanted.exclude_dependents,
            excludes_protected=wanted.exclude_protected,
            replaces=tuple(wanted.replace or ()),
        ),
    )
    ready = _Prepared(folders, cluster, workspace, options)
    if is_stale:
        typer.echo("· the API server is a new one: looking what is left of the stack", err=True)
        _catch_up(workspace, wanted)
        cluster.remember(folders.clusters(wanted.stack))
    return ready


def _open(folders: Folders, stack: str) -> Workspace:
    """Open a stack; raises as `open_workspace` and `refuse_new`.

    Deriving its key leaves the interpreter idle: what comes next is imported meanwhile.
    """
    with ThreadPoolExecutor(1) as beside:
        beside.submit(import_module, "kubernetes.config")
        beside.submit(engine.make_ready)
        workspace = open_workspace(folders, stack)
    refuse_new(folders, workspace)
    return workspace


def _catch_up(workspace: Workspace, wanted: Run) -> None:
    """Refresh a state that speaks of an API server that is gone; until that is done, it misleads."""
    with display_for(sys.stderr) as display:
        result = engine.refresh(workspace, Options(wanted.parallel, STAND_INS), display)
    if result.exit_code:
        stopped = result.summary.outcome == "cancelled"
        raise CredfleetError(
            code="cancelled" if stopped else "refresh-failed",
            place=f"stack {wanted.stack}",
            cause="what is left of it on the new API server was not looked up to the end",
            mend="run the same command again" if stopped else "mend what is said above, then run it again",
        )


def _agree(ready: _Prepared, wanted: Run, foreseen: Result) -> None:
    """Show what an update would take away, and ask; raises CredfleetError, code `not-confirmed`.

    Where nobody is there to ask, the sandbox's own cluster may lose it: its data are throw-away.
    """
    lost = {
        each.step.urn: each.step.op
        for each in foreseen.steps
        if each.step.op in _TAKEN_AWAY and not urns.is_default_provider(each.step.urn)
    }
    if not lost:
        return
    for urn, op in list(lost.items())[:_SHOWN]:
        verb = "deleted" if op == "delete" else "replaced"
        resource = f"{urns.parse(urn).type} {urns.parse(urn).name}"
        typer.echo(visible(f"· would be {verb}: {resource}"), err=True)
    if not ready.cluster.own or sys.stdin.isatty():
        more = f", {len(lost) - _SHOWN} of them not shown" if len(lost) > _SHOWN else ""
        where = f"stack {wanted.stack} on {ready.cluster.server}"
        ask(
            f"{how_many(len(lost), 'resource')} of {where} will be deleted or replaced{more}. Go on?",
            yes=wanted.yes,
        )


def _is_all_there(snapshot: Snapshot, foreseen: Result) -> bool:
    """Whether an update would find nothing to do, not even an output to write down."""
    steps = (each.step for each in foreseen.steps if not urns.is_default_provider(each.step.urn))
    return not (
        snapshot.pending
        or any(step.op != "same" for step in steps)
        or not equal(outputs(snapshot), foreseen.outputs)
    )


def _display(wanted: Run, silent: Display, *, ahead: bool = False) -> Serialised:
    """Return the display that was asked for, of one deployment or, ahead, of a preview and its update."""
    if wanted.events or wanted.output in (Form.TABLE, Form.WIDE):
        return display_for(sys.stdout, json_lines=wanted.events, ahead=ahead)
    return Serialised(silent)


def _deploy(
    deploy: Deploy, ready: _Prepared, wanted: Run, display: Serialised, lines: list[str] | None = None
) -> Result:
    """Let the engine work. lines: where the lines for programs are kept, if they are wanted."""
    with display:
        sink = display if wanted.events else ForPeople(display)
        return deploy(ready.workspace, ready.options, sink if lines is None else _Listening(sink, lines))


def _told(ready: _Prepared, wanted: Run, foreseen: Result, update: Result | None, silent: _Silent) -> Answer:
    """Write the page and tell the rest; update: None where the preview found nothing to do.

    From then on commands start at once.
    """
    if ready.cluster.own:
        keep_process(ready.folders)
    result = update or foreseen
    report = report_of(ready.folders, ready.cluster, ready.workspace, foreseen, update)
    page = write(report, ready.folders.report)
    document = as_document(report, result, page, silent.errors)
    skips = results.skips_claims(ready.workspace.store.load().resources)
    code = result.exit_code or (CLAIMS_SKIPPED if skips else 0)
    return _answer(wanted, document, as_parts(report, page), code)


def _summed_up(
    wanted: Run, result: Result, silent: _Silent, more: Mapping[str, Any] = {}, parts: Iterable[Part] = ()
) -> Answer:
    """Write how it ended for machines; people saw it."""
    document = {
        "stack": wanted.stack,
        "outcome": result.summary.outcome,
        "changes": dict(result.summary.changes),
        "seconds": round(result.summary.seconds, 3),
        "errors": silent.errors,
        **more,
    }
    return _answer(wanted, document, parts, result.exit_code)


def _answer(wanted: Run, document: Any, parts: Iterable[Part], exit_code: int) -> Answer:
    """Return the answer; where only events were asked for, they were all of it."""
    if wanted.events and wanted.output is not Form.JSON:
        raise typer.Exit(exit_code)
    return Answer(document, parts, exit_code)
