"""The genuine Pulumi CLI on a project of a test, with the local Kubernetes provider attached."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.fleet_project import STACK, FleetProject, Ran

HANGS_AFTER_SECONDS: Final = 300


def cli_folder() -> Path:
    """Return the folder that has the CLI and its hosts; skip the test where there is none."""
    folder = Path(os.environ.get("GENUINE_PULUMI", "/tmp/genuine/bin"))
    if not (folder / "pulumi").exists():
        pytest.skip(f"no Pulumi CLI in {folder}")
    return folder


@dataclass(frozen=True)
class PulumiProcess:
    """Runs `pulumi` in the folder of a project."""

    project: FleetProject
    variables: Mapping[str, str]

    def run(self, *words: str) -> Ran:
        """Run a command to its end, together with all that it starts; one that hangs ends with code -9."""
        environment = {**self.project.environment, **self.variables}
        with subprocess.Popen(
            ["pulumi", *words, "--stack", STACK, "--non-interactive"],
            cwd=self.project.folder,
            env=environment,
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


@contextmanager
def pulumi_process(project: FleetProject) -> Generator[PulumiProcess]:
    """Attach the providers for as long as they are needed, and make the stack."""
    folder = project.folder.resolve()
    variables = {
        "PATH": f"{cli_folder()}{os.pathsep}{os.environ['PATH']}",
        "PULUMI_BACKEND_URL": f"file://{folder / '.backend'}",
        "PULUMI_HOME": str(folder / ".pulumi"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }
    (folder / ".backend").mkdir()
    command = [sys.executable, "-u", "-m", "pulumi_sandbox.providers.kubernetes"]
    with subprocess.Popen(command, env=project.environment, stdout=subprocess.PIPE, text=True) as provider:
        assert provider.stdout is not None
        port = provider.stdout.readline().strip()
        made = PulumiProcess(project, {**variables, "PULUMI_DEBUG_PROVIDERS": f"kubernetes:{port}"})
        try:
            made.run("stack", "init").quiet()
            yield made
        finally:
            provider.kill()
