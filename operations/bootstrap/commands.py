"""`credfleet bootstrap`: the identities of a stack's workflows, the rights they need, and a check of both."""

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
        str | None, typer.Option(metavar="OWNER/REPO", help="GitHub repository of the workflows.")
    ] = None,
    wanted: Annotated[
        Literal["commands", "terraform", "yaml"],
        typer.Option(
            "--format", help="All commands, for bash or Terraform, or only the Roles of the cluster."
        ),
    ] = "commands",
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Check the permissions in the cluster and Google Cloud instead of printing."
        ),
    ] = False,
    kubeconfig: ClusterOption = None,
) -> CommandResult:
    """Print the commands that give a stack's workflows exactly the permissions they need.

    Nothing is changed. Exit codes of --check: 5 a permission is missing, 1 an identity has one too many.
    """
    from operations.bootstrap.check import check as checked
    from operations.bootstrap.rights import as_text
    from operations.bootstrap.script import open_bootstrap

    found = open_bootstrap(Path.cwd(), stack, repo)
    if check or wanted == "yaml":
        found.refuse_unknown_subjects()
    if check:
        return checked(found, kubeconfig)
    templates = {"commands": "commands.sh.j2", "terraform": "commands.tf.j2"}
    text = as_text(found.roles) if wanted == "yaml" else found.script(templates[wanted])
    return CommandResult(None, [text.rstrip("\n")])
