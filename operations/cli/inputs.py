"""What people give a command: a file byte for byte, - for standard input; their consent; how they type it."""

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
"""What has to be typed to run a command: its name, or its path if PATH had it not at the start."""

_WORDS: Final = "aso|bootstrap|config|doctor|fleet|init|pool|preview-report|pull-secret|review|sandbox|stores"
_COMMAND: Final = re.compile(rf"(?<![\w./-]){_NAME}(?= ({_WORDS})\b)")


def place_of(file: str) -> str:
    """Return how errors name it."""
    return "standard input" if file == STANDARD_INPUT else file


def read_bytes(file: str, holds: str, instead: str = ", or - for standard input") -> bytes:
    """Return all of it. holds: what belongs into it. instead: of a file. Raises as `unreadable`."""
    try:
        return _content(file)
    except OSError as error:
        raise unreadable(file, error.strerror, f"a file with {holds}{instead}") from error


def unreadable(file: str, why: str | None, meant: str) -> CredfleetError:
    """Say that what a command was given is not there, or cannot be read: `file-unreadable`."""
    return CredfleetError(
        code="file-unreadable",
        place=place_of(file),
        problem=f"it cannot be read ({why}), so nothing is known of it",
        fix=f"name {meant}",
    )


def read_yaml(file: str) -> bytes:
    """Return all of a file of Kubernetes YAML; as `read_bytes`, and `yaml-invalid` for an empty one."""
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
    """Return a text for people: commands as they have to be typed, and nothing that steers a terminal."""
    return visible(_COMMAND.sub(lambda _: TYPED, text))


def ask(question: str, *, yes: bool) -> None:
    """Go on only when the user agrees, by `--yes` or at the prompt.

    Raises CredfleetError `not-confirmed`, when the answer is no or there is no terminal; `cancelled`, when it
    is Ctrl-C.
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
