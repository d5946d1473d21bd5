"""What a command answers: JSON for machines, lines and tables for people; one place writes either."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import typer

_UNFOLDED: Final = 1000
"""Characters no row reaches."""
_STEERING: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but the end of a line and the tab, and those that turn the direction of writing."""


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, and aligned columns without a frame."""

    title: str
    columns: Sequence[str]
    rows: Iterable[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A line that begins with a mark: it is well, or it is not."""

    well: bool
    text: str
    bold: bool = False


Part: TypeAlias = str | Table | Verdict


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a command: a JSON document, the same for people in parts, and the exit code."""

    document: Any
    parts: Iterable[Part]
    exit_code: int = 0


def write(answer: Answer, *, as_json: bool) -> None:
    """Write an answer to standard output, in the form that was asked for."""
    if as_json:
        write_json(answer.document)
        return
    for part in answer.parts:
        match part:
            case Table():
                _draw(part)
            case Verdict(well, text, bold):
                mark = typer.style("✓", fg="green") if well else typer.style("✗", fg="red")
                typer.echo(f"{mark} {typer.style(visible(text), bold=bold or None)}")
            case str():
                typer.echo(visible(part))


def write_json(document: Any) -> None:
    """Write one JSON document to standard output."""
    typer.echo(as_json(document))


def as_json(document: Any) -> str:
    """Return a document as JSON, what could steer a terminal being escaped."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def visible(text: str) -> str:
    """Return a text without what could steer a terminal: what is shown may come from anybody's objects."""
    return _STEERING.sub("\ufffd", text)


def _draw(given: Table) -> None:
    """Draw one table; only a terminal's width folds it, a file or a pipe gets every row in one line."""
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(title=given.title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.padding = (0, 2, 0, 0)
    for column in given.columns:
        table.add_column(column, header_style="dim", overflow="fold")
    for row in given.rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _UNFOLDED
    console.print()
    console.print(table)
