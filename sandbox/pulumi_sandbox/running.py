"""What runs of a project's sandbox: named for people and programs, and stopped."""

from typing import Any

from pulumi_sandbox.engine import find_backend
from pulumi_sandbox.folders import Folders
from pulumi_sandbox.services import Clouds, ControlPlane, Part


def status(folders: Folders, clouds: Clouds) -> dict[str, Any]:
    """Return what runs: kubeconfig and server (null when stopped), users, services, the state's address."""
    services = {
        service.service.name: {
            "running": service.pid is not None,
            "pid": service.pid,
            "address": service.address,
            "log": str(service.log),
        }
        for service in clouds.started()
    }
    state = find_backend(folders.backend).as_uri()
    plane = ControlPlane.find(folders.control_plane)
    if plane is None:
        return {"kubeconfig": None, "server": None, "users": {}, "services": services, "state": state}
    pids = {part: plane.pid(part) for part in Part}
    parts = {
        str(part): {
            "running": pid is not None,
            "pid": pid,
            "address": plane.address(part),
            "log": str(plane.log(part)),
        }
        for part, pid in pids.items()
    }
    runs = all(pids.values())
    return {
        "kubeconfig": str(plane.kubeconfig("admin")) if runs else None,
        "server": plane.server if runs else None,
        "users": {user: str(plane.kubeconfig(user)) for user in plane.users},
        "services": parts | services,
        "state": state,
    }


def stop(folders: Folders, clouds: Clouds) -> bool:
    """Stop the API server and the stand-ins of cloud services; return whether any ran."""
    plane_ran = ControlPlane.end(folders.control_plane)
    return clouds.stop() or plane_ran
