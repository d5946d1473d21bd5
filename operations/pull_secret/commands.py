"""`credfleet pull-secret`: judge a pull secret, and ask how the clusters are that get one."""

from typing import Annotated

import typer

from operations.cli.answer import CommandResult
from operations.cli.command import command, group
from operations.cli.options import StackOption

app = group(
    "Judge pull secrets, the credentials a cluster pulls images with, and ask about clusters.",
    "credfleet pull-secret check pull-secret.json",
    "credfleet pull-secret check pull-secret.json --cluster-id cls-0123456789ab --strict",
    "credfleet pull-secret observe --stack prod",
)


@command(
    app,
    "credfleet pull-secret check pull-secret.json",
    "credfleet pull-secret check pull-secret.json --cluster-id cls-0123456789ab --strict",
    "pass show quay-pull | credfleet pull-secret check - --output json",
)
def check(
    file: Annotated[str, typer.Argument(help="File of the pull secret. - is standard input.")],
    *,
    cluster_id: Annotated[
        str | None,
        typer.Option("--cluster-id", help="Also check this cluster id, and show the name of the entry."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Treat warnings as errors."),
    ] = False,
) -> CommandResult:
    """Find all problems of a pull secret.

    Only the names of its registries are shown.

    Exit code 1: it is invalid.
    """
    from operations.pull_secret.check import check

    return check(file, cluster_id, strict=strict)


@command(
    app,
    "credfleet pull-secret observe",
    "credfleet pull-secret observe --stack prod --api-url https://hyperfleet.example",
)
def observe(
    *,
    stack: StackOption = "dev",
    api_url: Annotated[
        str | None, typer.Option("--api-url", metavar="URL", help="Instead of pullSecrets.hyperfleet.apiUrl.")
    ] = None,
) -> CommandResult:
    """Write the state of a stack's clusters in HyperFleet to the file of pullSecrets.adaptersFrom.

    The next update reads it there. HYPERFLEET_API_TOKEN is the token. If HyperFleet does not answer, the file
    is unchanged.
    """
    from operations.pull_secret.observe import observe

    return observe(stack, api_url)
