"""The cluster of an update: the sandbox's own API server or a cluster of the user."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pulumi_sandbox import files
from pulumi_sandbox.contact import contact
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.files import readable

if TYPE_CHECKING:
    from pulumi_sandbox.services.control_plane import ControlPlane


@dataclass(frozen=True, slots=True)
class StackCluster:
    """The cluster of a stack's resources. `own`: it is the sandbox's; `uid` is that of kube-system."""

    kubeconfig: Path
    server: str
    uid: str | None
    own: bool

    @classmethod
    def recall(cls, path: Path) -> StackCluster | None:
        """Return what `remember` wrote; None if the stack has no cluster yet.

        Raises SandboxError `state-unreadable`.
        """
        fix = "remove it; the next `up` uses the cluster again, or starts one"
        with (
            suppress(FileNotFoundError),
            readable(path, "this does not say which cluster is the stack's", fix),
        ):
            kept = json.loads(path.read_bytes())
            return cls(Path(kept["kubeconfig"]), kept["server"], kept["uid"], kept["own"])
        return None

    def remember(self, path: Path) -> None:
        """Store it for later commands."""
        kept = {"kubeconfig": str(self.kubeconfig), "server": self.server, "uid": self.uid, "own": self.own}
        files.replace(path, json.dumps(kept))

    def is_same_cluster(self, other: StackCluster) -> bool:
        """Return whether two clusters are the same: by UID, or by address if a UID is unknown."""
        if self.uid and other.uid:
            return self.uid == other.uid
        return self.server == other.server


def choose(
    remembered: Path,
    stack: str,
    kubeconfig: Path | None,
    *,
    start: Callable[[], ControlPlane],
    confirm: Callable[[str], None],
    context: str | None = None,
    context_from: str = "--context",
) -> tuple[StackCluster, bool]:
    """Return the cluster of a stack, and whether its state must be refreshed before use.

    The user's cluster is used if it is named, or if the stack already is on it; the user must confirm it
    once. Otherwise the sandbox's own API server is started. Its data are disposable: when they are deleted,
    the state still refers to them. Raises SandboxError as `contact` and `start`, and `other-cluster` if the
    stack's resources are elsewhere. remembered: the file that records its cluster. kubeconfig: of the user's
    cluster. start: starts the sandbox's own API server, or finds it running. confirm: raises if the user
    declines a question. context: None for the current one. context_from: what named it, for the error.
    """
    former = StackCluster.recall(remembered)
    named = kubeconfig or (former.kubeconfig if former and not former.own else None)
    reached = contact(named or start().kubeconfig("admin"), context, context_from)
    cluster = StackCluster(reached.kubeconfig, reached.server, reached.uid, own=named is None)
    if cluster.own:
        return cluster, former is not None and not cluster.is_same_cluster(former)
    if former is None:
        confirm(f"Stack {stack} will be written to {reached.server} (context {reached.context}). Go on?")
    elif not cluster.is_same_cluster(former):
        raise SandboxError(
            code="other-cluster",
            place=f"{reached.server} (context {reached.context})",
            problem=f"the resources of stack {stack} are on another cluster, {former.server}",
            fix="destroy them there first, or use another stack",
        )
    return cluster if former is None else replace(cluster, own=former.own), False
