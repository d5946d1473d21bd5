"""The pool of a namespace, in the cluster a command means: by its options, or by what a stack says."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.errors import CredfleetError
from operations.cli.options import ClusterOption
from operations.folders import Folders

if TYPE_CHECKING:
    from components.account_pool.pool import Pool
    from components.account_pool.settings import AccountPool
    from components.connection import ClusterTarget
    from components.settings.nouns import Cluster

NamespaceOption = Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the pool.")]
ContextOption = Annotated[
    str | None,
    typer.Option("--context", metavar="NAME", help="Context of the kubeconfig; else its current one."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The pool a command means: its namespace, in the cluster of a kubeconfig file and a context of it.

    uid: of kube-system, which the cluster must have; None does not check it.
    Without a file it is the cluster of KUBECONFIG, else the sandbox's own, and an error where these are two;
    without a context the current.
    """

    namespace: NamespaceOption = "account-pool"
    kubeconfig: ClusterOption = None
    context: ContextOption = None
    uid: str | None = None

    @classmethod
    def of_stack(cls, pool: AccountPool, cluster: Cluster, kubeconfig: Path | None) -> Where:
        """Return the pool of a stack in the cluster it means, by another kubeconfig if one is named."""
        stated = Path(cluster.kubeconfig) if cluster.kubeconfig else None
        return cls(
            namespace=pool.namespace,
            kubeconfig=kubeconfig or stated,
            context=cluster.context,
            uid=cluster.uid,
        )

    def target(self) -> ClusterTarget:
        """Return the cluster. Raises CredfleetError, code `no-cluster`, when there is none."""
        from components.connection import ClusterTarget

        kubeconfig = self.kubeconfig
        if kubeconfig is None:
            kubeconfig = _of_environment()
        file = None if kubeconfig is None else str(kubeconfig)
        return ClusterTarget(context=self.context, kubeconfig=file, uid=self.uid)

    def open(self, manager: str | None = None) -> Pool:
        """Open the pool; raises as `target` and `Pool.open`.

        manager: under which name the API server books what is written; None means a claimer's.
        """
        from components.account_pool.pool import CLAIMS, Pool

        target = self.target()
        if self.kubeconfig is None:
            named = target.kubeconfig or os.environ.get("KUBECONFIG", "")
            typer.echo(f"· pool {self.namespace}, {self.context or 'current context'} of {named}", err=True)
        return Pool.open(target, self.namespace, manager=manager or CLAIMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Where):
    """A pool whose namespace has to be given, since something is taken from it by hand."""

    namespace: NamespaceOption = field()


def _of_environment() -> Path | None:
    """Return the kubeconfig of the sandbox that runs here; None where only KUBECONFIG names a cluster.

    Raises CredfleetError: `ambiguous-cluster` where both do and differ, since a write could go to either;
    `no-cluster`.
    """
    inherited = os.environ.get("KUBECONFIG")
    own = _of_sandbox()
    if inherited is None and own is None:
        raise CredfleetError(
            code="no-cluster",
            place="--kubeconfig",
            cause="no cluster is named, KUBECONFIG is not set, and no sandbox runs here",
            mend="name a kubeconfig file, or start the sandbox with `credfleet sandbox up`",
        )
    if (
        inherited
        and own
        and [Path(part).resolve() for part in inherited.split(os.pathsep)] != [own.resolve()]
    ):
        raise CredfleetError(
            code="ambiguous-cluster",
            place="KUBECONFIG",
            cause=f"it names {inherited}, and the sandbox of this folder runs as well: either could be meant",
            mend=f"say which: --kubeconfig {own}, or --kubeconfig {inherited}",
        )
    return own


def _of_sandbox() -> Path | None:
    from pulumi_sandbox.errors import SandboxError
    from pulumi_sandbox.services import ControlPlane, Part

    try:
        folders = Folders.find(Path.cwd())
    except SandboxError:
        plane = None
    else:
        plane = ControlPlane.find(folders.control_plane)
    if plane is None or plane.pid(Part.API_SERVER) is None:
        return None
    return plane.kubeconfig("admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The account that is asked for: by its type, or by a plan that rules of a stack serve.

    holder: None when it was left out.
    """

    tenant: Annotated[str, typer.Option("--tenant", help="The tenant.")]
    type: Annotated[
        str | None, typer.Option("--type", "-t", help="Type of the account: aws, gcp_cf-sa30.")
    ] = None
    plan: Annotated[
        str | None, typer.Option("--plan", help="Plan, instead of a type: rules of a stack choose.")
    ] = None
    region: Annotated[str | None, typer.Option("--region", help="Platform region of the plan.")] = None
    hyperscaler_region: Annotated[
        str | None, typer.Option("--hyperscaler-region", help="Hyperscaler region of the plan.")
    ] = None
    hyperscaler: Annotated[
        str | None, typer.Option("--hyperscaler", help="Cloud, for a plan that runs on any.")
    ] = None
    shared: Annotated[
        bool, typer.Option("--shared", help="A place on an account that tenants share; --slot names it.")
    ] = False
    slot: Annotated[
        str | None,
        typer.Option(
            "--slot",
            help="Which of the tenant's accounts of this type; needed where its slots are named, else 0.",
        ),
    ] = None
    spill: Annotated[
        bool, typer.Option("--spill", help="One more account when those of the slot are full.")
    ] = False
    partition: Annotated[
        list[str] | None,
        typer.Option("--partition", metavar="KEY=VALUE", help="Part of the pool; repeat it for each key."),
    ] = None
    holder: Annotated[
        str | None, typer.Option("--holder", help="Who uses the account; `cli` when it is left out.")
    ] = None
    stack: Annotated[str, typer.Option("--stack", "-s", help="The stack whose rules serve the plan.")] = "dev"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedIfAny(Asked):
    """The account that is asked for, where something else may be asked for instead; then nothing is set."""

    tenant: Annotated[str, typer.Option("--tenant", help="The tenant.")] = ""
