"""The steps of `sandbox up`: services, cluster, preview and update by the Pulumi CLI, report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import typer
from pulumi_sandbox import pulumi_cli
from pulumi_sandbox.progress_line import ProgressLine
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.stack_cluster import StackCluster, choose
from pulumi_sandbox.steering import visible

from components.errors import CredfleetError, how_many
from components.skipped_lines import SKIPPED
from components.stack_config.stack import Settings
from operations.cli.answer import CommandResult
from operations.cli.failures import CLAIMS_SKIPPED
from operations.cli.inputs import ask
from operations.cli.options import Form
from operations.config.settings import read_settings, refuse_what_cannot_run
from operations.fleet.tenants import refuse_strays, states_in
from operations.folders import Folders, stack_of
from operations.sandbox import cloud_services, control_plane, existing, results
from operations.sandbox.deployment import Deployed, Prepared, deploy, free_dead_lock, select_stack
from operations.sandbox.display import Display
from operations.sandbox.processes import exports, furnish
from operations.sandbox.public_passphrase import refuse_new
from operations.sandbox.report import write
from operations.sandbox.runs import UpRun
from operations.sandbox.summary import as_document, as_ended, as_parts, report_of
from operations.stack.at_rest import StackAtRest

_TAKEN_AWAY: Final = ("delete", "replace", "delete-replaced")
_SHOWN: Final = 20
"""Maximum number of resources listed before the prompt."""

CHANGED: Final = 7
"""Exit code if there are unexpected changes, as in the Pulumi CLI."""

_NOT_GOING_ON: Final = "The preview found a reason not to go on"


def up(wanted: UpRun) -> CommandResult:
    """Preview, update and report; raises as `_prepare` and `deploy`."""
    ready = _prepare(wanted)
    if wanted.skip_preview:
        where = f"Stack {wanted.stack} on {ready.cluster.server}"
        ask(f"{where} will be updated without a preview. Go on?", yes=wanted.yes)
        done = _update(ready, wanted)
        return _told(ready, done, done)
    foreseen = _run(ready.stack.preview, "Previewing", ready, wanted)
    if foreseen.exit_code:
        why = "You stopped the preview" if foreseen.outcome == "cancelled" else _NOT_GOING_ON
        typer.echo(f"{why}; nothing was changed.", err=True)
        return CommandResult(as_ended(wanted.stack, foreseen), (), foreseen.exit_code)
    state = ready.state()
    if state.resources and not (state.pending or foreseen.changes_anything):
        return _told(ready, foreseen, None)
    if wanted.expect_no_changes:
        typer.echo("Something would change, and no change was expected; nothing was changed.", err=True)
        return CommandResult(as_ended(wanted.stack, foreseen), (), CHANGED)
    _agree(ready, wanted, foreseen)
    return _told(ready, foreseen, _update(ready, wanted))


def _update(ready: Prepared, wanted: UpRun) -> Deployed:
    """Update; then clear pending creates of a killed update, which the CLI keeps after a good one."""
    done = _run(ready.stack.up, "Updating", ready, wanted)
    if done.exit_code == 0 and ready.state().pending:
        typer.echo("· an earlier update was killed: checking what is left of it", err=True)
        _run(ready.stack.refresh, "Refreshing", ready, wanted, clear_pending_creates=True)
    return done


def _prepare(wanted: UpRun) -> Prepared:
    """Find project, services, cluster and CLI; refresh a state that is about a former cluster.

    Raises CredfleetError as `stack_of`, `StackAtRest.state_file`, `StackAtRest.unlock`, `read_settings`,
    `_refuse_steps`, `existing.bring_kinds` and `existing.bring`; `refresh-failed` or `cancelled` while
    refreshing; SandboxError as these, `choose`, `cloud_services.start` and `pulumi_cli.find`.
    """
    folders = Folders.find(Path.cwd())
    at_rest = stack_of(folders, wanted.stack)
    state_file = at_rest.state_file
    decrypt = at_rest.unlock(public=folders.public_passphrase(wanted.stack)).decrypt
    refuse_new(folders, at_rest)
    settings = read_settings(at_rest, decrypt)
    refuse_what_cannot_run(at_rest, settings)
    refuse_strays(at_rest, settings, lambda: states_in(state_file.parent))
    cluster, is_stale = reach_cluster(folders, at_rest, settings, wanted.kubeconfig, yes=wanted.yes)
    with ProgressLine() as progress:
        cli = pulumi_cli.find(control_plane.OWNER, progress)
    os.environ.update(exports(folders, wanted.stack, os.environ, cli))
    os.environ["KUBECONFIG"] = str(cluster.kubeconfig)
    for package, source in furnish(folders).items():
        if source != pulumi_cli.LOCAL:
            typer.echo(f"· provider {package}: {source}", err=True)
    _refuse_steps(state_file)
    for pid in free_dead_lock(folders.backend, at_rest.project.name, at_rest.stack):
        typer.echo(f"· an update was killed (process {pid}): its lock is removed", err=True)
    stack = select_stack(folders.project, wanted.stack)
    packs = policies_of(folders, wanted.stack)
    ready = Prepared(folders, cluster, at_rest, settings, stack, packs)
    if is_stale:
        typer.echo("· the API server is a new one: checking what is left of the stack", err=True)
        _catch_up(ready, wanted)
    cluster.remember(folders.clusters(wanted.stack))
    return ready


def _refuse_steps(state_file: Path) -> None:
    """Raise CredfleetError `state-invalid` if steps of a killed run are in a file beside the state."""
    beside = state_file.with_name(f"{state_file.name}.steps")
    if beside.exists():
        raise CredfleetError(
            code="state-invalid",
            place=str(beside),
            problem="a run of a version before 0.1.0 was killed, and what it did is in this file alone",
            fix="end it with the version that began it; or delete this file and run refresh: what it alone"
            " records is no longer known then",
        )


def reach_cluster(
    folders: Folders, at_rest: StackAtRest, settings: Settings, kubeconfig: Path | None, *, yes: bool
) -> tuple[StackCluster, bool]:
    """Return the cluster of a stack, with the sandbox's services running, and whether it is new.

    Raises as `choose`, `cloud_services.start`, `existing.bring_kinds` and `existing.bring`.
    """
    stack = at_rest.stack
    with ProgressLine() as progress:
        control_plane.build(progress, cluster=kubeconfig is None)
        cloud_services.start(folders, at_rest.read()[0].values, settings.pull_secrets, progress)
        cluster, is_stale = choose(
            folders.clusters(stack),
            stack,
            kubeconfig,
            start=lambda: control_plane.start(folders, progress),
            confirm=lambda question: ask(question, yes=yes),
            context=settings.cluster.context,
            context_from="credfleet:cluster.context",
        )
    if cluster.own:
        existing.bring_kinds(cluster.kubeconfig)
        if is_stale or StackCluster.recall(folders.clusters(stack)) is None:
            existing.bring(folders.existing(stack), cluster.kubeconfig)
    return cluster, is_stale


def policies_of(folders: Folders, stack: str) -> dict[str, Any]:
    """Return the CLI options for the project's policy pack, configured for a stack."""
    packs, own = [str(pack) for pack in folders.policy_packs], folders.policy_config(stack)
    configs = {"policy_pack_configs": [str(own)] * len(packs)} if own else {}
    return {"policy_packs": packs, **configs} if packs else {}


