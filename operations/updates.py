"""What `sandbox up` and its like do, step by step: the ground, then the engine, then what to tell of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import typer
from sandbox.engine.deployment import Options
from sandbox.engine.display import Display, choose_display

from operations import ground, telling
from operations.progress_line import ProgressLine
from operations.questions import ask
from operations.site import Site
from operations.stack_state import open_workspace
from sandbox.engine import deployment
from sandbox.engine.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line. No policy packs means the project's own."""

    stack: str
    kubeconfig: Path | None
    yes: bool
    parallel: int
    expect_no_changes: bool
    policy_packs: list[Path] | None
    as_json: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """A stack on its ground, ready for the engine."""

    site: Site
    ground: ground.Ground
    workspace: Workspace
    options: Options
    display: Display


def up(wanted: Wanted) -> int:
    """Preview, update, tell, report; give the exit code."""
    run = _prepare(wanted)
    foreseen = deployment.preview(run.workspace, run.options, run.display)
    if foreseen.exit_code:
        return foreseen.exit_code
    run.ground.remember(run.site.clusters(wanted.stack))
    result = deployment.up(run.workspace, run.options, run.display)
    telling.tell(run.site, run.ground, run.workspace, result, as_json=wanted.as_json)
    return result.exit_code


def preview(wanted: Wanted) -> int:
    """Show what an update would change; give the exit code."""
    run = _prepare(wanted)
    return deployment.preview(run.workspace, run.options, run.display).exit_code


def refresh(wanted: Wanted) -> int:
    """Bring the state up to what is there; give the exit code."""
    run = _prepare(wanted)
    return deployment.refresh(run.workspace, run.options, run.display).exit_code


def destroy(wanted: Wanted) -> int:
    """Delete what the stack declared, after asking; give the exit code."""
    run = _prepare(wanted)
    count = len(run.workspace.store.load().resources)
    if count:
        ask(
            f"All {count} resources of stack {wanted.stack} on {run.ground.server} will be deleted. Go on?",
            yes=wanted.yes,
        )
    result = deployment.destroy(run.workspace, run.options, run.display)
    if result.exit_code == 0:
        run.site.clusters(wanted.stack).unlink(missing_ok=True)
    return result.exit_code


def _prepare(wanted: Wanted) -> _Run:
    """Find the project and its cluster, and let state that speaks of another cluster catch up."""
    site = Site.find(Path.cwd())
    workspace = open_workspace(site, wanted.stack)
    with ProgressLine() as progress:
        chosen, stale = ground.choose(
            site, wanted.stack, wanted.kubeconfig, yes=wanted.yes, progress=progress
        )
    os.environ["KUBECONFIG"] = str(chosen.kubeconfig)
    options = Options(
        parallel=wanted.parallel,
        policy_packs=_packs(site, wanted.policy_packs),
        expect_no_changes=wanted.expect_no_changes,
    )
    run = _Run(site, chosen, workspace, options, choose_display(as_json=wanted.as_json))
    if stale:
        typer.echo("· the API server is a new one: looking what is left of the stack", err=True)
        deployment.refresh(workspace, Options(parallel=wanted.parallel), run.display)
    return run


def _packs(site: Site, named: list[Path] | None) -> tuple[Path, ...]:
    if named is not None:
        return tuple(pack.resolve() for pack in named)
    return (site.policies,) if (site.policies / "PulumiPolicy.yaml").is_file() else ()
