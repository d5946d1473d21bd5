"""The options of what runs the engine, each run with those of the lesser one and some of its own."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from operations.cli.options import Form, JsonOption, OutputOption, StackOption, YesOption, note_json

RefreshFirst = Annotated[bool, typer.Option("--refresh", help="Read what is really there first.")]
PreviewOnly = Annotated[bool, typer.Option("--preview-only", help="Show it; nothing is written.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of the engine. events: show what happens as JSON, one event a line.

    policy_pack: None means the project's own.
    """

    stack: StackOption = "dev"
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig", metavar="FILE", help="Use this cluster of yours instead of the sandbox's own."
        ),
    ] = None
    yes: YesOption = False
    parallel: Annotated[
        int, typer.Option("--parallel", "-p", min=1, help="How many steps may run at the same time.")
    ] = 16
    output: OutputOption = Form.TABLE
    events: Annotated[
        bool,
        typer.Option(
            "--json",
            callback=note_json,
            is_eager=True,
            help="Events as JSON, one a line, as `pulumi up --json`.",
        ),
    ] = False
    expect_no_changes: bool = False
    policy_pack: list[Path] | None = None
    continue_on_error: bool = False
    clear_pending_creates: bool = False
    refresh: bool = False
    run_program: bool = False
    preview_only: bool = False
    skip_preview: bool = False
    target: list[str] | None = None
    target_dependents: bool = False
    exclude: list[str] | None = None
    exclude_dependents: bool = False
    exclude_protected: bool = False
    replace: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectiveRun(Run):
    """A run that may be told which resources are meant."""

    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target", "-t", metavar="URN", help="Only this resource; '*' and '**' match as with pulumi."
        ),
    ] = None
    target_dependents: Annotated[
        bool, typer.Option("--target-dependents", help="And what depends on the targets.")
    ] = False
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", metavar="URN", help="All but this resource.")
    ] = None
    exclude_dependents: Annotated[
        bool, typer.Option("--exclude-dependents", help="And but what depends on the excluded ones.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRun(SelectiveRun):
    """A run that may be expected to change nothing."""

    expect_no_changes: Annotated[
        bool, typer.Option("--expect-no-changes", help="Fail with exit code 7 when anything changes.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DestroyRun(SelectiveRun):
    """A run that takes everything away, or only shows it."""

    refresh: RefreshFirst = False
    preview_only: PreviewOnly = False
    run_program: Annotated[
        bool,
        typer.Option("--run-program", help="Run the program, for its hooks and what it gives providers."),
    ] = False
    exclude_protected: Annotated[
        bool,
        typer.Option("--exclude-protected", help="Leave alone what is protected, and what it depends on."),
    ] = False


class Protected(StrEnum):
    """Whether what is imported is protected."""

    TRUE = "true"
    FALSE = "false"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRun(Run):
    """A run that records an object that exists, or only shows that."""

    token: Annotated[str, typer.Argument(metavar="TYPE", help="Its type: 'kubernetes:core/v1:Secret'.")]
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name in the program.")]
    object_id: Annotated[str, typer.Argument(metavar="ID", help="Its id, as its provider knows it.")]
    parent: Annotated[
        str,
        typer.Option("--parent", metavar="NAME=URN", help="Its parent: variable and URN; else the stack."),
    ] = ""
    provider: Annotated[
        str,
        typer.Option("--provider", metavar="NAME=URN", help="Its provider, likewise; else the default one."),
    ] = ""
    protect: Annotated[
        Protected, typer.Option("--protect", help="Protect it from being deleted, as pulumi does.")
    ] = Protected.TRUE
    preview_only: PreviewOnly = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRun(CheckedRun):
    """A run that may forget what was begun, or only show what it finds."""

    preview_only: PreviewOnly = False

    clear_pending_creates: Annotated[
        bool,
        typer.Option(
            "--clear-pending-creates",
            help="Forget creates that a killed run began; look first for what they made.",
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRun(CheckedRun):
    """A run that policies judge."""

    refresh: RefreshFirst = False

    policy_pack: Annotated[
        list[Path] | None,
        typer.Option(
            "--policy-pack", metavar="FOLDER", help="Policy packs instead of the project's policies/."
        ),
    ] = None

    replace: Annotated[
        list[str] | None, typer.Option("--replace", metavar="URN", help="Make this resource anew.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpRun(JudgedRun):
    """A run that a failure need not stop, and that need not be previewed once more."""

    skip_preview: Annotated[
        bool,
        typer.Option("--skip-preview", help="Update at once, as where a preview was looked at before."),
    ] = False

    continue_on_error: Annotated[
        bool,
        typer.Option(
            "--continue-on-error", help="After a failure, go on with all that does not depend on it."
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRun(JudgedRun):
    """A run whose answer is a preview, whichever way JSON is asked for."""

    events: JsonOption = False
