"""The sandbox's processes: builds, finds, lists and stops them; and how the genuine Pulumi CLI uses them."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import typer
from pulumi_sandbox import pulumi_cli
from pulumi_sandbox.files import make_folder
from pulumi_sandbox.progress_line import ProgressLine
from pulumi_sandbox.pulumi_cli import PulumiCli
from pulumi_sandbox.services.clouds import Clouds
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import Part
from pulumi_sandbox.stack_cluster import StackCluster

from components.errors import CredfleetError
from components.open_ports import VARIABLES
from operations.cli.answer import CommandResult
from operations.cli.inputs import shown
from operations.cli.tables import Column, Table
from operations.folders import Folders, stack_of
from operations.sandbox import cloud_services, control_plane
from operations.sandbox.control_plane import OWNER
from operations.sandbox.public_passphrase import is_strange
from operations.stack.at_rest import StackAtRest, find_backend, require_folder

_PASSPHRASE: Final = "PULUMI_CONFIG_PASSPHRASE"  # noqa: S105 - the name of a variable
_TAKEN_BACK: Final = frozenset({"PULUMI_CONFIG_PASSPHRASE_FILE", *VARIABLES.values()})
"""Variables that belong to one stack only."""
_WHOLE_FILES: Final = "?metadata=skip"
"""Prevents the backend from writing attribute files: a killed CLI leaves them empty and unreadable."""


def build() -> None:
    """Build the programs of the API server and the Pulumi CLI, if they are missing."""
    with ProgressLine() as progress:
        control_plane.build(progress)
        folder = control_plane.programs(progress)
        cli = pulumi_cli.find(OWNER, progress)
    typer.echo(f"✓ API server: {folder}\n✓ Pulumi {cli.version}: {cli.program}")


def stop() -> None:
    """Stop the API server of the project's sandbox and the cloud emulators, if they run."""
    folders = Folders.find(Path.cwd())
    if not stop_all(folders, cloud_services.stand_ins(folders)):
        typer.echo("Nothing runs.")
        return
    typer.echo(shown("✓ stopped. Data and state are kept; `credfleet sandbox up` goes on from there."))


def stop_all(folders: Folders, clouds: Clouds) -> bool:
    """Stop the API server and the cloud emulators; return whether any ran."""
    plane_ran = ControlPlane.end(folders.control_plane)
    return clouds.stop() or plane_ran


def status(folders: Folders) -> dict[str, Any]:
    """Return the sandbox's kubeconfig, server (null if stopped), users, services and state."""
    services = {
        each.service.name: _process(each.pid, each.address, each.log)
        for each in cloud_services.stand_ins(folders).started()
    }
    state = require_folder(find_backend(folders.backend)).as_uri()
    plane = ControlPlane.find(folders.control_plane)
    if plane is None:
        return {"kubeconfig": None, "server": None, "users": {}, "services": services, "state": state}
    pids = {part: plane.pid(part) for part in Part}
    parts = {str(part): _process(pid, plane.address(part), plane.log(part)) for part, pid in pids.items()}
    runs = all(pids.values())
    return {
        "kubeconfig": str(plane.kubeconfig("admin")) if runs else None,
        "server": plane.server if runs else None,
        "users": {user: str(plane.kubeconfig(user)) for user in plane.users},
        "services": parts | services,
        "state": state,
    }


def _process(pid: int | None, address: str | None, log: Path) -> dict[str, Any]:
    return {"running": pid is not None, "pid": pid, "address": address, "log": str(log)}


def shown_status() -> CommandResult:
    """Return the status as the result of a command."""
    told = status(Folders.find(Path.cwd()))
    parts: list[str | Table] = [shown("The API server does not run; `credfleet sandbox up` starts it.")]
    if told["server"] is not None:
        parts = [f"API server  {told['server']}\nkubeconfig  {told['kubeconfig']}"]
    parts.append(f"state       {told['state']}")
    if told["services"]:
        rows = [
            (name, f"pid {each['pid']}" if each["running"] else "stopped", each["address"] or "", each["log"])
            for name, each in told["services"].items()
        ]
        parts.append(
            Table(
                "Services",
                (Column("Service", names=True), "Process", "Address", Column("Log", leaves=1)),
                rows,
            )
        )
    if told["users"]:
        parts.append(Table("Users", ("User", Column("Kubeconfig", leaves=1)), list(told["users"].items())))
    return CommandResult(told, parts)


