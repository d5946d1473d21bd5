"""The `credfleet` command: its tree of commands, each of which imports what it needs when it runs."""

from __future__ import annotations

import typer

from operations.aso import commands as aso_commands
from operations.cli.answer import examples
from operations.cli.failures import ReportingGroup
from operations.config import commands as config_commands
from operations.pool import insight_commands, operator_commands
from operations.preview_report.command import preview_report
from operations.pull_secret import commands as pull_secret_commands
from operations.sandbox import commands as sandbox_commands
from operations.services import commands as service_commands
from operations.stores import commands as store_commands

app = typer.Typer(
    name="credfleet",
    cls=ReportingGroup,
    help="Credentials of a fleet of tenants: accounts from pools, what is made of them, and a sandbox.",
    epilog=examples(
        "credfleet sandbox up              # a real API server, pools declared, accounts claimed",
        "credfleet pool status             # who has which account",
        "credfleet config check            # all problems of a stack's configuration",
        "credfleet --install-completion    # completion for your shell",
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(sandbox_commands.app, name="sandbox")
app.add_typer(operator_commands.app, name="pool")
app.add_typer(config_commands.app, name="config")
app.add_typer(aso_commands.app, name="aso")
app.add_typer(
    pull_secret_commands.app, name="pull-secret", short_help="Judge pull secrets, and ask about clusters."
)
app.add_typer(service_commands.app, name="services")
app.add_typer(store_commands.app, name="stores")
app.command(
    short_help="Find what is wrong with a pool, and what mends it.",
    epilog=examples("credfleet doctor", "credfleet doctor --stack prod --output json"),
)(insight_commands.doctor)
app.command(
    "preview-report",
    short_help="Review a preview, for a pull request.",
    epilog=examples(
        "credfleet sandbox preview --json > preview.json; credfleet preview-report preview.json",
        "pulumi preview --json | credfleet preview-report - --format json",
    ),
)(preview_report)


def main() -> None:
    """Run the command line and end the process with its exit code."""
    app(prog_name="credfleet")
