"""`credfleet fleet`: all stacks of a project, how they stand, and which of them has which tenants."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from operations.cli.answer import CommandResult
from operations.cli.command import command, group
from operations.cli.options import StackOption, YesOption

app = group(
    "See all stacks of the project together, and share tenants out among them.", "credfleet fleet status"
)


AtOnce = Annotated[
    int, typer.Option("--at-once", min=1, help="How many stacks are worked on at the same time.")
]
Kubeconfig = Annotated[
    Path | None, typer.Option("--kubeconfig", metavar="FILE", help="A cluster of yours for all of them.")
]


@command(
    app,
    "credfleet fleet status",
    "credfleet fleet status --drift --output json",
    "PULUMI_BACKEND_URL=file:///srv/states credfleet fleet status",
)
def status(
    *,
    drift: Annotated[
        bool,
        typer.Option("--drift", help="Look in the clusters what a refresh would find, and write nothing."),
    ] = False,
    at_once: AtOnce = 2,
    kubeconfig: Kubeconfig = None,
) -> CommandResult:
    """Show each stack's tenants, accounts, last update, failures, and whether its files changed since.

    States and files alone are read, without --drift: no key is used, no cluster is asked.

    Exit code 1 when a stack failed, or cannot be read.
    """
    from operations.fleet.status import fleet_status

    return fleet_status(drift=drift, at_once=at_once, kubeconfig=kubeconfig)


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
        typer.Option(
            "--by", min=1, help="How many tenants a stack has at most; absent: as stacks.yaml says, or 100."
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write stacks.yaml and the new stacks' files, and move the state.")
    ] = False,
    yes: YesOption = False,
) -> CommandResult:
    """Share the tenants in files out among stacks, by ranges of their names; without --write it is proposed.

    Without --by it is done as stacks.yaml says. Nothing in the cluster changes: what
    moves is known to another state. A split that was killed goes on when it is run again.
    """
    from operations.fleet.split import split

    return split(stack, by, write=write, yes=yes)


Chosen = Annotated[
    list[str] | None, typer.Argument(metavar="[STACK]...", help="Stacks of stacks.yaml; all without.")
]


@command(app, "credfleet fleet up", "credfleet fleet up prod prod-2 --at-once 4")
def up(stacks: Chosen = None, at_once: AtOnce = 2, kubeconfig: Kubeconfig = None) -> CommandResult:
    """Bring the stacks of stacks.yaml up side by side, those of pools first.

    Exit code 1 when one failed, 9 when something was skipped and nothing worse happened.
    """
    from operations.fleet.updating import up_together

    return up_together(stacks or (), at_once, kubeconfig)


@command(app, "credfleet fleet preview", "credfleet fleet preview prod-2 --output json")
def preview(stacks: Chosen = None, at_once: AtOnce = 2, kubeconfig: Kubeconfig = None) -> CommandResult:
    """Tell what `fleet up` would do, in the same table and with the same exit codes; nothing is written."""
    from operations.fleet.updating import up_together

    return up_together(stacks or (), at_once, kubeconfig, only_preview=True)
