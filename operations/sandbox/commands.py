"""`credfleet sandbox`: a real API server and an engine, so that a stack runs with no cloud and no CLI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from operations.cli.answer import Form, JsonOption, OutputOption, examples, note_json
from operations.cli.options import (
    ExpectNoChangesOption,
    KubeconfigOption,
    ParallelOption,
    PolicyPackOption,
    StackOption,
    YesOption,
)

app = typer.Typer(
    help="Run a stack with no cloud, no cluster and no Pulumi CLI.",
    epilog=examples("credfleet sandbox up", "credfleet sandbox status", "credfleet sandbox down"),
    no_args_is_help=True,
)
stack_app = typer.Typer(
    help="Carry the state of a stack out and in.",
    epilog=examples("credfleet sandbox stack export --file dev.json"),
    no_args_is_help=True,
)
config_app = typer.Typer(
    help="Read and write a stack's configuration.",
    epilog=examples("credfleet sandbox config get credfleet:cluster"),
    no_args_is_help=True,
)
app.add_typer(stack_app, name="stack")
app.add_typer(config_app, name="config")

EventsOption = Annotated[
    bool,
    typer.Option(
        "--json",
        callback=note_json,
        is_eager=True,
        help="Events as JSON, one a line, as `pulumi up --json`.",
    ),
]
FileOption = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="The file; standard input or output without it.")
]
PathOption = Annotated[
    bool, typer.Option("--path", help="The key is a path into an object: 'credfleet:cluster.context'.")
]


@app.command(
    epilog=examples(
        "credfleet sandbox up",
        "credfleet sandbox up --expect-no-changes",
        "credfleet sandbox up --kubeconfig ~/.kube/config --yes",
    )
)
def up(
    *,
    stack: StackOption = "dev",
    kubeconfig: KubeconfigOption = None,
    yes: YesOption = False,
    parallel: ParallelOption = 16,
    expect_no_changes: ExpectNoChangesOption = False,
    policy_pack: PolicyPackOption = None,
    output: OutputOption = Form.TABLE,
    events: EventsOption = False,
) -> None:
    """Bring a stack up: start what it needs, preview, update, report.

    The first run on a machine builds the API server from source, which takes some minutes, once. A run that
    finds everything as declared changes nothing and says so.
    """
    from operations.sandbox import updates

    wanted = updates.Wanted(stack, kubeconfig, yes, parallel, output, events, expect_no_changes, policy_pack)
    raise typer.Exit(updates.up(wanted))


@app.command(epilog=examples("credfleet sandbox preview", "credfleet sandbox preview --json"))
def preview(
    *,
    stack: StackOption = "dev",
    kubeconfig: KubeconfigOption = None,
    yes: YesOption = False,
    parallel: ParallelOption = 16,
    expect_no_changes: ExpectNoChangesOption = False,
    policy_pack: PolicyPackOption = None,
    output: OutputOption = Form.TABLE,
    events: JsonOption = False,
) -> None:
    """Show what an update would change; nothing is written."""
    from operations.sandbox import updates

    wanted = updates.Wanted(stack, kubeconfig, yes, parallel, output, events, expect_no_changes, policy_pack)
    raise typer.Exit(updates.preview(wanted))


@app.command(epilog=examples("credfleet sandbox refresh", "credfleet sandbox refresh --expect-no-changes"))
def refresh(
    *,
    stack: StackOption = "dev",
    kubeconfig: KubeconfigOption = None,
    yes: YesOption = False,
    parallel: ParallelOption = 16,
    expect_no_changes: ExpectNoChangesOption = False,
    output: OutputOption = Form.TABLE,
    events: EventsOption = False,
) -> None:
    """Bring the state up to what is really there.

    The cluster is only read.
    """
    from operations.sandbox import updates

    wanted = updates.Wanted(stack, kubeconfig, yes, parallel, output, events, expect_no_changes)
    raise typer.Exit(updates.refresh(wanted))


@app.command(epilog=examples("credfleet sandbox destroy", "credfleet sandbox destroy --yes"))
def destroy(
    *,
    stack: StackOption = "dev",
    kubeconfig: KubeconfigOption = None,
    yes: YesOption = False,
    parallel: ParallelOption = 16,
    output: OutputOption = Form.TABLE,
    events: EventsOption = False,
) -> None:
    """Delete everything a stack has declared, after asking."""
    from operations.sandbox import updates

    wanted = updates.Wanted(stack, kubeconfig, yes, parallel, output, events)
    raise typer.Exit(updates.destroy(wanted))


@app.command(epilog=examples("credfleet sandbox outputs", "credfleet sandbox outputs --output json"))
def outputs(
    *,
    stack: StackOption = "dev",
    output: OutputOption = Form.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Show what a stack exports; secrets as [secret]."""
    from operations.sandbox.stack_state import show_outputs

    show_outputs(stack, as_json=as_json or output is Form.JSON)


