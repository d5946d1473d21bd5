"""`credfleet config`: the schema of a stack's configuration, and everything wrong with one."""

from typing import Annotated

import typer

from operations.cli.answer import CommandResult
from operations.cli.command import command, group
from operations.cli.options import StackOption

app = group(
    "Check the configuration of a stack.",
    "credfleet config check",
    "credfleet config schema > credfleet.schema.json",
)


@command(
    app,
    "credfleet config schema > credfleet.schema.json",
    "credfleet config schema --tenant > tenant.schema.json",
    form=(),
)
def schema(
    *,
    of_a_tenant: Annotated[
        bool, typer.Option("--tenant", help="Of a tenant's file (tenantsFrom), instead of the stack's.")
    ] = False,
) -> CommandResult:
    """Print the JSON Schema of a stack file, for editors."""
    from operations.config.settings import schema

    return schema(of_a_tenant=of_a_tenant)


@command(app, "credfleet config check", "credfleet config check --stack prod --output json")
def check(stack: StackOption = "dev") -> CommandResult:
    """Find everything wrong with a stack's configuration at once.

    Nothing is deployed, no cluster is asked. Exit code 2 when anything is wrong.
    """
    from operations.config.settings import check

    return check(stack)
