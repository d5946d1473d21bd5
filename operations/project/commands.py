"""`credfleet init`: creates the user's own project, which depends on this package."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from components.errors import CredfleetError
from operations.cli.answer import CommandResult
from operations.cli.command import command

alone = typer.Typer()


class Cloud(StrEnum):
    """The cloud of the accounts in the first pool."""

    AWS = "aws"
    AZURE = "azure"
    GCP = "gcp"


@command(
    alone,
    "credfleet init fleet; cd fleet; make up",
    "credfleet init fleet --rooms accountPool,services --cloud azure",
    "credfleet init fleet --cluster fleet-prod --secrets-provider 'gcpkms://…'",
    "credfleet init --here    # in a folder that has files already",
)
def init(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="Folder of the new project. [default: this one]"),
    ] = None,
    *,
    here: Annotated[bool, typer.Option("--here", help="Add missing files to this folder.")] = False,
    rooms: Annotated[
        str | None,
        typer.Option(
            metavar="ROOM,…",
            help="Components of stack dev: accountPool, asoCredentials, pullSecrets, services, secretStores.",
        ),
    ] = None,
    cloud: Annotated[Cloud | None, typer.Option(help="Cloud of the accounts.")] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="CONTEXT", help="Context of your cluster, for a stack prod.")
    ] = None,
    secrets_provider: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Secrets provider of stack prod: passphrase, awskms://…, azurekeyvault://…, gcpkms://….",
        ),
    ] = None,
) -> CommandResult:
    """Create a small Pulumi project of your own, which `make up` deploys to the sandbox.

    It depends on this package. On a terminal, it asks for missing options. Existing files are unchanged.
    """
    if folder is not None and here:
        raise CredfleetError(
            code="usage",
            place="credfleet init",
            problem="--here is the folder you are in, and another is named",
            fix="credfleet init DIR, or in the folder: credfleet init --here",
        )
    from operations.project.starting import PASSPHRASE, ROOMS, Wanted, rooms_of, start

    rooms = _asked(rooms, f"Rooms that stack dev shows ({', '.join(ROOMS)})", "accountPool")
    named = rooms_of(rooms)
    cloud = Cloud(_asked(cloud, "Cloud of the pool's accounts", Cloud.AWS))  # asked until valid
    cluster = _asked(cluster, "Context of your cluster, empty for the sandbox alone", "") or None
    question = "Who encrypts stack prod (passphrase, awskms://…, azurekeyvault://…, gcpkms://…)"
    if secrets_provider is None:
        secrets_provider = _asked(None, question, PASSPHRASE) if cluster else PASSPHRASE
    wanted = Wanted(rooms=named, cloud=cloud, cluster=cluster, secrets_provider=secrets_provider)
    return start(folder or Path(), wanted, here=here)


def somebody_is_there() -> bool:
    """Return whether a user can be asked."""
    return sys.stdin.isatty()


def _asked(given: str | None, question: str, default: str) -> str:
    """Return the given value, otherwise the user's answer on a terminal, otherwise the default."""
    if given is not None:
        return given
    if not somebody_is_there():
        return default
    return str(typer.prompt(question, default=default, show_default=bool(default), err=True))
