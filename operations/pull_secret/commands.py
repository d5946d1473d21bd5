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
    file: Annotated[str, typer.Argument(help="The pull secret; - reads standard input.")],
    *,
    cluster_id: Annotated[
        str | None,
        typer.Option("--cluster-id", help="Also judge this id, and tell what the secret is called in GCP."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Take warnings about its entries for errors."),
    ] = False,
) -> CommandResult:
    """Find everything wrong with a pull secret at once.

    Its bytes are judged as they are given. Registries are told by name; nothing else of it is ever shown.

    Exit code 1 when it is not valid.
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
    """Ask HyperFleet how a stack's clusters are, and keep it in the file of pullSecrets.adaptersFrom.

    The next update reads it there. The token is taken from HYPERFLEET_API_TOKEN. When HyperFleet does not
    answer, the file stays as it was.
    """
    from operations.pull_secret.observe import observe

    return observe(stack, api_url)
