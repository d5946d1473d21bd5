"""`credfleet preview-report`: a preview as a review for a pull request."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from pulumi_sandbox.steering import visible

from components.errors import CredfleetError
from operations.cli.answer import CommandResult
from operations.cli.command import command, parameter
from operations.cli.inputs import STANDARD_INPUT
from operations.cli.options import form_option


class ReportForm(StrEnum):
    """How a review is written to standard output."""

    MARKDOWN = "markdown"
    JSON = "json"


alone = typer.Typer()


@command(
    alone,
    "pulumi preview --json > preview.json; credfleet preview-report preview.json",
    "pulumi preview --json | credfleet preview-report - --format json",
    name="preview-report",
    form=(
        parameter(
            "form",
            Annotated[ReportForm, form_option("--format", help_="Form of the review.")],
            ReportForm.MARKDOWN,
        ),
    ),
)
def preview_report(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="What `pulumi preview --json` wrote; - is standard input.",
        ),
    ],
) -> CommandResult:
    """Review a preview: losses first, then policies, claims and changes by tenant.

    Names what changes and never shows a value. The same preview gives the same review. What errors,
    warnings and policies say goes to standard error.
    """
    from operations.preview_report.digest import parse
    from operations.preview_report.markdown import render
    from operations.preview_report.review import review

    content, place = _read(file)
    preview = parse(content, place)
    for message in preview.messages():
        typer.echo(visible(message.rstrip("\n")), err=True)
    found = review(preview)
    source = "FILE" if file == STANDARD_INPUT else place
    return CommandResult(found.document(), render(found, source).splitlines())


def _read(file: str) -> tuple[bytes, str]:
    """Return a preview, and the place it was read from."""
    if file == STANDARD_INPUT:
        return sys.stdin.buffer.read(), "standard input"
    try:
        return Path(file).read_bytes(), Path(file).name
    except OSError as error:
        raise CredfleetError(
            code="preview-unreadable",
            place=file,
            problem=f"it cannot be read: {error.strerror}",
            fix="name a file that `pulumi preview --json` wrote",
        ) from None
