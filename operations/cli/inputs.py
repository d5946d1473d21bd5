"""Reads user input: files, standard input (`-`), and confirmations."""

import errno
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

import typer
from pulumi_sandbox.steering import visible

from components.errors import CredfleetError

STANDARD_INPUT: Final = "-"

_NAME: Final = "credfleet"
TYPED: Final = sys.argv[0] if sys.argv[0].endswith(f"/{_NAME}") and not shutil.which(_NAME) else _NAME
"""Command as the user must type it: the name, or the path if PATH did not contain it at startup."""

_WORDS: Final = "aso|bootstrap|config|doctor|fleet|init|pool|preview-report|pull-secret|review|sandbox|stores"
_COMMAND: Final = re.compile(rf"(?<![\w./-]){_NAME}(?= ({_WORDS})\b)")


def place_of(file: str) -> str:
    """Return the name of an input in errors."""
    return "standard input" if file == STANDARD_INPUT else file


def read_bytes(file: str, holds: str, instead: str = ", or - for standard input") -> bytes:
    """Read all of an input. holds: its expected content; instead: alternatives. Raises as `unreadable`."""
    try:
        return _content(file)
    except OSError as error:
        raise unreadable(file, error.strerror, f"a file with {holds}{instead}") from error


def unreadable(file: str, why: str | None, meant: str) -> CredfleetError:
    """Return the error `file-unreadable` for an input that is missing or cannot be read."""
    return CredfleetError(
        code="file-unreadable",
        place=place_of(file),
        problem=f"it cannot be read ({why}), so nothing is known of it",
        fix=f"name {meant}",
    )


def read_yaml(file: str) -> bytes:
    """Read a file of Kubernetes YAML; raises as `read_bytes`, and `yaml-invalid` if it is empty."""
    content = read_bytes(file, "Kubernetes YAML")
    if content.strip():
        return content
    raise CredfleetError(
        code="yaml-invalid",
        place=place_of(file),
        problem="it is empty, as when the command that should write it has failed",
        fix="run that command alone, which shows its error, and give what it writes",
    )


def _content(file: str) -> bytes:
    if file != STANDARD_INPUT:
        return Path(file).read_bytes()
    if not sys.stdin:  # it was closed
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return sys.stdin.buffer.read()


def shown(text: str) -> str:
    """Return a text for people: commands as they must be typed, without terminal control characters."""
    return visible(_COMMAND.sub(lambda _: TYPED, text))


def ask(question: str, *, yes: bool) -> None:
    """Return only if the user agrees, by `--yes` or at the prompt.

    Raises CredfleetError `not-confirmed` if the user declines or there is no terminal, and `cancelled` on
    Ctrl-C.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise CredfleetError(
            code="not-confirmed",
            place="--yes",
            problem=f"this needs a confirmation, and there is no terminal: {question}",
            fix=f"to agree, run `{shlex.join([TYPED, *sys.argv[1:], '--yes'])}`",
        )
    try:
        code = "" if typer.confirm(visible(question), err=True) else "not-confirmed"
    except typer.Abort:
        typer.echo(err=True)
        code = "cancelled"
    if code:
        raise CredfleetError(
            code=code,
            place="credfleet",
            problem="you said no, nothing was changed",
            fix="run the same command again when you want it",
        )
