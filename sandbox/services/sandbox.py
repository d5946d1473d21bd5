"""What runs for a checkout: the cluster its programs meet, and how to start, name and stop it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.services import build, own_cluster
from sandbox.services.control_plane import ControlPlane
from sandbox.services.files import write_private
from sandbox.services.parts import Part
from sandbox.services.ports import LOOPBACK
from sandbox.services.progress import Progress, silent
from sandbox.services.users import ADMIN, DEFAULT_USERS, User


@dataclass(frozen=True, slots=True)
class Service:
    """A process of the sandbox."""

    pid: int | None
    address: str | None
    """Where it listens; None for one that only calls others."""
    log: Path

    @property
    def running(self) -> bool:
        """Tell whether its process is there."""
        return self.pid is not None


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """What runs for a checkout, as `credfleet sandbox status` tells it."""

    state: Path
    kubeconfig: Path | None
    """How programs reach the cluster; None when there is none."""
    server: str | None
    users: Mapping[str, Path]
    """A kubeconfig per user of the sandbox's own control plane."""
    services: Mapping[str, Service]

    def to_json(self) -> dict[str, Any]:
        """Give the published shape: kubeconfig, server, users, services, state."""
        return {
            "kubeconfig": str(self.kubeconfig) if self.kubeconfig else None,
            "server": self.server,
            "users": {name: str(path) for name, path in self.users.items()},
            "services": {
                name: {
                    "pid": service.pid,
                    "address": service.address,
                    "log": str(service.log),
                    "running": service.running,
                }
                for name, service in self.services.items()
            },
            "state": str(self.state),
        }


def up(
    state: Path,
    *,
    kubeconfig: Path | None = None,
    users: Iterable[User] = DEFAULT_USERS,
    progress: Progress = silent,
) -> SandboxStatus:
    """Start the sandbox of a checkout, or reuse the one that runs.

    With `kubeconfig` that cluster is used, after it answered, and none is started; without it a cluster used
    before is forgotten.

    Args:
        state: The folder all state of the sandbox is kept in (`.sandbox` of the checkout), made if missing.
        kubeconfig: The file of a cluster of the user's own; its current context is the one used.
        users: The users of the sandbox's own control plane.
        progress: Told what is waited for.

    Raises:
        SandboxError: all that `own_cluster.reach`, or `build.binaries` and `ControlPlane.start`, raise.
    """
    state = state.resolve()
    if kubeconfig is not None:
        used = {"kubeconfig": str(kubeconfig.resolve()), "server": own_cluster.reach(kubeconfig)}
        write_private(_own_cluster(state), json.dumps(used))
    else:
        ControlPlane.start(
            _control_plane(state), binaries=build.binaries(progress), users=users, progress=progress
        )
        _own_cluster(state).unlink(missing_ok=True)
    return status(state)


def status(state: Path) -> SandboxStatus:
    """Name what runs for a checkout, and how to reach it."""
    state = state.resolve()
    plane = ControlPlane.find(_control_plane(state))
    services = _services(plane) if plane else {}
    users = {name: plane.kubeconfig(name) for name in plane.users} if plane else {}
    own = _own_cluster(state)
    if own.exists():
        used = json.loads(own.read_text())
        kubeconfig, server = Path(used["kubeconfig"]), used["server"]
    elif plane and services[Part.API_SERVER].running:
        kubeconfig, server = users[ADMIN.name], plane.server
    else:
        kubeconfig, server = None, None
    return SandboxStatus(state=state, kubeconfig=kubeconfig, server=server, users=users, services=services)


def down(state: Path) -> list[str]:
    """Stop what `up` started and name it; data and logs stay. A user's own cluster is only forgotten."""
    before = status(state)
    plane = ControlPlane.find(_control_plane(state))
    if plane:
        plane.stop()
    _own_cluster(state).unlink(missing_ok=True)
    return [name for name, service in before.services.items() if service.running]


def _services(plane: ControlPlane) -> dict[str, Service]:
    addresses = {
        Part.ETCD: f"http://{LOOPBACK}:{plane.ports.etcd}",
        Part.API_SERVER: plane.server,
        Part.CONTROLLERS: None,
    }
    return {
        part: Service(pid=plane.pid(part), address=address, log=plane.log(part))
        for part, address in addresses.items()
    }


def _control_plane(state: Path) -> Path:
    return state / "control-plane"


def _own_cluster(state: Path) -> Path:
    return state / "own-cluster.json"
