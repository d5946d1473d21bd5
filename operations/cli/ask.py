"""Asking before something is taken away or somebody else's cluster is written to."""

import sys

import typer
from pulumi_sandbox.steering import visible

from components.errors import CredfleetError


def ask(question: str, *, yes: bool) -> None:
    """Go on only when the user agrees, by `--yes` or at the prompt.

    Raises:
        CredfleetError: code `not-confirmed`, when the answer is no or nobody is there to ask; `cancelled`,
            when it is Ctrl-C.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise CredfleetError(
            code="not-confirmed",
            place="--yes",
            problem=f"this has to be confirmed and there is no terminal to ask on: {question}",
            fix="add --yes if that is what you want",
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
