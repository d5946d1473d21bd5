"""The pool of a namespace, in the cluster a `pool` command means."""

from __future__ import annotations

import os
from pathlib import Path

from components.account_pool.pool import CLAIMS, Pool
from components.connection import ClusterTarget
from components.errors import CredfleetError
from operations.site import Site


def open_pool(namespace: str, kubeconfig: Path | None, *, manager: str = CLAIMS) -> Pool:
    """Open the pool in the named cluster, else in that of KUBECONFIG, else in the sandbox's own.

    manager: under which name the API server books what is written.

    Raises:
        CredfleetError: code `no-cluster` when there is none of them; and what `Pool.open` raises.
    """
    return Pool.open(target(kubeconfig), namespace, manager=manager)


def target(kubeconfig: Path | None) -> ClusterTarget:
    """Tell which cluster `open_pool` opens the pool in; raises `no-cluster` as it does."""
    if kubeconfig is None and "KUBECONFIG" not in os.environ:
        kubeconfig = _of_sandbox()
    return ClusterTarget(kubeconfig=None if kubeconfig is None else str(kubeconfig))


def _of_sandbox() -> Path:
    from sandbox.services.control_plane import ControlPlane
    from sandbox.services.parts import Part

    try:
        plane = ControlPlane.find(Site.find(Path.cwd()).control_plane)
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
