"""`credfleet sandbox`: a real API server and emulated clouds, on which the Pulumi CLI runs a stack."""

from operations.cli.answer import CommandResult
from operations.cli.command import JSON, OUTPUT, command, group
from operations.cli.options import StackOption
from operations.sandbox.runs import UpRun

app = group(
    "Run a stack with no cloud and no cluster.",
    "credfleet sandbox up",
    "credfleet sandbox status",
    "credfleet sandbox down",
)


@command(
    app,
    "credfleet sandbox up",
    "credfleet sandbox up --expect-no-changes",
    "credfleet sandbox up --kubeconfig ~/.kube/config --yes",
    form=(),
)
def up(run: UpRun) -> CommandResult:
    """Deploy a stack to the sandbox: start, preview, update, report.

    The first run on a machine builds the API server and, if none is installed, the Pulumi CLI.
    """
    from operations.sandbox import updates

    return updates.up(run)


@command(app, "credfleet sandbox build")
def build() -> None:
    """Build the API server and the Pulumi CLI, if they are missing."""
    from operations.sandbox import processes

    processes.build()


@command(app, "credfleet sandbox down")
def down() -> None:
    """Stop what `up` started. Data and state stay."""
    from operations.sandbox import processes

    processes.stop()


@command(app, "credfleet sandbox status", "credfleet sandbox status --output json", form=(OUTPUT, JSON))
def status() -> CommandResult:
    """List processes, addresses, users, logs, and where the state is."""
    from operations.sandbox import processes

    return processes.shown_status()


@command(app, 'eval "$(credfleet sandbox env)" && pulumi preview --stack dev')
def env(stack: StackOption = "dev") -> None:
    """Print shell exports for `pulumi` on this sandbox.

    They set PATH, the backend, the cluster, the passphrase, and the addresses of the sandbox's services.
    """
    from operations.sandbox import processes

    processes.print_exports(stack)


@command(app, "credfleet sandbox providers", form=(OUTPUT, JSON))
def providers() -> CommandResult:
    """List which provider serves each package: an installed one or the sandbox's."""
    from operations.sandbox import processes

    return processes.shown_providers()
