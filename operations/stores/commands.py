"""`credfleet stores`: explains access through stores, lists a namespace's access, and converts stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from components.connection import ClusterTarget
from components.naming import is_namespace
from operations.cli.answer import CommandResult
from operations.cli.command import command, group
from operations.cli.options import ClusterOption
from operations.pool.access import ClusterStackOption, ContextOption, cluster_of

if TYPE_CHECKING:
    from operations.stores.documents import Documents

app = group(
    "See whose credentials secret stores read, and what a namespace reaches.",
    "credfleet stores explain stores.yaml",
    "credfleet stores reach --namespace tenant-acme --stack dev",
    "credfleet stores convert stores.yaml",
)

_FILES: Final = typer.Argument(metavar="FILE", help="YAML files. - is standard input.", show_default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where stores are read: from files, from a stack's declarations, or from a cluster."""

    files: Annotated[list[str] | None, _FILES] = None
    stack: ClusterStackOption = None
    live: Annotated[bool, typer.Option("--live", help="Use the cluster's own stores instead of files.")] = (
        False
    )
    kubeconfig: ClusterOption = None
    context: ContextOption = None

    def __post_init__(self) -> None:
        """Raise BadParameter unless exactly one is given."""
        if bool(self.files) == (self.live or self.stack is not None):
            raise typer.BadParameter("Give files, or --stack, or --live, which is the cluster of --stack.")

    def cluster(self) -> ClusterTarget | None:
        """Return the cluster for --live, or None."""
        return cluster_of(self.stack, self.kubeconfig, self.context).target() if self.live else None

    def documents(self, *callers: str) -> Documents:
        """Read the stores that namespaces can refer to; raises as the functions that read them."""
        from components.connection import connect
        from operations.stores.documents import live, read
        from operations.stores.explain import of_stack

        if (cluster := self.cluster()) is not None:
            return live(connect(cluster), *callers)
        return read(self.files or ()) if self.stack is None else of_stack(self.stack)


def _namespaces(given: list[str] | None) -> list[str]:
    for name in given or ():
        if name and not is_namespace(name):
            raise typer.BadParameter(f"Kubernetes takes no namespace {name}; write one such as tenant-acme.")
    return given or []


@command(
    app,
    "credfleet stores explain stores.yaml providers.yaml --caller tenant-acme --caller tenant-globex",
    "kubectl get clustersecretstores -o yaml | credfleet stores explain - --caller tenant-acme -o json",
    "credfleet stores explain --live --caller tenant-acme --stack prod",
)
def explain(
    *,
    caller: Annotated[
        list[str] | None,
        typer.Option(
            "--caller",
            "-c",
            "--namespace",
            "-n",
            metavar="NS",
            callback=_namespaces,
            help="Namespace that uses the stores. Can be repeated.",
        ),
    ] = None,
    source: Source,
) -> CommandResult:
    """Explain whether each caller can use each store, and where credentials are read.

    Without --caller, each store is validated: a SecretStore from its own namespace, a ClusterSecretStore
    from none. With --live, the callers' stores are read from the cluster, with the status of each object of
    External Secrets Operator. Exit codes: 0 also for Denied and Invalid, 2 invalid file, 10 an answer is
    unknown, because the files do not contain what decides it.
    """
    from operations.stores.explain import explain_all

    if source.live and not caller:
        raise typer.BadParameter("Give --live with a --caller.")
    return explain_all(source.documents(*caller or ()), caller or (), source.cluster())


def _namespace(given: str) -> str:
    return _namespaces([given])[0]


@command(
    app,
    "credfleet stores reach stores.yaml --namespace tenant-acme",
    "credfleet stores reach --namespace tenant-acme --stack dev --output json",
    "credfleet stores reach --namespace tenant-acme --live --stack prod",
)
def reach(
    *,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", callback=_namespace, help="Namespace that uses stores.")
    ],
    source: Source,
) -> CommandResult:
    """List what a namespace can read and write through stores, where, as whom, and why.

    No store and no Secret is read: it does not show whether a login exists, or what the provider allows it.
    Exit codes: 2 invalid file or stack, 10 it is unknown whether a store can be used, because what decides it
    is missing.
    """
    from operations.stores.explain import list_access

    return list_access(namespace, source.documents(namespace))


@command(
    app,
    "credfleet stores convert stores.yaml",
    "credfleet stores convert stores.yaml providers.yaml --embed --output yaml | kubectl apply -f -",
)
def convert(
    files: Annotated[list[str], _FILES],
    *,
    embed: Annotated[
        bool, typer.Option("--embed", help="Embed the providers in their stores, as for ESO.")
    ] = False,
) -> CommandResult:
    """Move embedded providers out of their stores. With --embed, move them back.

    Prints the documents, and changes no file. Stores of v1beta1 become those of v1. Everything else is
    unchanged. Exit code 2: a document is invalid, or the other form cannot express it.
    """
    from operations.stores.explain import convert

    return convert(files, embed=embed)
