"""`credfleet review`: previews a checkout without keys, and exports what it is compared with."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from pulumi_sandbox import engine
from pulumi_sandbox.documents import read_json

from components.errors import CredfleetError
from operations.cli.answer import Answer
from operations.cli.command import command, epilog
from operations.cli.inputs import STANDARD_INPUT
from operations.cli.options import Form, OutputOption, StackOption
from operations.folders import Folders

app = typer.Typer(
    help="Preview a stack with nothing that could decrypt it.",
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
            help="What `pulumi stack export --show-secrets` wrote, or -; else the sandbox's own.",
        ),
    ] = None,
) -> None:
    """Write what a review is made against: references, names and digests, no value and no ciphertext.

    Run it right after an update, with the rights to see the pool.
    """
    from operations.config.settings import judged
    from operations.review.record import made
    from operations.sandbox.stack_state import open_workspace, stack_here

    folders, at_rest = Folders.find(Path.cwd()), stack_here(stack)
    if state is None:
        snapshot = open_workspace(folders, stack).store.load()
    else:
        snapshot = engine.recorded(_deployment(state), _still_encrypted)
    typer.echo(json.dumps(made(at_rest, snapshot, judged(at_rest)).document(), separators=(",", ":")))


@app.callback()
def review(
    context: typer.Context,
    stack: StackOption = "dev",
    checkout: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The program to review; else the one here.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What `review export` wrote; without, everything shows as new."),
    ] = None,
    output: OutputOption = Form.TABLE,
) -> Answer | None:
    """Review a checkout: no key is used, nobody is asked, and its program is shut in.

    Rules and providers are those of the project here. What it prints goes to standard error, escaped.
    """
    del output  # the root writes the answer in that form
    if context.invoked_subcommand is not None:
        return None
    from operations.preview_report.review import shown
    from operations.review.page import as_document, render
    from operations.review.record import Record
    from operations.review.run import reviewed, shut_in

    folders = Folders.find(Path.cwd())
    against = Record.none(stack) if record is None else Record.read(record, stack)
    shut_in()
    found = reviewed(folders, (checkout or folders.project).resolve(), against)
    for line in found.printed:
        typer.echo(f"| {shown(line, 2000)}", err=True)
    return Answer(as_document(found), render(found).splitlines(), 1 if found.failed or found.problems else 0)


def _deployment(state: str) -> dict[str, object]:
    content = sys.stdin.read() if state == STANDARD_INPUT else Path(state).read_text("utf-8")
    try:
        return read_json(content)["deployment"]
    except (ValueError, KeyError, TypeError):
        raise _unfit(state, "it is no state") from None


def _still_encrypted(_ciphertext: str) -> str:
    raise _unfit("the state", "its secrets are encrypted, so that the shape of none can be recorded")


def _unfit(place: str, cause: str) -> CredfleetError:
    return CredfleetError(
        code="state-unreadable",
        place=place,
        cause=cause,
        mend="give it what `pulumi stack export --show-secrets` writes",
    )
