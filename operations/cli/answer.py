"""What a command answers: a document for machines, lines and tables for people; one place writes any form."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, Final, TypeAlias

import typer
from pulumi_sandbox.steering import escaped, steers, visible

from components.errors import CredfleetError, Problem
from operations.cli.inputs import shown
from operations.cli.options import Form
from operations.cli.tables import Commands, Table


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """A line that begins with a mark: it is well, or it is not."""

    well: bool
    text: str
    bold: bool = False


_FOR_PEOPLE: Final = re.compile("^[✓✗→·!]", re.MULTILINE)
"""A line with a mark; other text may be a document, whose commands are run elsewhere."""

Part: TypeAlias = str | Table | Commands | VerdictLine


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The answer of a command: a JSON document, the same for people in parts, and the exit code."""

    document: Any
    parts: Iterable[Part]
    exit_code: int = 0


def write(answer: CommandResult, form: Form) -> None:
    """Write an answer to standard output, in the form that was asked for.

    Raises CredfleetError, code `no-names`, for names of an answer that lists nothing.
    """
    match form:
        case Form.JSON:
            write_json(answer.document)
        case Form.YAML:
            typer.echo(as_yaml(answer.document), nl=False)
        case Form.NAME:
            for name in names(answer):
                typer.echo(visible(name))
        case Form.TABLE | Form.WIDE:
            fits = form is Form.TABLE and sys.stdout.isatty()
            write_parts(answer.parts, shutil.get_terminal_size().columns if fits else None)


def write_parts(parts: Iterable[Part], width: int | None) -> None:
    """Write lines and tables to standard output, tables within a width; None is without end."""
    for part in parts:
        match part:
            case Table() if part.empty and not part.rows:
                typer.echo(shown(part.empty))
            case Table():
                table = Table(shown(part.title), part.columns, ([*map(shown, row)] for row in part.rows))
                typer.echo("\n" + "\n".join(table.lines(width)))
            case Commands():
                told = ((shown(command), shown(purpose)) for command, purpose in part.rows)
                typer.echo("\n" + "\n".join(Commands(shown(part.title), (*told,)).lines(width)))
            case VerdictLine(well, text, bold):
                mark = typer.style("✓", fg="green") if well else typer.style("✗", fg="red")
                typer.echo(f"{mark} {typer.style(shown(text), bold=bold or None)}")
            case str():
                typer.echo(shown(part) if _FOR_PEOPLE.search(part) else visible(part))


def names(answer: CommandResult) -> list[str]:
    """Return what an answer's tables name, each once, else the one account it is about; raises as `write`."""
    tables = [part for part in answer.parts if isinstance(part, Table)]
    if not tables and isinstance(answer.document, dict) and (name := answer.document.get("secretName")):
        return [name]
    if answer.document != [] and not any(column.names for table in tables for column in table.columns):
        raise CredfleetError(
            code="no-names",
            place="--output name",
            problem="what this command answers has no names",
            fix="take --output json",
        )
    return list(dict.fromkeys(name for table in tables for name in table.names() if name))


def as_documents(problems: Iterable[Problem]) -> list[dict[str, str]]:
    """Return problems for machines."""
    return [{"place": each.place, "problem": each.problem, "fix": each.fix} for each in problems]


def as_lines(problems: Iterable[Problem], mark: str = "✗") -> Iterator[str]:
    """Return problems for people, one text each. mark: `!` for warnings."""
    return (f"{mark} {each.where}: {each.problem}\n→ {each.fix}" for each in problems)


def write_json(document: Any) -> None:
    """Write one JSON document to standard output."""
    typer.echo(as_json(document))


def as_yaml(document: Any) -> str:
    """Return a document as YAML, what could steer a terminal being escaped."""
    import yaml

    text = str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return str(yaml.safe_dump(document, sort_keys=False)) if steers(text) else text


def as_json(document: Any) -> str:
    """Return a document as JSON, what could steer a terminal being escaped; a date is the text of it."""
    as_text = methodcaller("isoformat")
    return escaped(json.dumps(document, indent=2, ensure_ascii=False, default=as_text))