def _catch_up(ready: Prepared, wanted: UpRun) -> None:
    """Refresh a state that is about a former API server; until then, it is misleading."""
    result = _run(ready.stack.refresh, "Refreshing", ready, wanted)
    if result.exit_code:
        stopped = result.outcome == "cancelled"
        raise CredfleetError(
            code="cancelled" if stopped else "refresh-failed",
            place=f"stack {wanted.stack}",
            problem="the check of what is left of it on the new API server was not completed",
            fix="run the same command again" if stopped else "correct what is said above, then run it again",
        )


def _run(run: Callable[..., Any], verb: str, ready: Prepared, wanted: UpRun, **options: Any) -> Deployed:
    """Run an operation of the CLI on the stack, and display its progress."""
    is_shown = wanted.output in (Form.TABLE, Form.WIDE)
    stream = sys.stdout if is_shown else sys.stderr
    display = Display(f"{verb} {ready.at_rest.project.name}/{wanted.stack}", hidden=(SKIPPED,), stream=stream)
    packs = {} if run == ready.stack.refresh else ready.packs
    try:
        return deploy(run, display.show, parallel=wanted.parallel, **packs, **options)
    finally:
        display.close()


def _agree(ready: Prepared, wanted: UpRun, foreseen: Deployed) -> None:
    """Show what an update would remove, and ask; raises CredfleetError `not-confirmed`.

    Without a terminal, no question protects the sandbox's own cluster: its data are disposable.
    """
    lost = {
        step.urn: step
        for step in foreseen.steps
        if step.op in _TAKEN_AWAY and not urns.is_default_provider(step.urn)
    }
    if not lost:
        return
    for step in list(lost.values())[:_SHOWN]:
        verb = "deleted" if step.op == "delete" else "replaced"
        typer.echo(visible(f"· would be {verb}: {step.type} {step.name}"), err=True)
    if not ready.cluster.own or sys.stdin.isatty():
        more = f", {len(lost) - _SHOWN} of them not shown" if len(lost) > _SHOWN else ""
        where = f"stack {wanted.stack} on {ready.cluster.server}"
        ask(
            f"{how_many(len(lost), 'resource')} of {where} will be deleted or replaced{more}. Go on?",
            yes=wanted.yes,
        )


def _told(ready: Prepared, foreseen: Deployed, update: Deployed | None) -> CommandResult:
    """Write the page and return the result; update: None if the preview found no changes."""
    result = update or foreseen
    state = ready.state()
    report = report_of(ready, foreseen, update, state)
    page = write(report, ready.folders.report)
    # The sandbox's own cluster has no operators, so every update skips what waits for one.
    waits = [] if ready.cluster.own else results.held_back(state.resources)
    skips = waits or results.skips_claims(state.resources)
    code = result.exit_code or (CLAIMS_SKIPPED if skips else 0)
    return CommandResult(as_document(report, result, page), as_parts(report, page), code)
