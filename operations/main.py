"""The `credfleet` command: its tree of commands, each of which imports what it needs when it runs."""

from typing import Annotated

import typer

from operations.aso import commands as aso
from operations.cli.command import command, epilog, parameter
from operations.cli.failures import ReportingGroup
from operations.cli.options import form_option
from operations.config import commands as config
from operations.pool import commands as pool
from operations.preview_report.command import ReportForm, preview_report
from operations.project import commands as project
from operations.pull_secret import commands as pull_secret
from operations.review import commands as review
from operations.sandbox import commands as sandbox
from operations.services import commands as services
from operations.stores import commands as stores

app = typer.Typer(
    name="credfleet",
    cls=ReportingGroup,
    help="Credentials of a fleet of tenants: accounts from pools, what is made of them, and a sandbox.",
    epilog=epilog(
        "credfleet sandbox up              # a real API server, pools and claims",
        "credfleet pool status             # who has which account",
        "credfleet config check            # all problems of a stack's file",
        "credfleet --install-completion    # completion for your shell",
        "credfleet --version               # of every command",
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(sandbox.app, name="sandbox")
app.add_typer(pool.app, name="pool")
app.add_typer(config.app, name="config")
app.add_typer(project.add_app, name="add", short_help="Add to a stack's file.")
app.add_typer(aso.app, name="aso")
app.add_typer(pull_secret.app, name="pull-secret", short_help="Judge pull secrets, and ask about clusters.")
app.add_typer(review.app, name="review", short_help="Preview a stack without its keys.")
app.add_typer(services.app, name="services")
app.add_typer(stores.app, name="stores")
command(
    app,
    "credfleet init fleet; cd fleet; make up",
    "credfleet init fleet --rooms accountPool,services --cloud azure",
    "credfleet init fleet --cluster fleet-prod --secrets-provider 'gcpkms://…'",
    "credfleet init --here    # in a Pulumi project that exists",
    short_help="Write a Pulumi project of your own.",
)(project.init)
command(
    app,
    "credfleet doctor",
    "credfleet doctor --stack prod --output json",
    short_help="Find what is wrong with a pool, and what mends it.",
)(pool.doctor)
command(
    app,
    "credfleet sandbox preview --json > preview.json; credfleet preview-report preview.json",
    "pulumi preview --json | credfleet preview-report - --format json",
    name="preview-report",
    short_help="Review a preview, for a pull request.",
    form=(
        parameter(
            "form",
            Annotated[ReportForm, form_option("--format", help_="Form of the review.")],
            ReportForm.MARKDOWN,
        ),
    ),
)(preview_report)


def main() -> None:
    """Run the command line and end the process with its exit code."""
    app(prog_name="credfleet")
