"""`pulumi-sandbox`: runs the Pulumi program of this folder on a real API server, without the Pulumi CLI."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.files import is_full_disk
from pulumi_sandbox.folders import Folders
from pulumi_sandbox.steering import visible

if TYPE_CHECKING:
    from pulumi_sandbox.engine import Options, Result, Sink, Workspace
    from pulumi_sandbox.stack_cluster import StackCluster

_CANCELLED: Final = 8

_SELECTIONS: Final = {
    "--target": "only this resource; * stands for all but colons, ** for anything; repeatable",
    "--exclude": "all but this resource; repeatable",
}

_EXAMPLES: Final = """\
examples:
  pulumi-sandbox up --stack dev          start what the stack needs, and create what it declares
  pulumi-sandbox preview --stack dev     show what an update would change
  pulumi-sandbox up --stack dev --kubeconfig ~/.kube/config
                                         the same on a cluster of yours
  pulumi-sandbox up --stack dev --target '**::greeting' --target-dependents
                                         only this resource, and what depends on it
  pulumi-sandbox import --stack dev kubernetes:core/v1:Namespace mine mine
                                         record what exists, and print the code for it
  pulumi-sandbox status                  what runs, its kubeconfig files and logs
  pulumi-sandbox down                    stop what runs; data and state are kept
  pulumi-sandbox --version               which one it is, of every command

