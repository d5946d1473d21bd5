"""The options of `credfleet sandbox up`; all others of an update are options of the Pulumi CLI."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from operations.cli.options import Form, OutputOption, StackOption, YesOption


@dataclass(frozen=True, slots=True, kw_only=True)
class UpRun:
    """The stack to update, its cluster, and the output."""

    stack: StackOption = "dev"
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own cluster, instead of the one of the sandbox.")
    ] = None
    yes: YesOption = False
    parallel: Annotated[int, typer.Option("--parallel", "-p", min=1, help="Maximum steps in parallel.")] = 16
    output: OutputOption = Form.TABLE
    expect_no_changes: Annotated[
        bool, typer.Option("--expect-no-changes", help="Exit with 7 if anything changes.")
    ] = False
    skip_preview: Annotated[bool, typer.Option("--skip-preview", help="Update without a preview.")] = False
