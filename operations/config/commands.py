"""`credfleet config`: the schema of a stack's configuration, and all problems of one."""

from typing import Annotated

import typer

from operations.cli.answer import CommandResult, as_json
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
        bool, typer.Option("--tenant", help="Schema of a tenant file (tenantsFrom) instead.")
    ] = False,
) -> CommandResult:
    """Print the JSON Schema of a stack file, for editors."""
    from components.stack_config.schema import stack_file_schema, tenant_file_schema

    document = tenant_file_schema() if of_a_tenant else stack_file_schema()
    return CommandResult(document, [as_json(document)])


@command(app, "credfleet config check", "credfleet config check --stack prod --output json")
def check(stack: StackOption = "dev") -> CommandResult:
    """Find all problems of a stack's configuration.

    It contacts no cluster. Exit codes: 0 also for warnings, 2 there are problems.
    """
    from operations.config.settings import check

    return check(stack)
