"""`credfleet stores`: whose credential is read through which store."""

from typing import Annotated

import typer

from components.naming import is_namespace
from operations.cli.answer import Answer
from operations.cli.command import command, group

app = group(
    "See whose credentials secret stores read.",
    "credfleet stores explain stores.yaml",
    "credfleet stores explain stores.yaml --caller tenant-acme --output json",
)


def _namespaces(given: list[str] | None) -> list[str]:
    for name in given or ():
        if name and not is_namespace(name):
            raise typer.BadParameter(f"Kubernetes takes no namespace {name}; write one such as tenant-acme.")
    return given or []


@command(
    app,
    "credfleet stores explain stores.yaml providers.yaml --caller tenant-acme --caller tenant-globex",
    "kubectl get clustersecretstores -o yaml | credfleet stores explain - --caller tenant-acme -o json",
)
def explain(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE…", help="YAML files; - is standard input.", show_default=False),
    ],
    caller: Annotated[
        list[str] | None,
        typer.Option(
            "--caller",
            "-c",
            metavar="NS",
            callback=_namespaces,
            help="Namespace that uses the stores; repeat it.",
        ),
    ] = None,
) -> Answer:
    """Tell for each store and caller whether it may be used, and in which namespaces credentials are read.

    Without --caller each store is validated: a SecretStore from its own namespace, a ClusterSecretStore
    from none. Nothing but the files is read. Exit code 2 when a file makes no sense; a store that is
    Denied or Invalid is an answer, not a failure.
    """
    from operations.stores.explain import explained

    return explained(files, caller or ())
