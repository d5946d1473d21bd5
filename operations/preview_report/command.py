"""`credfleet preview-report`: a preview as a review for a pull request."""

from __future__ import annotations

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from components.errors import CredfleetError
from operations.cli.answer import CommandResult
from operations.cli.command import command, parameter
from operations.cli.inputs import STANDARD_INPUT
from operations.cli.options import form_option

if TYPE_CHECKING:
    from operations.preview_report.review import Review


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

    Names what changes and never shows a value. The same preview gives the same review.
    """
    from operations.preview_report.digest import parse
    from operations.preview_report.markdown import render
    from operations.preview_report.review import review

    content, place = _read(file)
    found = review(parse(content, place))
    source = "FILE" if file == STANDARD_INPUT else place
    return CommandResult(as_document(found), render(found, source).splitlines())


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


def as_document(found: Review) -> dict[str, Any]:
    """Return a review for machines, whole; `policies` is null when the preview does not tell of any."""
    forecast, objections = found.forecast, found.objections
    return {
        "project": found.project,
        "stack": found.stack,
        "failed": found.failed,
        "counts": {str(action): count for action, count in found.counts.items()},
        "unchanged": found.unchanged,
        "changes": [
            {
                "action": str(each.action),
                "tenant": each.owner if each.is_tenant else None,
                "type": each.type,
                "name": each.name,
                "properties": each.properties,
                "forcing": each.forcing,
            }
            for each in found.changes
        ],
        "claims": [
            {
                "action": str(each.action),
                "tenant": each.tenant,
                "slot": each.slot,
                "type": each.type,
                "account": each.account or None,
                "doomed": each.is_doomed,
                "expected": each.expected or None,
            }
            for each in found.claims
        ],
        "poolSeen": not forecast.unseen,
        "freeAccounts": [
            {"accounts": each.accounts, "now": each.before, "expected": each.after}
            for each in forecast.vacancies
        ],
        "skippedClaims": [asdict(each) for each in found.skipped_claims],
        "skipped": [asdict(each) for each in found.skipped],
        "policies": None if objections is None else [asdict(each) for each in objections],
        "remarks": [asdict(each) for each in found.remarks],
    }
