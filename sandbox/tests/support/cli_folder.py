"""The Pulumi CLI with the language host of this checkout, in a project of its own, and what it leaves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import psutil
from pulumi_sandbox import language_host, pulumi_cli
from pulumi_sandbox.services.progress import silent

HANG: Final = 60.0
"""Seconds after which a process that should have ended counts as left behind."""
MARK: Final = "MARK_OF_A_TEST"
"""A variable by which the processes of a test are found."""
HOST: Final = "pulumi-language-python"
_SCRIPTS: Final = ("pulumi-language-python-exec", "pulumi-resource-pulumi-python")


def furnish(folder: Path) -> Path:
    """Make the folder. Its language host is the one under test, whichever the CLI has beside it."""
    found = pulumi_cli.find("credfleet", silent).program.resolve()
    folder.mkdir()
    for name in _SCRIPTS:
        shutil.copy(found.parent / name, folder)
    (folder / found.name).symlink_to(found)
    host = folder / HOST
    host.write_text(f"#!{sys.executable}\n{Path(language_host.__file__).read_text()}")
    host.chmod(0o755)
    return folder


def environment(folder: Path, home: Path) -> dict[str, str]:
    """Return the variables with which the CLI of a folder keeps everything below `home`."""
    (home / "state").mkdir(parents=True, exist_ok=True)
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PULUMI_")}
    return {
        **kept,
        "PATH": os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PULUMI_BACKEND_URL": (home / "state").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "of a test",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_HOME": str(home / "pulumi"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }


PROGRAM: Final = """\
import pulumi
from pulumi.dynamic import CreateResult, Resource, ResourceProvider

class Provider(ResourceProvider):
    def create(self, props):
        print("created", props["colour"])
        return CreateResult("one", props)

class Thing(Resource):
    def __init__(self, name, colour):
        super().__init__(Provider(), name, {"colour": colour})

print("greetings")
Thing("apple", pulumi.Config().get("colour") or "green")
"""
PACK: Final = """\
from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy

def no_red(args, report):
    if args.props.get("colour") == "red":
        report(f"{args.name} is red")

NO_RED = ResourceValidationPolicy("no-red", "nothing is red", no_red, EnforcementLevel.MANDATORY)
PolicyPack("house", [NO_RED])
"""
STANDS: Final = """\
import pathlib, threading
pathlib.Path("runs").touch()
threading.Event().wait()
"""


class Cli:
    """The CLI in a project of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.pack = folder / "pack"
        runtime = f"runtime: {{name: python, options: {{virtualenv: {sys.prefix}}}}}\n"
        for where, name, text, config in (
            (self.folder, "Pulumi.yaml", PROGRAM, f"name: mine\n{runtime}"),
            (self.pack, "PulumiPolicy.yaml", PACK, f"{runtime}version: 0.1.0\n"),
        ):
            where.mkdir()
            (where / name).write_text(config)
            (where / "__main__.py").write_text(text)
        self.environment: Mapping[str, str] = {
            **environment(furnish(folder / "bin"), folder),
            MARK: str(folder),
        }
        assert self.run("stack", "init", "dev").returncode == 0

    def program(self, text: str) -> None:
        (self.folder / "__main__.py").write_text(text)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["pulumi", "--non-interactive", "--color", "never", *words]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )

    def update(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(
            "up", "--yes", "--skip-preview", "--stack", "dev", "--policy-pack", str(self.pack), *words
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Begin an operation on the stack whose program never ends, and return once that runs."""
        self.program(STANDS)
        own = ("--non-interactive", "--stack", "dev", "--policy-pack", str(self.pack))
        command = ["pulumi", *words, *own]
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        await_file(self.folder / "runs", process.poll)
        return process


def running(mark: str) -> list[psutil.Process]:
    """Return the processes that a test has marked by a variable of the environment."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            pass
    return found


def left_behind(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return those that do not end."""
    _, alive = psutil.wait_procs(processes, timeout=HANG)
    return alive


def await_file(file: Path, alive: Callable[[], object] = lambda: None) -> None:
    while not file.exists():
        assert alive() is None