@app.command(epilog=examples("credfleet sandbox build"))
def build() -> None:
    """Build the API server, unless it is built already."""
    from operations.sandbox.processes import build_control_plane

    build_control_plane()


@app.command(epilog=examples("credfleet sandbox down"))
def down() -> None:
    """Stop what `up` started. Data and state stay: the next `up` finds everything as it was."""
    from operations.sandbox.processes import stop

    stop()


@app.command(epilog=examples("credfleet sandbox status", "credfleet sandbox status --output json"))
def status(output: OutputOption = Form.TABLE, as_json: JsonOption = False) -> None:
    """Name what runs, for whom, and where the state is."""
    from operations.sandbox.processes import show_status

    show_status(as_json=as_json or output is Form.JSON)


@app.command(epilog=examples('eval "$(credfleet sandbox env)" && pulumi preview --stack dev'))
def env(stack: StackOption = "dev") -> None:
    """Print shell exports for the genuine Pulumi CLI.

    With them it runs the same stack on the same sandbox, on the same state.
    """
    from operations.sandbox.processes import print_exports

    print_exports(stack)


@app.command(epilog=examples("credfleet sandbox providers"))
def providers() -> None:
    """Keep stand-in providers up for the genuine CLI, until Ctrl-C."""
    from operations.sandbox.processes import serve_providers

    serve_providers()


@stack_app.command(
    "export",
    epilog=examples("credfleet sandbox stack export --file dev.json", "pulumi stack import --file dev.json"),
)
def stack_export(stack: StackOption = "dev", file: FileOption = None) -> None:
    """Write the deployment of a stack; secrets stay encrypted."""
    from operations.sandbox.stack_state import export

    export(stack, file)


@stack_app.command("import", epilog=examples("credfleet sandbox stack import --file dev.json"))
def stack_import(stack: StackOption = "dev", file: FileOption = None, yes: YesOption = False) -> None:
    """Replace the deployment of a stack, after asking when it has resources."""
    from operations.sandbox.stack_state import import_

    import_(stack, file, yes=yes)


@config_app.command(
    "get",
    epilog=examples(
        "credfleet sandbox config get gcp:project",
        "credfleet sandbox config get --path 'credfleet:cluster.context'",
    ),
)
def config_get(
    key: str,
    stack: StackOption = "dev",
    path: PathOption = False,
    output: OutputOption = Form.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Print one value of a stack's configuration, a secret in plain, as `pulumi config get` does."""
    from operations.sandbox.stack_state import get_config

    get_config(stack, key, path=path, as_json=as_json or output is Form.JSON)


@config_app.command(
    "set",
    epilog=examples(
        "credfleet sandbox config set gcp:project acme-dev",
        "credfleet sandbox config set --secret --path 'credfleet:credentials.aws-3' < key.json",
    ),
)
def config_set(
    key: str,
    value: Annotated[
        str | None, typer.Argument(help="The value; read from standard input when it is left out.")
    ] = None,
    stack: StackOption = "dev",
    path: PathOption = False,
    secret: Annotated[bool, typer.Option("--secret", help="Encrypt it.")] = False,
) -> None:
    """Set one value of a stack's configuration; comments of the file stay. Give secrets on standard input."""
    from operations.sandbox.stack_state import set_config

    set_config(stack, key, value, path=path, secret=secret)
