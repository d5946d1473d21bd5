"""`credfleet stores`: whose credential is read through a store, what a namespace reaches, both forms."""

from typing import Annotated, Final

import typer

from components.naming import is_namespace
from operations.cli.answer import CommandResult
from operations.cli.command import command, group
from operations.cli.options import ClusterOption
from operations.pool.access import ClusterStackOption, ContextOption, cluster_of

app = group(
    "See whose credentials secret stores read, and what a namespace reaches.",
    "credfleet stores explain stores.yaml",
    "credfleet stores reach --namespace tenant-acme --stack dev",
    "credfleet stores convert stores.yaml",
)

_FILES: Final = typer.Argument(metavar="FILE…", help="YAML files; - is standard input.", show_default=False)


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
    files: Annotated[list[str] | None, _FILES] = None,
    caller: Annotated[
        list[str] | None,
        typer.Option(
            "--caller",
            "-c",
            "--namespace",
            "-n",
            metavar="NS",
            callback=_namespaces,
            help="Namespace that uses the stores; repeat it.",
        ),
    ] = None,
    stack: ClusterStackOption = None,
    live: Annotated[
        bool, typer.Option("--live", help="The cluster's own stores count, and what ESO says of each.")
    ] = False,
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
) -> CommandResult:
    """Tell for each store and caller whether it may be used, and in which namespaces credentials are read.

    Without --caller each store is validated: a SecretStore from its own namespace, a ClusterSecretStore
    from none. With --live the stores that the callers may name are read from the cluster, and beside them
    what every object of External Secrets Operator there says of itself. Exit code 2 when a file makes no
    sense, 10 when an answer is unknown, because what decides it is not in the files; a store that is Denied
    or Invalid is an answer, not a failure.
    """
    from operations.stores.documents import read
    from operations.stores.explain import explain_all, explained_live, of_stack

    _refuse_two_sources(files, stack, live=live)
    if live and not caller:
        raise typer.BadParameter("Give --live with a --caller.")
    if not live:
        return explain_all(read(files or ()) if stack is None else of_stack(stack), caller or ())
    from components.connection import connect
    from components.secret_stores.stack_cluster import StackCluster

    target = cluster_of(stack, kubeconfig, context).target()
    return explained_live(connect(target), StackCluster(target), caller or ())


def _refuse_two_sources(files: list[str] | None, stack: str | None, *, live: bool) -> None:
    """Raise BadParameter unless files are given, or else a stack, a cluster, or the cluster of a stack."""
    if bool(files) == (live or stack is not None):
        raise typer.BadParameter("Give files, or --stack, or --live, which is the cluster of --stack.")


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
    files: Annotated[list[str] | None, _FILES] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", callback=_namespace, help="Namespace that uses stores.")
    ],
    stack: ClusterStackOption = None,
    live: Annotated[
        bool, typer.Option("--live", help="The cluster's own stores count; no files then.")
    ] = False,
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
) -> CommandResult:
    """Tell all that a namespace can read and write through stores: where, as whom, and what lets it in.

    Nothing is read from a store, and no Secret: whether what it logs in with is there is not said, nor what
    the other side allows it. Exit code 2 when a file or a stack makes no sense, 10 when it is unknown whether
    a store may be used, because what decides it is not there.
    """
    from operations.stores.documents import live as live_documents
    from operations.stores.documents import read
    from operations.stores.explain import list_access, of_stack

    _refuse_two_sources(files, stack, live=live)
    if live:
        from components.connection import connect

        target = cluster_of(stack, kubeconfig, context).target()
        return list_access(namespace, live_documents(connect(target), namespace))
    return list_access(namespace, read(files or ()) if stack is None else of_stack(stack))


@command(
    app,
    "credfleet stores convert stores.yaml",
    "credfleet stores convert stores.yaml providers.yaml --embed --output yaml | kubectl apply -f -",
)
def convert(
    files: Annotated[list[str], _FILES],
    *,
    embed: Annotated[
        bool, typer.Option("--embed", help="Write the providers into the stores, as ESO has them.")
    ] = False,
) -> CommandResult:
    """Write providers apart from their stores, which refer to them then; with --embed the other way round.

    Prints the documents, changes no file. Stores of v1beta1 become those of v1. All else in them stays as it
    is, so there and back is no change. Exit code 2 when a document makes no sense, or cannot be in the other
    form.
    """
    from operations.stores.explain import convert

    return convert(files, embed=embed)
