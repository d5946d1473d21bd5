"""The result of a command, as a document for machines and as text for people, and how it is written."""

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
    """A line that starts with a mark for success or failure."""

    well: bool
    text: str
    bold: bool = False


_FOR_PEOPLE: Final = re.compile("^[✓✗→·!]", re.MULTILINE)
"""Text with a marked line. Other text can be a document with commands that run in another place."""

Part: TypeAlias = str | Table | Commands | VerdictLine


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command: a JSON document, the same content for people, and the exit code."""

    document: Any
    parts: Iterable[Part]
    exit_code: int = 0


def write(answer: CommandResult, form: Form) -> None:
    """Write a result to standard output in the requested format.

    Raises CredfleetError `no-names` if names are requested from a result that lists nothing.
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
    """Write lines and tables to standard output; width: of tables, None for unlimited."""
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
    """Return the distinct names in a result's tables, or that of its only account; raises as `write`."""
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
    """Return problems as JSON documents."""
    return [{"place": each.place, "problem": each.problem, "fix": each.fix} for each in problems]


def as_lines(problems: Iterable[Problem], mark: str = "✗") -> Iterator[str]:
    """Return each problem as a text for people. mark: `!` for warnings."""
    return (f"{mark} {each.where}: {each.problem}\n→ {each.fix}" for each in problems)


def write_json(document: Any) -> None:
    """Write a JSON document to standard output."""
    typer.echo(as_json(document))


def as_yaml(document: Any) -> str:
    """Return a document as YAML; terminal control characters are escaped."""
    import yaml

    text = str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return str(yaml.safe_dump(document, sort_keys=False)) if steers(text) else text


def as_json(document: Any) -> str:
    """Return a document as JSON; terminal control characters are escaped, dates are in ISO format."""
    as_text = methodcaller("isoformat")
    return escaped(json.dumps(document, indent=2, ensure_ascii=False, default=as_text))
