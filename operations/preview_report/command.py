"""`credfleet preview-report`: a preview as a review for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from pulumi_sandbox.steering import visible

from operations.cli.answer import CommandResult
from operations.cli.command import command, parameter
from operations.cli.inputs import STANDARD_INPUT, place_of, read_bytes
from operations.cli.options import form_option

alone = typer.Typer()


@command(
    alone,
    "pulumi preview --json > preview.json; credfleet preview-report preview.json",
    "pulumi preview --json | credfleet preview-report - --format json",
    name="preview-report",
    form=(
        parameter(
            "form",
            Annotated[Literal["markdown", "json"], form_option("--format", help_="Format of the review.")],
            "markdown",
        ),
    ),
)
def preview_report(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Output of `pulumi preview --json`. - is standard input.",
        ),
    ],
) -> CommandResult:
    """Review a preview: losses first, then policies, claims and changes by tenant.

    It shows names, never a value. The same preview gives the same review. The text of errors, warnings, and
    policies goes to standard error.
    """
    from operations.preview_report.digest import parse
    from operations.preview_report.markdown import render
    from operations.preview_report.review import review

    content = read_bytes(file, "what `pulumi preview --json` wrote")
    name = Path(file).name
    preview = parse(content, place_of(name))
    for message in preview.messages():
        typer.echo(visible(message.rstrip("\n")), err=True)
    found = review(preview)
    source = "FILE" if file == STANDARD_INPUT else name
    return CommandResult(found.document(), render(found, source).splitlines())
