"""`credfleet review`: previews a checkout without keys, and exports the record for comparison."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from components.errors import Misused
from operations.cli.answer import CommandResult
from operations.cli.command import Group, command, epilog
from operations.cli.inputs import place_of, read_bytes
from operations.cli.options import Form, OutputOption, StackOption
from operations.folders import Folders

app = typer.Typer(
    cls=Group,
    help="Preview a stack without its keys.",
    epilog=epilog(
        "credfleet review export --stack dev > dev.record.json",
        "credfleet review --stack dev --record dev.record.json",
    ),
    invoke_without_command=True,
)


@command(
    app,
    "credfleet review export --stack dev > dev.record.json",
    "pulumi stack export --show-secrets | credfleet review export --stack prod --state - > prod.record.json",
    form=(),
)
def export(
    stack: StackOption = "dev",
    state: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Output of `pulumi stack export --show-secrets`, or -. [default: the sandbox's state]"
            " An encrypted state needs no key, and shows less.",
        ),
    ] = None,
    without_cluster: Annotated[
        bool, typer.Option("--without-cluster", help="Do not read the pool. The review then has no forecast.")
    ] = False,
) -> None:
    """Write the record for reviews: references, names, and digests, without values or ciphertext.

    Run it immediately after an update, with permission to read the pool.
    """
    from operations.config.settings import read_settings
    from operations.folders import stack_here
    from operations.review.record import make_record
    from operations.review.sealed import unread
    from operations.stack.state import decode, deployment_in

    folders, at_rest = Folders.find(Path.cwd()), stack_here(stack)
    if state is None:
        if at_rest.backend_dir is None:
            raise Misused(
                place="PULUMI_BACKEND_URL",
                problem="it names no folder, and only the Pulumi CLI reads a state elsewhere",
                fix=f"pulumi stack export --show-secrets --stack {stack}"
                f" | credfleet review export --stack {stack} --state -",
            )
        crypter = at_rest.unlock(public=folders.public_passphrase(stack))
        snapshot = decode(at_rest.deployment(), crypter.decrypt)
    else:
        snapshot = decode(deployment_in(read_bytes(state, "a state"), place_of(state)), unread)
    record = make_record(at_rest, snapshot, read_settings(at_rest), asks=not without_cluster)
    typer.echo(json.dumps(record.document(), separators=(",", ":")))


@app.callback()
def review(
    context: typer.Context,
    stack: StackOption = "dev",
    checkout: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Program to review. [default: the one here]")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Output of `review export`. Without it, everything shows as new."),
    ] = None,
    output: OutputOption = Form.TABLE,
) -> CommandResult | None:
    """Review a checkout without keys, cluster, or network. Its program is confined.

    Policies and providers are those of the project here. The program's output is escaped, on standard error.
    """
    del output  # the root writes the result in this format
    if context.invoked_subcommand is not None:
        return None
    from operations.preview_report.review import shorten
    from operations.review.page import as_document, render
    from operations.review.record import Record
    from operations.review.run import review_branch

    folders = Folders.find(Path.cwd())
    against = Record.none(stack) if record is None else Record.read(record, stack)
    found = review_branch(folders, (checkout or folders.project).resolve(), against)
    for line in found.printed:
        typer.echo(f"| {shorten(line, 2000)}", err=True)
    return CommandResult(
        as_document(found), render(found).splitlines(), 1 if found.review.failed or found.problems else 0
    )
