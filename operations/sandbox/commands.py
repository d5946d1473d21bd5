"""`credfleet sandbox`: a real API server and emulators of clouds, on which the Pulumi CLI runs a stack."""

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
    """Bring a stack up: start what it needs, preview, update, report.

    The first run on a machine builds the API server and, where none is installed, the Pulumi CLI, once. A run
    that finds everything as declared changes nothing and says so.
    """
    from operations.sandbox import updates

    return updates.up(run)


@command(app, "credfleet sandbox build")
def build() -> None:
    """Build the API server and the Pulumi CLI, unless they are there."""
    from operations.sandbox import processes

    processes.build()


@command(app, "credfleet sandbox down")
def down() -> None:
    """Stop what `up` started. Data and state stay: the next `up` finds everything as it was."""
    from operations.sandbox import processes

    processes.stop()


@command(app, "credfleet sandbox status", "credfleet sandbox status --output json", form=(OUTPUT, JSON))
def status() -> CommandResult:
    """Name what runs, for whom, and where the state is."""
    from operations.sandbox import processes

    return processes.shown_status()


@command(app, 'eval "$(credfleet sandbox env)" && pulumi preview --stack dev')
def env(stack: StackOption = "dev") -> None:
    """Print shell exports with which `pulumi` runs a stack of this sandbox.

    PATH then has the Pulumi CLI and credfleet; the backend, the cluster, the passphrase and the addresses of
    the sandbox's services are set.
    """
    from operations.sandbox import processes

    processes.print_exports(stack)


@command(app, "credfleet sandbox providers", form=(OUTPUT, JSON))
def providers() -> CommandResult:
    """List which provider serves each package: an installed one or the sandbox's."""
    from operations.sandbox import processes

    return processes.shown_providers()
