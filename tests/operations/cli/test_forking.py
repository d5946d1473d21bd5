"""A command is the same where it is forked: what it prints, how it ends, what it hears.

Decided in `operations/cli/forking.py`.

Not here: that nothing is given away that changed on disk, and what else a zygote keeps to:
`sandbox/tests/services/test_zygotes.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil
import pytest
from pulumi_sandbox.folders import Folders
from pulumi_sandbox.services import processes
from pulumi_sandbox.zygotes.address import FOLDER, SERVER, forked

from tests.support.warm_commands import CREDFLEET

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")

ENVIRONMENT: Final = {
    name: value for name, value in os.environ.items() if name not in (FOLDER, "GRPC_VERBOSITY")
}
"""A shell's: what this process has imported has set variables, too."""

_MORE_THAN_A_PIPE_HOLDS: Final = 300_000
KEEP: Final = (
    "from pathlib import Path\nfrom operations.cli.forking import fork_command, keep_process\n"
    "from operations.folders import Folders\n"
    "fork_command(Path('none'))\nkeep_process(Folders.find(Path.cwd()))\n"
)
"""What the first command of a project does that is not forked."""


def _project(folder: Path) -> Path:
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: mine\nruntime: python\n")
    (folder / "Pulumi.dev.yaml").write_text("config:\n  mine:nothing: true\n")
    return folder


def _zygotes(project: Path) -> list[psutil.Process]:
    """The processes that fork for a project, and those that attend to one command each."""
    sockets = [*Folders(project).commands.glob("*.sock")]
    return [psutil.Process(pid) for each in sockets for pid in processes.find(SERVER.name, str(each))]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A project whose commands are forked."""
    folder = _project(tmp_path_factory.mktemp("forking") / "project")
    subprocess.run([sys.executable, "-c", KEEP], cwd=folder, env=ENVIRONMENT, check=True)
    while not [*Folders(folder).commands.glob("*.sock")]:
        log = (Folders(folder).commands / "log").read_text()
        assert not log, log
    yield folder
    subprocess.run([CREDFLEET, "sandbox", "down"], cwd=folder, env=ENVIRONMENT, check=True)


@pytest.fixture(scope="module")
def apart(project: Path) -> Path:
    """The same project, where nobody forks."""
    return _project(project.with_name("apart"))


def _outcome(folder: Path, words: list[str], given: str, **variables: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [CREDFLEET, *words],
        cwd=folder,
        env={**ENVIRONMENT, **variables},
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.replace(str(folder), "~"), done.stderr.replace(str(folder), "~")


@pytest.mark.parametrize(
    ("words", "given", "variables"),
    [
        pytest.param(["--version"], "", {}, id="a version"),
        pytest.param(["pool", "claim", "--help"], "", {"COLUMNS": "100"}, id="help, in a wide terminal"),
        pytest.param(["pool", "clame"], "", {}, id="a misspelt command"),
        pytest.param(["config", "check", "--output", "json"], "", {}, id="a stack that is wrong"),
        pytest.param(["preview-report", "-"], "no JSON", {}, id="what is piped in"),
        pytest.param(
            [], "", {"_CREDFLEET_COMPLETE": "complete_bash", "COMP_WORDS": "credfleet po", "COMP_CWORD": "1"},
            id="a completion",
        ),
    ],
)  # fmt: skip
def test_a_forked_command_prints_and_ends_as_one_that_runs_by_itself(
    project: Path, apart: Path, words: list[str], given: str, variables: dict[str, str]
) -> None:
    forked = _outcome(project, words, given, **variables)
    assert forked == _outcome(apart, words, given, **variables)
    assert any(forked[1:])


def _ran(project: Path, script: Path, text: str) -> str:
    """Run a script as the process for commands runs the command, and return what it printed."""
    script.write_text(text)
    own = {**ENVIRONMENT, FOLDER: str(Folders(project).commands)}
    command = forked([sys.executable, "-u", "-P", str(script)], own)
    return subprocess.run(command, cwd=project, env=own, capture_output=True, text=True, check=True).stdout


def test_a_forked_command_leaves_the_process_that_forked_it_as_it_is(project: Path, tmp_path: Path) -> None:
    def listening() -> list[tuple[str, int]]:
        return [(each.name, each.stat().st_ino) for each in Folders(project).commands.glob("*.sock")]

    before = listening()
    _ran(project, tmp_path / "script.py", KEEP.replace("fork_command(Path('none'))", ""))
    assert len(before) == 1
    assert listening() == before


def test_a_forked_command_has_the_variables_that_what_it_imports_sets(project: Path, tmp_path: Path) -> None:
    text = "import os, sys\nimport pulumi_sandbox.protocol\nprint(os.environ['GRPC_VERBOSITY'])"
    assert _ran(project, tmp_path / "script.py", text) == "NONE\n"


@contextmanager
def _waiting(folder: Path, **variables: str) -> Generator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """A command that waits for the rest of its input, and what runs for it besides."""
    there = _zygotes(folder)
    keeper = next(each for each in there if each.parent() not in there)
    with subprocess.Popen(
        [CREDFLEET, "preview-report", "-"],
        cwd=folder,
        env={**ENVIRONMENT, **variables},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdin is not None
        command.stdin.write(" " * _MORE_THAN_A_PIPE_HOLDS)
        command.stdin.flush()
        attending = keeper.children(recursive=True)
        try:
            yield command, attending
        finally:
            command.kill()
    assert not processes.outlasting(attending, 60.0)


@pytest.mark.parametrize(
    ("variables", "is_forked"),
    [
        pytest.param({}, True, id="one like those the process was started with"),
        pytest.param({"MAKELEVEL": "3", "TERM": "dumb"}, True, id="one started by make"),
        pytest.param({"KUBECONFIG": "/nowhere"}, False, id="one with a variable that modules read"),
    ],
)
def test_a_command_is_forked_where_its_environment_lets_it(
    project: Path, variables: dict[str, str], is_forked: bool
) -> None:
    with _waiting(project, **variables) as (command, attending):
        assert bool(attending) == is_forked
        command.communicate()


def test_control_c_ends_a_forked_command_in_words(project: Path) -> None:
    with _waiting(project) as (command, _):
        command.send_signal(signal.SIGINT)
        _, told = command.communicate()
    assert "stopped by Ctrl-C" in told
    assert command.returncode == 8


def test_control_z_stops_a_forked_command_until_it_is_let_go_on(project: Path) -> None:
    with _waiting(project) as (command, attending):
        forked_one = next(each for each in attending if not each.children())
        both = [psutil.Process(command.pid), forked_one]
        command.send_signal(signal.SIGTSTP)
        while any(each.status() != psutil.STATUS_STOPPED for each in both):
            assert command.poll() is None
        command.send_signal(signal.SIGCONT)
        _, told = command.communicate()
    assert "standard input" in told


def test_a_forked_command_ends_with_the_one_that_was_killed(project: Path) -> None:
    with _waiting(project) as (command, attending):
        command.kill()
        assert not processes.outlasting(attending, 60.0)


def test_the_process_for_commands_ends_when_the_sandbox_is_stopped(tmp_path: Path) -> None:
    folder = _project(tmp_path / "project")
    subprocess.run([sys.executable, "-c", KEEP], cwd=folder, env=ENVIRONMENT, check=True)
    while not (keepers := _zygotes(folder)):
        assert not (Folders(folder).commands / "log").read_text()
    subprocess.run([CREDFLEET, "sandbox", "down"], cwd=folder, env=ENVIRONMENT, check=True)
    assert not processes.outlasting(keepers, 60.0)
