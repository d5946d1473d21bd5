"""The pool of a namespace, in the cluster a command means: by its options, or by what a stack says."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from pulumi_sandbox.steering import visible

from components.errors import CredfleetError, Misused, Problem
from operations.cli.inputs import ask
from operations.cli.options import ClusterOption, YesOption, stack_option
from operations.folders import Folders
from operations.sandbox.control_plane import CONTEXT

DEFAULT_NAMESPACE: Final = "account-pool"
"""The namespace that commands mean without being told."""
DEFAULT_STACK: Final = "dev"
"""The stack whose rules and cleaners they mean then."""
_NOT_FOUND: Final = 404
_MISSING: Final = "it does not exist; if it held a pool, its accounts and claims are gone"

if TYPE_CHECKING:
    from components.account_pool.core.pool import Pool
    from components.account_pool.settings import AccountPool
    from components.connection import ClusterTarget
    from components.stack_config.models import Cluster


def _namespace_option(help_: str) -> Any:
    return typer.Option("--namespace", "-n", help=help_, show_default=False)


def part_option(whole: str) -> Any:
    """Return an option that names a part of a pool or a type."""
    help_ = f"Part of the {whole}. Can be repeated, once for each key."
    return typer.Option("--partition", metavar="KEY=VALUE", help=help_)


NamespaceOption = Annotated[
    str, _namespace_option("Namespace of the pool. [default: the stack's, otherwise account-pool]")
]
NamedNamespaceOption = Annotated[str, _namespace_option("Namespace of the pool. Required without --stack.")]
ContextOption = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        help="Context of the kubeconfig. [default: the stack's, otherwise the current one]",
    ),
]
TenantOption = Annotated[str, typer.Option("--tenant", help="Name of the tenant.")]
PoolStackOption = Annotated[str | None, stack_option("Stack of the pool and cluster.")]
ClusterStackOption = Annotated[
    str | None, stack_option("Stack whose configuration is read, and with --live its cluster.")
]
PartOption = Annotated[list[str] | None, part_option("pool")]


class By(StrEnum):
    """By what accounts are told together: whose they are, which stack holds them, or what they are."""

    TENANT = "tenant"
    STACK = "stack"
    TYPE = "type"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTarget:
    """A pool: its namespace, in the cluster of a kubeconfig file and a context of it.

    uid: of kube-system, which the cluster must have; None does not check it. Without a file it is the sandbox
    of this folder while that runs, else the cluster of KUBECONFIG; without a context the current.
    typed: the other options by which a stack was named.
    """

    namespace: NamespaceOption = DEFAULT_NAMESPACE
    kubeconfig: ClusterOption = None
    context: ContextOption = None
    uid: str | None = None
    typed: str = ""

    @classmethod
    def of_stack(cls, pool: AccountPool, cluster: Cluster, kubeconfig: Path | None) -> PoolTarget:
        """Return the pool of a stack in the cluster it means, by another kubeconfig if one is named."""
        of_pool = (pool.from_ and pool.from_.cluster) or cluster
        stated = Path(of_pool.kubeconfig) if of_pool.kubeconfig else None
        return cls(
            namespace=pool.namespace,
            kubeconfig=kubeconfig or stated,
            context=of_pool.context,
            uid=of_pool.uid,
        )

    def advise(self, text: str) -> str:
        """Return advice whose commands name this pool's namespace alone, with all that it was named by."""
        cluster = self.typed or typed_options(kubeconfig=self.kubeconfig, context=self.context)
        named = rf"(-n|--namespace) {re.escape(self.namespace)}(?![\w.-])"
        return re.sub(named, lambda found: f"{found[0]}{cluster}", text)

    def target(self) -> ClusterTarget:
        """Return the cluster. Raises CredfleetError, code `no-cluster`, when there is none."""
        from components.connection import ClusterTarget, in_pod

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

    def open(self, manager: str | None = None) -> Pool:
        """Open the pool, and say which it is; raises as `target`, `agree` and `Pool.open`.

        manager: under which name the API server books what is written; None means a claimer's.
        """
        from components.account_pool.core.config_map import PoolConfigMap
        from components.account_pool.core.pool import CLAIMS, Pool

        target = self.told()
        pool = Pool.open(target, self.namespace, manager=manager or CLAIMS)
        if pool.settings == PoolConfigMap() and not pool.is_declared():
            gone = namespace_problem(target, self.namespace)
            if gone is not None and gone.problem == _MISSING:  # of one that is going, claims may be released
                raise CredfleetError(code="no-pool", place=gone.place, problem=gone.problem, fix=gone.fix)
        return pool

    def open_existing(self, manager: str | None = None) -> Pool:
        """Open a pool that is there; raises as `open`, and CredfleetError of code `no-pool` for none."""
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
        """Return the cluster, having said which it is; raises as `target` and `agree`."""
        target = self.target()
        if self.is_told:
            file = target.kubeconfig or os.environ.get("KUBECONFIG", "")
            file = file or "the cluster of this pod"
            named = "the sandbox of this folder" if self.kubeconfig is None and target.kubeconfig else file
            at = f"context {target.context} of {named}" if target.context else named
            typer.echo(visible(f"· pool {self.namespace}, {at}"), err=True)
        self.agree(target)
        return target

    @property
    def is_told(self) -> bool:
        """Whether opening it says which cluster it is in: where no option did."""
        return self.kubeconfig is None

    def agree(self, target: ClusterTarget) -> None:
        """Go on: a look does no harm."""


