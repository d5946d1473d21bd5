"""Options that several commands share, and the output formats."""

from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final

import typer

_FORM: Final = "credfleet.form"


class Form(StrEnum):
    """The format of a command's output; wide: with every column, names: one per line."""

    TABLE = "table"
    WIDE = "wide"
    NAME = "name"
    JSON = "json"
    YAML = "yaml"


def _note_form(context: typer.Context, form: str) -> str:
    if form in {*Form}:
        _note(context, Form(form))
    return form


def note_json(context: typer.Context, wanted: bool) -> bool:
    """Record that JSON was requested, for the code that writes results and errors."""
    if wanted:
        _note(context, Form.JSON)
    return wanted


def _note(context: typer.Context, form: Form) -> None:
    context.meta[_FORM] = Form.JSON if Form.JSON in (form, wanted_form(context)) else form


def wanted_form(context: typer.Context) -> Form:
    """Return the output format that was requested from the running command."""
    return context.meta.get(_FORM, Form.TABLE)


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line that could not be parsed requests JSON."""
    spelt = {*arguments, *pairwise(arguments)}
    return not spelt.isdisjoint({"--json", "--output=json", "-ojson", ("--output", "json"), ("-o", "json")})


def form_option(*names: str, help_: str = "Format of the output.") -> Any:
    """Return an option that selects the output format, which can be JSON."""
    return typer.Option(*names, callback=_note_form, is_eager=True, help=help_)


def complete_stacks(incomplete: str) -> list[str]:
    """Return the names of the surrounding project's stacks, for shell completion."""
    here = Path.cwd()
    project = next((each for each in (here, *here.parents) if (each / "Pulumi.yaml").is_file()), here)
    names = (each.name.split(".", 1)[1].removesuffix(".yaml") for each in project.glob("Pulumi.*.yaml"))
    return sorted(name for name in names if name.startswith(incomplete))


def stack_option(help_: str) -> Any:
    """Return an option that names a stack."""
    return typer.Option("--stack", "-s", help=help_, autocompletion=complete_stacks)


OutputOption = Annotated[Form, form_option("--output", "-o")]
JsonOption = Annotated[
    bool, typer.Option("--json", callback=note_json, is_eager=True, help="Short for --output json.")
]
StackOption = Annotated[str, stack_option("Name of the stack.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
ClusterOption = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Kubeconfig file. [default: the running sandbox of this folder, otherwise KUBECONFIG]",
    ),
]
