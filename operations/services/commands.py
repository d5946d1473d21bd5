"""`credfleet services`: what the credentials of a user-provided service become."""

from typing import Annotated

import typer

from components.go_json import Numbers
from components.service_credentials.binding import DEFAULT_TYPE
from operations.cli.answer import CommandResult
from operations.cli.command import command, group

app = group(
    "See what the credentials of user-provided services become.",
    "credfleet services flatten credentials.json",
    "credfleet services flatten credentials.json --strict --output json",
)


def _given(type_: str) -> str:
    if not type_:
        raise typer.BadParameter("an empty type classifies nothing; leave the option out for user-provided")
    return type_


@command(
    app,
    "credfleet services flatten credentials.json",
    "credfleet services flatten credentials.json --type-default postgresql --strict",
    "pass show orders-db | credfleet services flatten - --numbers exact --output json",
)
def flatten(
    file: Annotated[str, typer.Argument(help="The credentials, a JSON object; - reads standard input.")],
    *,
    type_default: Annotated[
        str,
        typer.Option(
            "--type-default", metavar="TYPE", callback=_given, help="Type where the credentials name none."
        ),
    ] = DEFAULT_TYPE,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse whatever there is a warning about.")
    ] = False,
    numbers: Annotated[
        Numbers,
        typer.Option(
            "--numbers", help="Numbers as 64-bit floats, as in Korifi, or integers digit for digit."
        ),
    ] = Numbers.FLOAT,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show values in the table too, not only their sizes.")
    ] = False,
) -> CommandResult:
    """Show the source Secret and the binding Secret of credentials, byte for byte.

    The table shows keys and sizes. JSON holds every value, in base64.

    Exit code 1 when the credentials are not valid.
    """
    from operations.services.flatten import flatten_file

    return flatten_file(
        file, default_type=type_default, strict=strict, numbers=numbers, with_values=show_values
    )
