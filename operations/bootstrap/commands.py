"""`credfleet bootstrap`: identities of a stack's workflows, their rights, and whether they have them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from operations.cli.answer import CommandResult
from operations.cli.command import command
from operations.cli.options import ClusterOption, StackOption

alone = typer.Typer()


@command(
    alone,
    "credfleet bootstrap --stack prod --repo acme/fleet > setup.sh",
    "credfleet bootstrap --stack prod --repo acme/fleet --format terraform > identities.tf",
    "credfleet bootstrap --stack prod --format yaml | kubectl apply -f -",
    "credfleet bootstrap --stack prod --check",
    form=(),
)
def bootstrap(
    stack: StackOption = "prod",
    *,
    repo: Annotated[
        str | None,
        typer.Option("--repo", metavar="OWNER/REPO", help="Repository of GitHub whose workflows it is for."),
    ] = None,
    wanted: Annotated[
        Literal["commands", "terraform", "yaml"],
        typer.Option(
            "--format", help="All commands, for bash or Terraform, or the Roles of the cluster alone."
        ),
    ] = "commands",
    check: Annotated[
        bool, typer.Option("--check", help="Ask the cluster what the identities may do, instead of printing.")
    ] = False,
    kubeconfig: ClusterOption = None,
) -> CommandResult:
    """Print what lets the workflows of a stack preview, look for drift, and deploy, and nothing more.

    Nothing is changed. With --check, exit code 5: an identity lacks a right; 1: one has a right too many.
    """
    from operations.bootstrap.check import check as checked
    from operations.bootstrap.script import open_bootstrap

    found = open_bootstrap(Path.cwd(), stack, repo)
    if check or wanted == "yaml":
        found.refuse_unknown_subjects()
    if check:
        return checked(found, kubeconfig)
    templates = {"commands": "commands.sh.j2", "terraform": "commands.tf.j2"}
    text = found.manifests() if wanted == "yaml" else found.script(templates[wanted])
    return CommandResult(None, [text.rstrip("\n")])
