"""The two forms in which every command answers: tables for people, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any, Final

import typer

_JSON_WANTED: Final = "credfleet.json"
_UNFOLDED: Final = 1000
"""Characters no row reaches."""


class Form(StrEnum):
    """How a command's answer is written to standard output."""

    TABLE = "table"
    JSON = "json"


def _note_form(context: typer.Context, form: Form) -> Form:
    return Form.JSON if note_json(context, form is Form.JSON) else Form.TABLE


def note_json(context: typer.Context, wanted: bool) -> bool:
    """Keep the wish where the failure of any command finds it."""
    if wanted:
        context.meta[_JSON_WANTED] = True
    return wanted


def json_wanted(context: typer.Context) -> bool:
    """Tell whether the running command was asked for JSON."""
    return context.meta.get(_JSON_WANTED, False)


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Tell whether a command line that could not be parsed asks for JSON."""
    spelt = {*arguments, *pairwise(arguments)}
    return not spelt.isdisjoint({"--json", "--output=json", "-ojson", ("--output", "json"), ("-o", "json")})


OutputOption = Annotated[
    Form, typer.Option("--output", "-o", callback=_note_form, is_eager=True, help="Form of the answer.")
]
JsonOption = Annotated[
    bool, typer.Option("--json", callback=note_json, is_eager=True, help="Short for --output json.")
]


def examples(*lines: str) -> str:
    """Make the epilog of a command: its examples, one a line, kept as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def print_json(value: Any) -> None:
    """Write one JSON document to standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Draw one table on standard output: a heading, then aligned columns without a frame.

    Only a terminal's width folds it; a file or a pipe gets every row in one line.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.padding = (0, 2, 0, 0)
    for column in columns:
        table.add_column(column, header_style="dim", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _UNFOLDED
    console.print()
    console.print(table)
