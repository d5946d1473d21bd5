"""`credfleet sandbox`: a real API server and an engine, so that a stack runs with no cloud and no CLI."""

from pathlib import Path
from typing import Annotated

import typer

from operations.cli.answer import Answer
from operations.cli.command import JSON, OUTPUT, command, group
from operations.cli.options import StackOption, YesOption
from operations.sandbox.runs import DestroyRun, ImportRun, PreviewRun, RefreshRun, UpRun

app = group(
    "Run a stack with no cloud, no cluster and no Pulumi CLI.",
    "credfleet sandbox up",
    "credfleet sandbox status",
    "credfleet sandbox down",
)
stack_app = group("Carry the state of a stack out and in.", "credfleet sandbox stack export --file dev.json")
config_app = group(
    "Read and write a stack's configuration.", "credfleet sandbox config get credfleet:cluster"
)
app.add_typer(stack_app, name="stack")
app.add_typer(config_app, name="config")

FileOption = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="The file; standard input or output without it.")
]
PathOption = Annotated[
    bool, typer.Option("--path", help="The key is a path into an object: 'credfleet:cluster.context'.")
]


@command(
    app,
    "credfleet sandbox up",
    "credfleet sandbox up --expect-no-changes",
    "credfleet sandbox up --kubeconfig ~/.kube/config --yes",
    "credfleet sandbox up --target '**::tenant-1**' --target-dependents",
    "credfleet sandbox up --skip-preview --yes",
    form=(),
)
def up(run: UpRun) -> Answer:
    """Bring a stack up: start what it needs, preview, update, report.

    The first run on a machine builds the API server from source, which takes some minutes, once. A run that
    finds everything as declared changes nothing and says so.
    """
    from operations.sandbox import updates

    return updates.up(run)


@command(app, "credfleet sandbox preview", "credfleet sandbox preview --json", form=())
def preview(run: PreviewRun) -> Answer:
    """Show what an update would change; nothing is written."""
    from operations.sandbox import updates

    return updates.preview(run)


@command(app, "credfleet sandbox refresh", "credfleet sandbox refresh --preview-only", form=())
def refresh(run: RefreshRun) -> Answer:
    """Bring the state up to what is really there.

    The cluster is only read.
    """
    from operations.sandbox import updates

    return updates.refresh(run)


@command(app, "credfleet sandbox destroy", "credfleet sandbox destroy --yes", form=())
def destroy(run: DestroyRun) -> Answer:
    """Delete everything a stack has declared, or what is meant of it, after asking."""
    from operations.sandbox import updates

    return updates.destroy(run)


@command(
    app,
    "credfleet sandbox import kubernetes:core/v1:Namespace mine mine --yes",
    "credfleet sandbox import kubernetes:core/v1:Secret key apps/key --protect=false",
    name="import",
    form=(),
)
def import_(run: ImportRun) -> Answer:
    """Record an object that exists as a resource, after asking, and print the code for it.

    As `pulumi import` does: the provider reads it, nothing else changes, and it is protected unless that is
    refused. The code is Python, by the SDKs that are installed here; a secret is read from the configuration.
    """
    from operations.sandbox import updates

    return updates.import_(run)


@command(app, "credfleet sandbox outputs", "credfleet sandbox outputs --output json", form=(OUTPUT, JSON))
def outputs(stack: StackOption = "dev") -> Answer:
    """Show what a stack exports; secrets as [secret]."""
    from operations.sandbox import stack_state

    return stack_state.exported(stack)


@command(app, "credfleet sandbox build")
def build() -> None:
    """Build the API server, unless it is built already."""
    from operations.sandbox import processes

    processes.build_control_plane()


@command(app, "credfleet sandbox down")
def down() -> None:
    """Stop what `up` started. Data and state stay: the next `up` finds everything as it was."""
    from operations.sandbox import processes

    processes.stop()


@command(app, "credfleet sandbox status", "credfleet sandbox status --output json", form=(OUTPUT, JSON))
def status() -> Answer:
    """Name what runs, for whom, and where the state is."""
    from operations.sandbox import processes

    return processes.shown_status()


@command(app, 'eval "$(credfleet sandbox env)" && pulumi preview --stack dev')
def env(stack: StackOption = "dev") -> None:
    """Print shell exports for the genuine Pulumi CLI.

    With them it runs the same stack on the same sandbox, on the same state.
    """
    from operations.sandbox import processes

    processes.print_exports(stack)


@command(app, "credfleet sandbox providers")
def providers() -> None:
    """Keep stand-in providers up for the genuine CLI, until Ctrl-C."""
    from operations.sandbox import processes

    processes.serve_providers()


@command(
    stack_app,
    "credfleet sandbox stack export --file dev.json",
    "pulumi stack import --file dev.json",
    name="export",
)
def stack_export(stack: StackOption = "dev", file: FileOption = None) -> None:
    """Write the deployment of a stack; secrets stay encrypted."""
    from operations.sandbox import stack_state

    stack_state.export(stack, file)


@command(stack_app, "credfleet sandbox stack import --file dev.json", name="import")
def stack_import(stack: StackOption = "dev", file: FileOption = None, yes: YesOption = False) -> None:
    """Replace the deployment of a stack, after asking when it has resources."""
    from operations.sandbox import stack_state

    stack_state.import_(stack, file, yes=yes)


@command(
    config_app,
    "credfleet sandbox config get gcp:project",
    "credfleet sandbox config get --path 'credfleet:cluster.context'",
    name="get",
    form=(OUTPUT, JSON),
)
def config_get(key: str, stack: StackOption = "dev", path: PathOption = False) -> Answer:
    """Print one value of a stack's configuration, a secret in plain, as `pulumi config get` does."""
    from operations.sandbox import stack_state

    return stack_state.config_value(stack, key, path=path)


@command(
    config_app,
    "credfleet sandbox config set gcp:project acme-dev",
    "credfleet sandbox config set --secret --path 'credfleet:credentials.aws-3' < key.json",
    name="set",
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
    from operations.sandbox import stack_state

    stack_state.set_config(stack, key, value, path=path, secret=secret)
