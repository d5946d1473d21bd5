"""The Pulumi CLI on a project of a test, with the sandbox's local providers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pulumi_sandbox import pulumi_cli
from pulumi_sandbox.services.progress import silent

from operations.sandbox.control_plane import OWNER
from tests.support.fleet_project import STACK, FleetProject, Ran

HANGS_AFTER_SECONDS: Final = 300


@dataclass(frozen=True)
class PulumiProcess:
    """Runs `pulumi` in the folder of a project."""

    project: FleetProject
    variables: Mapping[str, str]

    @classmethod
    def of(cls, project: FleetProject) -> PulumiProcess:
        """Make the stack, in a backend and with a home of the project's own."""
        home, backend = (project.folder.resolve() / name for name in (".pulumi", ".backend"))
        backend.mkdir()
        pulumi_cli.furnish(home)
        folders = pulumi_cli.find(OWNER, silent).program.parent, Path(sys.executable).parent
        variables = {
            "PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]]),
            "PULUMI_BACKEND_URL": f"file://{backend}",
            "PULUMI_HOME": str(home),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }
        made = cls(project, variables)
        made.run("stack", "init").quiet()
        return made

    def run(self, *words: str) -> Ran:
        """Run a command to its end, together with all that it starts; one that hangs ends with code -9."""
        with subprocess.Popen(
            ["pulumi", *words, "--stack", STACK, "--non-interactive"],
            cwd=self.project.folder,
            env={**self.project.environment, **self.variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=HANGS_AFTER_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
        return Ran(process.returncode, out, err)
