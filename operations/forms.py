"""The two forms in which every command answers: tables for people, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

_CHOSEN = "credfleet.form"


class Form(StrEnum):
    """How a command's answer is written to standard output."""

    TABLE = "table"
    JSON = "json"


def _remember(context: typer.Context, form: Form) -> Form:
    """Keep the form where an error of any command finds it."""
    if form is Form.JSON:
        context.meta[_CHOSEN] = form
    return form


def _remember_json(context: typer.Context, json_wanted: bool) -> bool:
    if json_wanted:
        context.meta[_CHOSEN] = Form.JSON
    return json_wanted


def chosen(context: typer.Context) -> Form:
    """Give the form asked for by `--output` or `--json` of the running command."""
    return context.meta.get(_CHOSEN, Form.TABLE)


OutputOption = Annotated[
    Form, typer.Option("--output", "-o", callback=_remember, is_eager=True, help="Form of the answer.")
]
JsonOption = Annotated[
    bool, typer.Option("--json", callback=_remember_json, is_eager=True, help="Short for --output json.")
]


def examples(*lines: str) -> str:
    """Make the epilog of a command: its examples, one a line, kept as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def print_json(value: Any) -> None:
    """Write one JSON document to standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    style: Callable[[Sequence[str]], str] = lambda _row: "",
) -> None:
    """Draw one table on standard output: a heading, then aligned columns without a frame."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 3, 0, 0)
    )
    for column in columns:
        table.add_column(column, header_style="dim", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row), style=style(row))
    console = Console(highlight=False)
    console.print()
    console.print(table)
