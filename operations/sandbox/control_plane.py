"""The API server of a project's sandbox: its context name, and the location of its programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from operations.folders import Folders

if TYPE_CHECKING:
    from pulumi_sandbox.services.control_plane import ControlPlane
    from pulumi_sandbox.services.progress import Progress

CONTEXT = "credfleet-sandbox"
OWNER = "credfleet"
"""Owner of the cache of built programs."""

USERS = ("provisioner", "janitor")
"""Users that claim and clean accounts, with the permissions that RBAC grants them."""


def build(progress: Progress, *, cluster: bool = True) -> None:
    """Build what this machine lacks: the CLI and, unless another cluster is used, the API server."""
    from pulumi_sandbox import pulumi_cli
    from pulumi_sandbox.services.build import CONTROL_PLANE, PULUMI_CLI, build_together, cache_folder

    cache = cache_folder(OWNER)
    wanted = {CONTROL_PLANE: cache} if cluster else {}
    if not pulumi_cli.is_installed():
        wanted[PULUMI_CLI] = cache.with_name(PULUMI_CLI.folder.name)
    build_together(wanted, progress)


def programs(progress: Progress) -> Path:
    """Return the folder with the API server's programs, which are built first if missing."""
    from pulumi_sandbox.services.build import binaries, cache_folder

    return binaries(progress, cache_folder(OWNER))


def start(folders: Folders, progress: Progress) -> ControlPlane:
    """Return the running API server of the project, after building and starting it if necessary."""
    from pulumi_sandbox.services.build import cache_folder, kept_in
    from pulumi_sandbox.services.control_plane import ControlPlane
    from pulumi_sandbox.services.parts import User

    return ControlPlane.start(
        folders.control_plane,
        binaries=kept_in(cache_folder(OWNER)),
        make=lambda: programs(progress),
        users=[User(name) for name in USERS],
        context=CONTEXT,
        progress=progress,
    )
