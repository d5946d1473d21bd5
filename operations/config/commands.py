"""`credfleet config`: the schema of a stack's configuration, and everything wrong with one."""

from __future__ import annotations

import typer

from operations.cli.answer import Form, OutputOption, examples
from operations.cli.options import StackOption

app = typer.Typer(
    help="Check the configuration of a stack.",
    epilog=examples("credfleet config check", "credfleet config schema > credfleet.schema.json"),
    no_args_is_help=True,
)


@app.command(epilog=examples("credfleet config schema > credfleet.schema.json"))
def schema() -> None:
    """Print the JSON Schema of a stack's configuration, for editors."""
    from operations.config.settings import print_schema

    print_schema()


@app.command(epilog=examples("credfleet config check", "credfleet config check --stack prod --output json"))
def check(stack: StackOption = "dev", output: OutputOption = Form.TABLE) -> None:
    """Find everything wrong with a stack's configuration at once.

    Nothing is deployed, no cluster is asked. Exit code 2 when anything is wrong.
    """
    from operations.config.settings import check

    check(stack, as_json=output is Form.JSON)
