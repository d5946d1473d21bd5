"""`credfleet fleet`: all stacks of a project, their status, and their tenants."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from operations.cli.answer import CommandResult
from operations.cli.command import command, group
from operations.cli.options import StackOption, YesOption

app = group("Manage all stacks of a project together.", "credfleet fleet status")


AtOnce = Annotated[int, typer.Option("--at-once", min=1, help="Stacks to process in parallel.")]
Kubeconfig = Annotated[
    Path | None,
    typer.Option("--kubeconfig", metavar="FILE", help="Cluster for all stacks, instead of their own."),
]


@command(
    app,
    "credfleet fleet status",
    "credfleet fleet status --output json",
    "PULUMI_BACKEND_URL=file:///srv/states credfleet fleet status",
)
def status(at_once: AtOnce = 2) -> CommandResult:
    """Show tenants, accounts, last update, failures, and changed files of each stack.

    It reads only states and files, and needs no key and no cluster.

    Exit code 1: a stack failed, or is unreadable.
    """
    from operations.fleet.status import fleet_status

    return fleet_status(at_once)


@command(
    app,
    "credfleet fleet split --stack prod --by 100",
    "credfleet fleet split --stack prod --by 100 --write",
    "credfleet fleet split --stack prod --by 100 --output json",
    "credfleet fleet split --stack prod --write",
)
def split(
    stack: StackOption = "dev",
    *,
    by: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum tenants of a stack. [default: as in stacks.yaml, otherwise 100]"),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write stacks.yaml and the new stacks' files, and move the state.")
    ] = False,
    yes: YesOption = False,
) -> CommandResult:
    """Divide tenant files among stacks, by ranges of names. Without --write, only show the result.

    Without --by, stacks.yaml decides. Nothing in the cluster changes: resources move between states. If a
    split is killed, run it again.
    """
    from operations.fleet.split import split

    return split(stack, by, write=write, yes=yes)


Chosen = Annotated[
    list[str] | None, typer.Argument(metavar="STACK", help="Stacks of stacks.yaml. [default: all]")
]


@command(app, "credfleet fleet up", "credfleet fleet up prod prod-2 --at-once 4")
def up(stacks: Chosen = None, at_once: AtOnce = 2, kubeconfig: Kubeconfig = None) -> CommandResult:
    """Update the stacks of stacks.yaml in parallel, pools first.

    Exit codes: 1 a stack failed, 9 something was skipped.
    """
    from operations.fleet.updating import up_together

    return up_together(stacks or (), at_once, kubeconfig)


@command(app, "credfleet fleet preview", "credfleet fleet preview prod-2 --output json")
def preview(stacks: Chosen = None, at_once: AtOnce = 2, kubeconfig: Kubeconfig = None) -> CommandResult:
    """Preview `fleet up`, with the same table and exit codes."""
    from operations.fleet.updating import up_together

    return up_together(stacks or (), at_once, kubeconfig, only_preview=True)
