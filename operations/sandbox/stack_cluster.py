"""What an update stands on: the sandbox's own API server or a cluster of the user's."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from pulumi_sandbox import files
from pulumi_sandbox.services.progress import Progress

from components.errors import CredfleetError
from operations.cli.ask import ask
from operations.folders import Folders
from operations.sandbox import control_plane
from operations.sandbox.contact import contact


@dataclass(frozen=True, slots=True)
class StackCluster:
    """A cluster that a stack's resources are on. `own` is true for the sandbox's; `uid` is of kube-system."""

    kubeconfig: Path
    server: str
    uid: str | None
    own: bool

    @classmethod
    def recall(cls, path: Path) -> StackCluster | None:
        """Read what `remember` wrote; None when the stack has no cluster yet."""
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return cls(Path(kept["kubeconfig"]), kept["server"], kept["uid"], kept["own"])

    def remember(self, path: Path) -> None:
        """Keep it for the commands that follow."""
        kept = {"kubeconfig": str(self.kubeconfig), "server": self.server, "uid": self.uid, "own": self.own}
        files.replace(path, json.dumps(kept))

    def is_same_cluster(self, other: StackCluster) -> bool:
        """Compare by uid; by address where one of them could not be asked for its uid."""
        if self.uid and other.uid:
            return self.uid == other.uid
        return self.server == other.server


def choose(
    folders: Folders,
    stack: str,
    context: str | None,
    kubeconfig: Path | None,
    *,
    yes: bool,
    progress: Progress,
) -> tuple[StackCluster, bool]:
    """Find the cluster a stack means; tell also whether its state must be refreshed before it is trusted.

    The user's cluster is taken when it is named, or when the stack is there already; it is asked about
    once. Else the sandbox's own API server is started, and built first where needed. Its data are throw-away:
    when they are gone, the state still speaks of them.

    Raises:
        CredfleetError: as `contact`; `other-cluster` when the stack's resources are elsewhere;
            `not-confirmed`.
        SandboxError: as `binaries` and `ControlPlane.start`.
    """
    former = StackCluster.recall(folders.clusters(stack))
    named = kubeconfig or (former.kubeconfig if former and not former.own else None)
    if named is None:
        cluster = _own(folders, context, progress)
        return cluster, former is not None and not cluster.is_same_cluster(former)
    reached = contact(named, context)
    cluster = StackCluster(reached.kubeconfig, reached.server, reached.uid, own=False)
    if former is None:
        ask(f"Stack {stack} will be written to {reached.server} (context {reached.context}). Go on?", yes=yes)
    elif not cluster.is_same_cluster(former):
        raise CredfleetError(
            code="other-cluster",
            place=f"{reached.server} (context {reached.context})",
            cause=f"the resources of stack {stack} are on another cluster, {former.server}",
            mend="destroy them there first, with `credfleet sandbox destroy`, or use another stack",
        )
    return cluster if former is None else replace(cluster, own=former.own), False


def _own(folders: Folders, context: str | None, progress: Progress) -> StackCluster:
    plane = control_plane.start(folders, progress)
    reached = contact(plane.kubeconfig("admin"), context)
    return StackCluster(reached.kubeconfig, plane.server, reached.uid, own=True)