def cluster_of(stack: str | None, kubeconfig: Path | None, context: str | None) -> PoolTarget:
    """Return the cluster that options mean, and for what they leave open a stack; raises as `settings_of`."""
    if stack is None:
        return PoolTarget(kubeconfig=kubeconfig, context=context)
    from operations.config.settings import settings_of

    meant = settings_of(stack).cluster
    stated = Path(meant.kubeconfig) if meant.kubeconfig else _remembered(stack)
    return PoolTarget(kubeconfig=kubeconfig or stated, context=context or meant.context, uid=meant.uid)


def namespace_problem(target: ClusterTarget, namespace: str) -> Problem | None:
    """Return what to do about a namespace that does not exist, or is being deleted; None if it is in order.

    An API server that does not answer, or does not let this user look, tells neither.
    """
    from components.account_pool.core.rebirth import RUNBOOK
    from components.connection import NoReply, connect

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
        "run `pulumi refresh`, then `pulumi up`, in the project of the stack that declares the pool;"
        f" see {RUNBOOK}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions(PoolTarget):
    """The pool a command means: by its options, and for what they leave open by a stack."""

    namespace: NamespaceOption = ""
    stack: PoolStackOption = None

    def __post_init__(self) -> None:
        """Fill in what a stack says; raises as `settings_of` and `pool_of`."""
        _fill(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class WritablePoolOptions(PoolOptions):
    """A pool that a command writes to."""

    yes: YesOption = False

    @property
    def is_told(self) -> bool:
        """Whether opening it says which cluster it is in: a write always does."""
        return True

    def agree(self, target: ClusterTarget) -> None:
        """Ask before a write to a cluster that only KUBECONFIG names, and no stack of this folder is on.

        Raises CredfleetError, code `not-confirmed`.
        """
        from components.connection import connect, in_pod

        if self.yes or target.kubeconfig or target.context or in_pod():
            return
        server = connect(target).server
        if server not in _known_servers():
            question = (
                f"KUBECONFIG leads to {server}, and neither an option nor a stack here names that cluster."
            )
            ask(f"{question} Write to pool {self.namespace} there?", yes=False)

    def for_a_look(self) -> PoolTarget:
        """Return the same pool where nothing is written."""
        return PoolTarget(**{each.name: getattr(self, each.name) for each in fields(PoolTarget)})


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPoolOptions(WritablePoolOptions):
    """A pool that has to be named, by its namespace or a stack, since something is taken from it by hand."""

    namespace: NamedNamespaceOption = ""

    def __post_init__(self) -> None:
        """Fill in what a stack says. Raises Misused where nothing names it, and as `PoolOptions`."""
        if not self.namespace and self.stack is None:
            raise Misused(
                place="--namespace",
                problem="an account is taken from a pool or given back to it, and none is named",
                fix=f"add --namespace {DEFAULT_NAMESPACE}, or --stack with the name of a stack",
            )
        _fill(self)


def typed_options(**values: object) -> str:
    """Return options as they are typed, each after a space."""
    given = {name: value for name, value in values.items() if value is not None}
    return "".join(f" --{name} {shlex.quote(str(value))}" for name, value in given.items())


def _fill(where: PoolOptions) -> None:
    """Fill in what a stack says of a pool, or else the usual namespace."""
    typed = typed_options(stack=where.stack, kubeconfig=where.kubeconfig, context=where.context)
    given: dict[str, object] = {"typed": typed, "namespace": where.namespace or DEFAULT_NAMESPACE}
    if where.stack is not None:
        from operations.config.settings import pool_of, settings_of

        settings = settings_of(where.stack)
        found = PoolTarget.of_stack(pool_of(settings, where.stack), settings.cluster, where.kubeconfig)
        given |= {
            "namespace": where.namespace or found.namespace,
            "kubeconfig": found.kubeconfig or _remembered(where.stack),
            "context": where.context or found.context,
            "uid": found.uid,
        }
    for name, value in given.items():
        object.__setattr__(where, name, value)


def _folders() -> Folders | None:
    try:
        return Folders.find(Path.cwd())
    except CredfleetError:
        return None


def _of_sandbox() -> Path | None:
    """Return the kubeconfig of the sandbox that runs in this folder."""
    from pulumi_sandbox.services import ControlPlane, Part

    folders = _folders()
    plane = ControlPlane.find(folders.control_plane) if folders else None
    if plane is None or plane.pid(Part.API_SERVER) is None:
        return None
    return plane.kubeconfig("admin")


def _remembered(stack: str) -> Path | None:
    """Return the kubeconfig of the cluster of the user's that a stack was brought up on from here."""
    from pulumi_sandbox.stack_cluster import StackCluster

    folders = _folders()
    former = StackCluster.recall(folders.clusters(stack)) if folders else None
    return former.kubeconfig if former and not former.own else None


def _known_servers() -> set[str]:
    """Return the addresses of the clusters that stacks were brought up on from here."""
    from pulumi_sandbox.stack_cluster import StackCluster

    folders = _folders()
    kept = folders.sandbox.glob("*.cluster.json") if folders else ()
    return {former.server.rstrip("/") for path in kept if (former := StackCluster.recall(path))}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOptions:
    """The account that is asked for: by its type, or by a plan that the rules of the stack serve.

    holder: None when it was left out.
    """

    tenant: TenantOption
    type: Annotated[
        str | None, typer.Option("--type", "-t", help="Type of the account: aws, gcp_cf-sa30.")
    ] = None
    plan: Annotated[
        str | None,
        typer.Option("--plan", help="Plan instead of a type. The rules of the stack select the pool."),
    ] = None
    region: Annotated[str | None, typer.Option("--region", help="Platform region of the plan.")] = None
    hyperscaler_region: Annotated[
        str | None, typer.Option("--hyperscaler-region", help="Hyperscaler region of the plan.")
    ] = None
    hyperscaler: Annotated[
        str | None, typer.Option("--hyperscaler", help="Cloud, for a plan that runs on any cloud.")
    ] = None
    shared: Annotated[
        bool, typer.Option("--shared", help="Claim a place on a shared account. --slot names it.")
    ] = False
    slot: Annotated[
        str | None,
        typer.Option(
            "--slot",
            help="Slot of the claim. [default: the stack's, otherwise main]",
        ),
    ] = None
    spill: Annotated[
        bool, typer.Option("--spill", help="Claim one more account if those of the slot are full.")
    ] = False
    partition: PartOption = None
    holder: Annotated[str | None, typer.Option("--holder", help="Holder of the account. [default: cli]")] = (
        None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalClaimOptions(ClaimOptions):
    """The account that is asked for, where something else may be asked for instead; then nothing is set."""

    tenant: TenantOption = ""
