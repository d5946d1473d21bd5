"""What an update stands on: the sandbox's own API server or a cluster of the user's."""

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
    """A cluster that a stack's resources are on. `own` is true for the sandbox's; `uid` is of kube-system."""

    kubeconfig: Path
    server: str
    uid: str | None
    own: bool

    @classmethod
    def recall(cls, path: Path) -> StackCluster | None:
        """Read what `remember` wrote; None when the stack has no cluster yet.

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
        """Keep it for the commands that follow."""
        kept = {"kubeconfig": str(self.kubeconfig), "server": self.server, "uid": self.uid, "own": self.own}
        files.replace(path, json.dumps(kept))

    def is_same_cluster(self, other: StackCluster) -> bool:
        """Compare by uid; by address where one of them could not be asked for its uid."""
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
    """Return the cluster a stack means, and whether its state must be refreshed before it is trusted.

    The user's cluster is taken when it is named, or when the stack is there already; it is asked about
    once. Else the sandbox's own API server is started. Its data are throw-away: when they are gone, the state
    still speaks of them. Raises SandboxError as `contact` and `start` do, and `other-cluster` when the
    stack's resources are elsewhere.

    remembered: the file that names its cluster, once it has one. kubeconfig: of the user's cluster. start:
    starts the sandbox's own API server, or finds it running. confirm: raises when the user does not agree to
    a question. context: None means the current one. context_from: what named it, for the error.
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