A stack's secrets are encrypted with the passphrase in PULUMI_CONFIG_PASSPHRASE, or in the file that
PULUMI_CONFIG_PASSPHRASE_FILE names. The first `up` on a machine builds the API server from source.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: as in the Pulumi CLI, 2 for wrong arguments."""
    if "--version" in (sys.argv[1:] if arguments is None else arguments):
        from importlib.metadata import version

        _print(f"pulumi-sandbox {version('pulumi-sandbox')}")
        return 0
    given = _parser().parse_args(arguments)
    try:
        return given.run(given)
    except SandboxError as error:
        _say(f"✗ {error}")
        return 1
    except OSError as error:
        if not is_full_disk(error):
            raise
        place = error.filename or "disk"
        _say(f"✗ {place}: no space is left to write to\n→ free some space, then run the same command again")
        return 1
    except KeyboardInterrupt:
        return _CANCELLED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pulumi-sandbox",
        description="Run a Pulumi program in Python on a real Kubernetes API server, without the Pulumi CLI.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    deployments: tuple[tuple[str, str], ...] = (
        ("up", "create, update and delete until everything is as declared"),
        ("preview", "show what an update would change; nothing is written"),
        ("refresh", "bring the state up to what is really there; the cluster is only read"),
        ("destroy", "delete everything the stack has declared, after asking"),
        ("import", "record an object that exists as a resource, after asking, and print the code for it"),
    )
    for name, what in deployments:
        command = commands.add_parser(name, help=what, description=f"{name}: {what}.")
        command.add_argument("--stack", required=True, metavar="NAME", help="the stack")
        command.add_argument("--kubeconfig", type=Path, metavar="FILE", help="use a cluster of yours")
        command.add_argument("--context", metavar="NAME", help="that of the kubeconfig; else its current one")
        command.add_argument("--yes", action="store_true", help="do not ask")
        command.add_argument("--parallel", type=int, default=16, metavar="N", help="steps at a time")
        command.add_argument("--json", action="store_true", help="events as JSON, one a line")
        if name not in ("destroy", "import"):
            command.add_argument("--expect-no-changes", action="store_true", help="fail where there are any")
        for flag, meant in _SELECTIONS.items() if name != "import" else ():
            command.add_argument(flag, action="append", default=[], metavar="URN", help=meant)
            command.add_argument(f"{flag}-dependents", action="store_true", help="and what depends on it")
        if name not in ("refresh", "import"):
            command.add_argument("--refresh", action="store_true", help="read what is there first")
        if name in ("refresh", "destroy", "import"):
            command.add_argument("--preview-only", action="store_true", help="show it; nothing is written")
        if name == "destroy":
            command.add_argument("--run-program", action="store_true", help="for its hooks and providers")
            command.add_argument(
                "--exclude-protected", action="store_true", help="leave alone what is protected"
            )
        if name in ("up", "destroy"):
            command.add_argument(
                "--continue-on-error",
                action="store_true",
                help="after a failure, go on with what does not depend on it",
            )
        if name == "refresh":
            command.add_argument(
                "--clear-pending-creates",
                action="store_true",
                help="forget creates that were begun and never ended",
            )
        if name == "import":
            _take_what_is_imported(command)
        if name in ("up", "preview"):
            command.add_argument("--policy-pack", type=Path, action="append", metavar="DIR", help="check it")
            command.add_argument(
                "--replace", action="append", default=[], metavar="URN", help="make this one anew; repeatable"
            )
        command.set_defaults(
            run=_import if name == "import" else _deploy,
            deployment=name,
            expect_no_changes=False,
            policy_pack=None,
            continue_on_error=False,
            clear_pending_creates=False,
            refresh=False,
            run_program=False,
            preview_only=False,
            target=[],
            exclude=[],
            exclude_protected=False,
            replace=[],
            target_dependents=False,
            exclude_dependents=False,
        )
    status = commands.add_parser("status", help="name what runs, for whom, and where the state is")
    status.add_argument("--json", action="store_true", help="as JSON")
    status.set_defaults(run=_status)
    commands.add_parser("down", help="stop what runs; data and state are kept").set_defaults(run=_down)
    commands.add_parser("build", help="build the API server, unless it is built").set_defaults(run=_build)
    return parser


def _take_what_is_imported(command: argparse.ArgumentParser) -> None:
    command.add_argument("type", metavar="TYPE", help="its type token")
    command.add_argument("name", metavar="NAME", help="its name in the program")
    command.add_argument("id", metavar="ID", help="the id of the object, as its provider knows it")
    command.add_argument(
        "--parent",
        default="",
        metavar="NAME=URN",
        help="the variable that holds its parent, and that one's URN",
    )
    command.add_argument("--provider", default="", metavar="NAME=URN", help="the same of its provider")
    command.add_argument("--protect", choices=("true", "false"), default="true", help="protect it: true")


def _import(given: argparse.Namespace) -> int:
    """Show an import, let it be done after asking, and print the code; return the exit code."""
    from pulumi_sandbox import engine

    wanted = engine.Import(
        given.type, given.name, given.id, given.parent, given.provider, given.protect == "true"
    )
    folders, workspace, options, cluster = _ready(given)
    options = replace(options, imported=wanted)
    with engine.display_for(sys.stdout, json_lines=given.json) as display:
        foreseen = engine.import_(workspace, replace(options, preview_only=True), display)
    if foreseen.exit_code or given.preview_only:
        return foreseen.exit_code
    what = f"{wanted.type} {wanted.name} of stack {given.stack} on {cluster.server}"
    _confirm(f"{wanted.id} will be recorded as {what}. Go on?", yes=given.yes)
    cluster.remember(folders.clusters(given.stack))
    with engine.display_for(sys.stdout, json_lines=given.json) as display:
        result = engine.import_(workspace, options, display)
    if result.exit_code == 0:
        try:
            code = engine.constructor_of(wanted, workspace, result.foreseen)
        except SandboxError as error:
            _say(f"· {error}")
        else:
            _print(json.dumps({"code": code}) if given.json else f"\n{engine.how_to_use(wanted)}\n\n{code}")
    return result.exit_code


def _deploy(given: argparse.Namespace) -> int:
    """Start what the stack needs, let the engine work, and return its exit code."""
    from pulumi_sandbox import engine

    folders, workspace, options, cluster = _ready(given)
    writes = given.deployment != "preview" and not given.preview_only
    resources = workspace.store.load().resources
    if given.deployment == "destroy" and writes and resources:
        some = "All" if options.selection.is_whole else "What is meant of the"
        _confirm(
            f"{some} {len(resources)} resources of stack {given.stack} on {cluster.server} will be deleted. "
            "Go on?",
            yes=given.yes,
        )
    if writes:
        cluster.remember(folders.clusters(given.stack))
    deploy: Callable[[Workspace, Options, Sink], Result] = getattr(engine, given.deployment)
    with engine.display_for(sys.stdout, json_lines=given.json) as display:
        code = deploy(workspace, options, display).exit_code
    is_whole = options.selection.is_whole
    if given.deployment == "destroy" and writes and is_whole and code == 0:
        folders.clusters(given.stack).unlink(missing_ok=True)
    return code


def _ready(given: argparse.Namespace) -> tuple[Folders, Workspace, Options, StackCluster]:
    """Start what the stack needs; a state that speaks of an API server that is gone has caught up then.

    Raises SandboxError, for what keeps it from that.
    """
    from pulumi_sandbox import engine
    from pulumi_sandbox.providers import STAND_INS

    folders = Folders.find(Path.cwd())
    workspace = engine.Workspace.open(
        folders.project, given.stack, backend_dir=engine.find_backend(folders.backend)
    )
    workspace, cluster, is_stale = _prepare(given, folders, workspace)
    os.environ["KUBECONFIG"] = str(cluster.kubeconfig)
    options = engine.Options(
        parallel=given.parallel,
        providers=STAND_INS,
        policy_packs=tuple(pack.resolve() for pack in given.policy_pack or ()),
        expect_no_changes=given.expect_no_changes,
        continue_on_error=given.continue_on_error,
        clear_pending_creates=given.clear_pending_creates,
        refresh=given.refresh,
        run_program=given.run_program,
        preview_only=given.preview_only,
        selection=engine.Selection(
            tuple(given.target),
            tuple(given.exclude),
            dependents=given.target_dependents or given.exclude_dependents,
            excludes_protected=given.exclude_protected,
            replaces=tuple(given.replace),
        ),
    )
    if is_stale:
        _say("· the API server is a new one: looking what is left of the stack")
        with engine.display_for(sys.stderr) as display:
            left = engine.refresh(workspace, engine.Options(given.parallel, STAND_INS), display)
        if left.exit_code == _CANCELLED:
            raise KeyboardInterrupt
        if left.exit_code:
            raise SandboxError(
                code="refresh-failed",
                place=f"stack {given.stack}",
                cause="what is left of it on the new API server was not looked up to the end",
                mend="mend what is said above, then run the same command again",
            )
    return folders, workspace, options, cluster


def _prepare(
    given: argparse.Namespace, folders: Folders, workspace: Workspace
) -> tuple[Workspace, StackCluster, bool]:
    """Start what the stack names; return it with the ports, its cluster, and whether its state is stale."""
    from pulumi_sandbox.progress_line import ProgressLine
    from pulumi_sandbox.services import (
        Clouds,
        ControlPlane,
        binaries,
        cache_folder,
        kept_in,
        named,
        settled,
    )
    from pulumi_sandbox.stack_cluster import choose

    with ProgressLine() as progress:
        clouds = Clouds(folders.clouds)
        values = workspace.config().values
        ports = clouds.start(named(values), os.environ, progress)
        os.environ.update(clouds.trust())
        workspace = replace(workspace, given=settled(values, ports))
        return workspace, *choose(
            folders,
            given.stack,
            given.kubeconfig,
            start=lambda: ControlPlane.start(
                folders.control_plane,
                binaries=kept_in(cache_folder()),
                make=lambda: binaries(progress),
                progress=progress,
            ),
            confirm=lambda question: _confirm(question, yes=given.yes),
            context=given.context,
        )


def _status(given: argparse.Namespace) -> int:
    from pulumi_sandbox.running import status
    from pulumi_sandbox.services import Clouds

    folders = Folders.find(Path.cwd())
    found = status(folders, Clouds(folders.clouds))
    if given.json:
        _print(json.dumps(found, indent=2))
        return 0
    _print(f"API server  {found['server'] or 'stopped'}")
    _print(f"state       {found['state']}")
    for name, service in found["services"].items():
        process = f"pid {service['pid']}" if service["running"] else "stopped"
        _print(f"{name}  {process}  {service['address'] or ''}  {service['log']}")
    for user, kubeconfig in found["users"].items():
        _print(f"kubeconfig of {user}  {kubeconfig}")
    return 0


def _down(_: argparse.Namespace) -> int:
    from pulumi_sandbox.running import stop
    from pulumi_sandbox.services import Clouds

    folders = Folders.find(Path.cwd())
    any_ran = stop(folders, Clouds(folders.clouds))
    _print("✓ stopped; data and state are kept" if any_ran else "Nothing runs.")
    return 0


def _build(_: argparse.Namespace) -> int:
    from pulumi_sandbox.progress_line import ProgressLine
    from pulumi_sandbox.services import binaries

    with ProgressLine() as progress:
        folder = binaries(progress)
    _print(f"✓ built: {folder}")
    return 0


def _confirm(question: str, *, yes: bool) -> None:
    """Go on only when the user agrees; raises SandboxError `not-confirmed` else."""
    if yes:
        return
    agreed = sys.stdin.isatty() and input(f"{visible(question)} [y/N] ").strip().lower() in ("y", "yes")
    if not agreed:
        raise SandboxError(
            code="not-confirmed",
            place="--yes",
            cause=f"this has to be confirmed, and nothing was changed: {question}",
            mend="run the same command again with --yes if that is what you want",
        )


def _print(text: str) -> None:
    sys.stdout.write(f"{visible(text)}\n")


def _say(text: str) -> None:
    sys.stderr.write(f"{visible(text)}\n")
