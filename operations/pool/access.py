"""Finds the pool and cluster of a command, from its options or from a stack's configuration."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeAlias

import typer
from pulumi_sandbox.steering import visible

from components.cluster_target import ClusterTarget, in_pod, typed_options
from components.connection import NoReply, connect
from components.errors import CredfleetError, Misused, Problem
from operations.cli.inputs import ask
from operations.cli.options import ClusterOption, YesOption, stack_option
from operations.folders import Folders
from operations.sandbox.control_plane import CONTEXT

DEFAULT_NAMESPACE: Final = "account-pool"
"""Namespace of commands without `--namespace`."""
DEFAULT_STACK: Final = "dev"
"""Stack whose rules and cleaners are used if no stack is given."""
_NOT_FOUND: Final = 404
_MISSING: Final = "it does not exist; if it held a pool, its accounts and claims are gone"

if TYPE_CHECKING:
    from components.account_pool.core.pool_operator import PoolOperator
    from components.account_pool.settings import AccountPool, PoolCluster
    from components.stack_config.models import Cluster


def _namespace_option(help_: str) -> Any:
    return typer.Option("--namespace", "-n", help=help_, show_default=False)


NamespaceOption = Annotated[
    str, _namespace_option("Namespace of the pool. [default: the stack's, otherwise account-pool]")
]
NamedNamespaceOption = Annotated[str, _namespace_option("Namespace of the pool. Required without --stack.")]
ContextOption = Annotated[
    str | None,
    typer.Option(
        "--context", help="Context of the kubeconfig. [default: the stack's, otherwise the current one]"
    ),
]
PoolStackOption = Annotated[str | None, stack_option("Stack of the pool and cluster.")]
ClusterStackOption = Annotated[
    str | None, stack_option("Stack whose configuration is read, and with --live its cluster.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTarget:
    """A pool: its namespace in a cluster, given by kubeconfig file and context.

    uid: the expected UID of kube-system; None skips the check. Without a kubeconfig it is the running sandbox
    of this folder, otherwise the cluster of KUBECONFIG; without a context the current one. stack: of the
    pool. typed: the other options that named it. writes: whether the command writes to it; yes: whether the
    user confirmed that.
    """

    namespace: str = DEFAULT_NAMESPACE
    kubeconfig: Path | None = None
    context: str | None = None
    uid: str | None = None
    stack: str | None = None
    typed: str = ""
    writes: bool = False
    yes: bool = False

    @classmethod
    def of_stack(
        cls,
        stack: str,
        pool: AccountPool,
        cluster: Cluster,
        kubeconfig: Path | None,
        context: str | None = None,
    ) -> PoolTarget:
        """Return the pool of a stack in its configured cluster; given options override that."""
        of_pool = (pool.from_ and pool.from_.cluster) or cluster
        return replace(
            _in_cluster(of_pool, stack, kubeconfig, context), namespace=pool.namespace, stack=stack
        )

    def advise(self, text: str) -> str:
        """Return advice whose commands, which only name the namespace, have all options for this pool."""
        file = None if self.kubeconfig is None else str(self.kubeconfig)
        return ClusterTarget(self.context, file).advise(text, self.typed, self.namespace)

    def for_a_look(self) -> PoolTarget:
        """Return the same pool for read-only access."""
        return replace(self, writes=False)

    def target(self) -> ClusterTarget:
        """Return the cluster. Raises CredfleetError `no-cluster` if there is none."""
        kubeconfig = self.kubeconfig
        sandbox = None if kubeconfig else _of_sandbox()
        if self.context in (None, CONTEXT):
            kubeconfig = kubeconfig or sandbox
        if kubeconfig is None and not os.environ.get("KUBECONFIG") and (self.context or not in_pod()):
            if sandbox:
                raise CredfleetError(
                    code="no-cluster",
                    place="--context",
                    problem=f"the sandbox here has no context {self.context}, and KUBECONFIG is not set",
                    fix=f"leave it out, which means {CONTEXT}, or name the kubeconfig file that has it",
                )
            raise CredfleetError(
                code="no-cluster",
                place="--kubeconfig",
                problem="no cluster is named, KUBECONFIG is not set, and no sandbox runs here",
                fix="name a kubeconfig file, or start the sandbox with `credfleet sandbox up`"
                if self.context in (None, CONTEXT)
                else f"name a kubeconfig file that has context {self.context}, by --kubeconfig or KUBECONFIG",
            )
        file = None if kubeconfig is None else str(kubeconfig)
        return ClusterTarget(context=self.context, kubeconfig=file, uid=self.uid)

    def open(self, manager: str | None = None) -> PoolOperator:
        """Open the pool, and report which one it is; raises as `told` and `Pool.open`.

        manager: the field manager for writes; None for that of claimers.
        """
        from components.account_pool.core.config_map import PoolConfigMap
        from components.account_pool.core.pool import CLAIMS
        from components.account_pool.core.pool_operator import PoolOperator

        target = self.told()
        pool = PoolOperator.open(target, self.namespace, manager=manager or CLAIMS)
        if pool.settings == PoolConfigMap() and not pool.is_declared():
            gone = namespace_problem(target, self.namespace)
            if gone is not None and gone.problem == _MISSING:  # if terminating, claims can still be released
                raise CredfleetError(code="no-pool", place=gone.place, problem=gone.problem, fix=gone.fix)
        return pool

    def open_existing(self, manager: str | None = None) -> PoolOperator:
        """Open an existing pool; raises as `open`, and CredfleetError `no-pool` if there is none."""
        pool = self.open(manager)
        if not (pool.is_declared() or pool.members()):
            raise CredfleetError(
                code="no-pool",
                place=f"namespace {self.namespace}",
                problem="it holds neither accounts nor the settings of a pool, so it is not a pool",
                fix="name that of a pool with --namespace, or declare accountPool in a stack and run `up`",
            )
        return pool

    def told(self) -> ClusterTarget:
        """Return the cluster after reporting which one it is; raises as `target`.

        Before a write to a cluster that only KUBECONFIG names, and that no stack here uses, the user is
        asked. Raises CredfleetError `not-confirmed`.
        """
        target = self.target()
        if self.writes or self.kubeconfig is None:
            file = target.kubeconfig or os.environ.get("KUBECONFIG", "")
            file = file or "the cluster of this pod"
            named = "the sandbox of this folder" if self.kubeconfig is None and target.kubeconfig else file
            at = f"context {target.context} of {named}" if target.context else named
            typer.echo(visible(f"· pool {self.namespace}, {at}"), err=True)
        is_agreed = self.yes or not self.writes
        if is_agreed or target.kubeconfig or target.context or in_pod():
            return target
        server = connect(target).server
        if server not in _known_servers():
            question = (
                f"KUBECONFIG leads to {server}, and neither an option nor a stack here names that cluster."
            )
            ask(f"{question} Write to pool {self.namespace} there?", yes=False)
        return target


def cluster_of(stack: str | None, kubeconfig: Path | None, context: str | None) -> PoolTarget:
    """Return the cluster given by options and, for what they omit, a stack; raises as `settings_of`."""
    if stack is None:
        return PoolTarget(kubeconfig=kubeconfig, context=context)
    from operations.config.settings import settings_of

    return _in_cluster(settings_of(stack).cluster, stack, kubeconfig, context)


def _in_cluster(
    meant: Cluster | PoolCluster, stack: str, kubeconfig: Path | None, context: str | None
) -> PoolTarget:
    stated = Path(meant.kubeconfig) if meant.kubeconfig else _remembered(stack)
    return PoolTarget(kubeconfig=kubeconfig or stated, context=context or meant.context, uid=meant.uid)


def namespace_problem(target: ClusterTarget, namespace: str) -> Problem | None:
    """Return the problem of a namespace that is missing or terminating; None otherwise.

    Also None if the API server does not answer, or forbids the read.
    """
    from components.account_pool.core.rebirth import RUNBOOK

    try:
        found = connect(target).call("GET", f"/api/v1/namespaces/{namespace}")
    except NoReply:
        return None
    is_missing = found.status == _NOT_FOUND
    is_going = not is_missing and "deletionTimestamp" in (found.body.get("metadata") or {})
    if not (is_missing or is_going):
        return None
    return Problem(
        f"namespace {namespace}",
        "it is being deleted, with every account and claim in it" if is_going else _MISSING,
        ("check its name; if that is right, " if is_missing else "")
        + "run `pulumi refresh`, then `pulumi up`, in the project of the stack that declares the pool;"
        f" see {RUNBOOK}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """How a read-only command names a pool: by options and, for what they omit, a stack."""

    WRITES: ClassVar = False

    namespace: NamespaceOption = ""
    kubeconfig: ClusterOption = None
    context: ContextOption = None
    stack: PoolStackOption = None
    yes: bool = False

    def resolve(self) -> PoolTarget:
        """Return the pool; raises as `settings_of` and `pool_of`."""
        found = PoolTarget(kubeconfig=self.kubeconfig, context=self.context)
        if self.stack is not None:
            from operations.config.settings import pool_of, settings_of

            settings = settings_of(self.stack)
            pool = pool_of(settings, self.stack)
            found = PoolTarget.of_stack(self.stack, pool, settings.cluster, self.kubeconfig, self.context)
        return replace(
            found,
            namespace=self.namespace or found.namespace,
            typed=typed_options(stack=self.stack, kubeconfig=self.kubeconfig, context=self.context),
            writes=self.WRITES,
            yes=self.yes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WritablePoolOptions(PoolOptions):
    """How a command that writes names a pool."""

    WRITES: ClassVar = True

    yes: YesOption = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPoolOptions(PoolOptions):
    """How a pool is named for claims and releases by hand."""

    WRITES: ClassVar = True

    namespace: NamedNamespaceOption = ""
    yes: YesOption = False

    def __post_init__(self) -> None:
        """Raise Misused if nothing names it."""
        if not self.namespace and self.stack is None:
            raise Misused(
                place="--namespace",
                problem="an account is taken from a pool or given back to it, and none is named",
                fix=f"add --namespace {DEFAULT_NAMESPACE}, or --stack with the name of a stack",
            )


PoolToRead: TypeAlias = Annotated[PoolTarget, PoolOptions]
PoolToWrite: TypeAlias = Annotated[PoolTarget, WritablePoolOptions]
NamedPool: TypeAlias = Annotated[PoolTarget, NamedPoolOptions]


def _folders() -> Folders | None:
    try:
        return Folders.find(Path.cwd())
    except CredfleetError:
        return None


def _of_sandbox() -> Path | None:
    """Return the kubeconfig of the sandbox that runs in this folder."""
    from pulumi_sandbox.services.control_plane import ControlPlane
    from pulumi_sandbox.services.parts import Part

    folders = _folders()
    plane = ControlPlane.find(folders.control_plane) if folders else None
    if plane is None or plane.pid(Part.API_SERVER) is None:
        return None
    return plane.kubeconfig("admin")


def _remembered(stack: str) -> Path | None:
    """Return the kubeconfig of the user's cluster on which a stack was last updated from here."""
    from pulumi_sandbox.stack_cluster import StackCluster

    folders = _folders()
    former = StackCluster.recall(folders.clusters(stack)) if folders else None
    return former.kubeconfig if former and not former.own else None


def _known_servers() -> set[str]:
    """Return the addresses of the clusters on which stacks were updated from here."""
    from pulumi_sandbox.stack_cluster import StackCluster

    folders = _folders()
    kept = folders.sandbox.glob("*.cluster.json") if folders else ()
    return {former.server.rstrip("/") for path in kept if (former := StackCluster.recall(path))}
