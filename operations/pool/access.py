"""The pool of a namespace, in the cluster a `pool` command means."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from components.account_pool.pool import CLAIMS, Pool
from components.connection import ClusterTarget
from components.errors import CredfleetError
from operations.folders import Folders

if TYPE_CHECKING:
    from components.settings.nouns import AccountPool, Cluster


@dataclass(frozen=True, slots=True)
class Where:
    """The pool a command means: its namespace, in the cluster of a kubeconfig file and a context of it.

    uid: of kube-system, which the cluster must have; None does not check it.
    Without a file it is the cluster of KUBECONFIG, else the sandbox's own; without a context the current.
    """

    namespace: str
    kubeconfig: Path | None = None
    context: str | None = None
    uid: str | None = None

    @classmethod
    def of_stack(cls, pool: AccountPool, cluster: Cluster, kubeconfig: Path | None) -> Where:
        """Give the pool of a stack in the cluster it means, by another kubeconfig if one is named."""
        stated = Path(cluster.kubeconfig) if cluster.kubeconfig else None
        return cls(pool.namespace, kubeconfig or stated, cluster.context, cluster.uid)

    def target(self) -> ClusterTarget:
        """Tell which cluster it is.

        Raises:
            CredfleetError: code `no-cluster` when there is none.
        """
        kubeconfig = self.kubeconfig
        if kubeconfig is None and "KUBECONFIG" not in os.environ:
            kubeconfig = _of_sandbox()
        file = None if kubeconfig is None else str(kubeconfig)
        return ClusterTarget(context=self.context, kubeconfig=file, uid=self.uid)


def open_pool(where: Where, *, manager: str = CLAIMS) -> Pool:
    """Open a pool; raises as `Where.target` and `Pool.open`.

    manager: under which name the API server books what is written.
    """
    return Pool.open(where.target(), where.namespace, manager=manager)


def _of_sandbox() -> Path:
    from pulumi_sandbox.services.control_plane import ControlPlane
    from pulumi_sandbox.services.parts import Part

    try:
        plane = ControlPlane.find(Folders.find(Path.cwd()).control_plane)
    except CredfleetError:
        plane = None
    if plane is None or plane.pid(Part.API_SERVER) is None:
        raise CredfleetError(
            code="no-cluster",
            place="--kubeconfig",
            cause="no cluster is named, KUBECONFIG is not set, and no sandbox runs here",
            mend="name a kubeconfig file, or start the sandbox with `credfleet sandbox up`",
        )
    return plane.kubeconfig("admin")
