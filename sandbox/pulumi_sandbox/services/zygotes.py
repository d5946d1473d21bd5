"""The zygote of a sandbox, kept beside its API server."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pulumi_sandbox.files import make_folder
from pulumi_sandbox.services import processes
from pulumi_sandbox.zygotes.address import FOLDER, SERVER, socket_of

_IMPORTED: Final = (
    "asyncio",
    "dill",
    "grpc.aio",
    "kubernetes.client",
    "pulumi",
    "pulumi_azure_native.authorization",
    "pulumi_azure_native.managedidentity",
    "pulumi_azure_native.resources",
    "pulumi_gcp.secretmanager",
    "pulumi_kubernetes.admissionregistration.v1",
    "pulumi_kubernetes.core.v1",
    "pulumi_kubernetes.meta.v1",
    "pulumi_kubernetes.rbac.v1",
)
"""What processes of a deployment import, each as it is: what all need, and the kinds that stand-ins serve."""


def fork_from(folder: Path) -> None:
    """Have what this process deploys forked from now on."""
    if sys.platform == "linux" and FOLDER not in os.environ:
        os.environ[FOLDER] = str(folder)
        keep_zygote(folder)


def keep_zygote(
    folder: Path, *, modules: Iterable[str] = _IMPORTED, environment: Mapping[str, str] = os.environ
) -> None:
    """Have one zygote in a folder, for an environment; one of another environment is let go."""
    address = socket_of(folder, Path(sys.executable), environment)
    if not (address.exists() and processes.find(SERVER.name, str(address))):
        let_zygotes_go(folder)
        start_zygote(folder, modules=modules, environment=environment)


def start_zygote(
    folder: Path,
    *,
    modules: Iterable[str] = _IMPORTED,
    environment: Mapping[str, str] = os.environ,
    die_with_parent: bool = False,
) -> tuple[int, Path]:
    """Start a zygote for this interpreter and an environment; return its id, and where it will listen."""
    address = socket_of(folder, Path(sys.executable), environment)
    pid = processes.spawn(
        [sys.executable, "-u", "-P", str(SERVER), str(address), *modules],
        make_folder(folder) / "log",
        environment=environment,
        die_with_parent=die_with_parent,
    )
    return pid, address


def let_zygotes_go(folder: Path) -> None:
    """Take away the sockets of all zygotes in a folder: each sees it and ends, what it forked goes on."""
    for address in folder.glob("*.sock"):
        address.unlink(missing_ok=True)