def exports(folders: Folders, stack: str, environment: Mapping[str, str], cli: PulumiCli) -> dict[str, str]:
    """Return the variables with which a shell runs `pulumi` on a stack of this sandbox."""
    cluster = StackCluster.recall(folders.clusters(stack))
    plane = ControlPlane.find(folders.control_plane)
    kubeconfig = cluster.kubeconfig if cluster else plane.kubeconfig("admin") if plane else None
    at_rest = _at_rest(folders, stack, environment)
    backend = require_folder(find_backend(folders.backend, environment))
    first = [str(program.parent) for program in (cli.program, Path(sys.executable))]
    others = [each for each in environment.get("PATH", "").split(os.pathsep) if each not in first]
    variables = {
        "PATH": os.pathsep.join([*first, *others]),
        "PULUMI_BACKEND_URL": backend.as_uri() + _WHOLE_FILES,
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_HOME": str(folders.pulumi_home),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        **cloud_services.stand_ins(folders).trust(),
    }
    if kubeconfig is not None:
        variables["KUBECONFIG"] = str(kubeconfig)
    if at_rest is not None:
        variables |= cloud_services.addresses(folders, at_rest.read()[0].values)
    if given := _passphrase_file(folders, stack, at_rest, environment):
        variables["PULUMI_CONFIG_PASSPHRASE_FILE"] = given
    return variables


def furnish(folders: Folders) -> dict[str, str]:
    """Create what the CLI does not: the folder of its states, and a home with each package's provider.

    Returns package → location of its provider.
    """
    make_folder(folders.backend)
    return pulumi_cli.furnish(folders.pulumi_home)


def _at_rest(folders: Folders, stack: str, environment: Mapping[str, str]) -> StackAtRest | None:
    try:
        return stack_of(folders, stack, environment)
    except CredfleetError as error:
        if error.code == "stack-unknown":
            return None
        raise


def _passphrase_file(
    folders: Folders, stack: str, at_rest: StackAtRest | None, environment: Mapping[str, str]
) -> str | None:
    """Return the file with a stack's passphrase; another stack's public one does not count."""
    if _PASSPHRASE in environment:
        return None
    given, public = environment.get("PULUMI_CONFIG_PASSPHRASE_FILE"), folders.public_passphrase(stack)
    if public and (not given or folders.is_public_given(environment)):
        return str(public)
    return given if given and not is_strange(folders, stack, at_rest, environment) else None


def print_exports(stack: str) -> None:
    """Print the variables as shell exports, for `eval`; the public passphrase only for the sandbox.

    Raises CredfleetError as `stack_of`, except for the default stack.
    """
    folders = Folders.find(Path.cwd())
    at_rest = _at_rest(folders, stack, os.environ) if stack == "dev" else stack_of(folders, stack)
    with ProgressLine() as progress:
        cli = pulumi_cli.find(OWNER, progress)
    furnish(folders)
    variables = exports(folders, stack, os.environ, cli)
    for name, value in sorted(variables.items()):
        typer.echo(f"export {name}={shlex.quote(value)}")
    taken = _TAKEN_BACK & os.environ.keys() - variables.keys()
    if _PASSPHRASE in os.environ and is_strange(folders, stack, at_rest):
        taken |= {_PASSPHRASE}
    for name in sorted(taken):
        typer.echo(f"unset {name}")


def shown_providers() -> CommandResult:
    """Return the provider that serves each package here."""
    served = furnish(Folders.find(Path.cwd()))
    columns = (Column("Package", names=True), Column("Provider", leaves=1))
    return CommandResult({"providers": served}, [Table("Providers", columns, [*served.items()])])
