"""A command is the same where it is forked: what it prints, how it ends, what it hears.

Decided in `operations/cli/forking.py`.

Not here: that nothing is given away that changed on disk, and what else a zygote keeps to:
`sandbox/tests/services/test_zygotes.py`.
"""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from array import array
from collections.abc import Generator
from contextlib import contextmanager, suppress
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
    found: list[psutil.Process] = []
    for each in Folders(project).commands.glob("*.sock"):
        for pid in processes.find(SERVER.name, str(each)):
            with suppress(psutil.NoSuchProcess):  # one of the command before, which ends meanwhile
                found.append(psutil.Process(pid))
    return found


def _kept(folder: Path) -> Path:
    """Have a process for commands in a project, and wait until it listens."""
    subprocess.run([sys.executable, "-c", KEEP], cwd=folder, env=ENVIRONMENT, check=True)
    while not _zygotes(folder):
        assert any(str(folder) in word for each in psutil.process_iter() for word in _words(each))
    return folder


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A project whose commands are forked."""
    folder = _kept(_project(tmp_path_factory.mktemp("forking") / "project"))
    yield folder
    subprocess.run([CREDFLEET, "sandbox", "down"], cwd=folder, env=ENVIRONMENT, check=True)


@pytest.fixture(scope="module")
def apart(project: Path) -> Path:
    """The same project, where nobody forks."""
    return _project(project.with_name("apart"))


def _outcome(folder: Path, line: str, given: str = "", **variables: str) -> tuple[int, str, str]:
    """Return how a line of a shell ended, in which `credfleet` is the command, and what it printed."""
    done = subprocess.run(
        ["bash", "-c", f'credfleet() {{ {CREDFLEET} "$@"; }}; {line}'],
        cwd=folder,
        env={**ENVIRONMENT, **variables},
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.replace(str(folder), "~"), done.stderr.replace(str(folder), "~")


COMPLETION: Final = {"_CREDFLEET_COMPLETE": "complete_bash", "COMP_WORDS": "credfleet po", "COMP_CWORD": "1"}


@pytest.mark.parametrize(
    ("line", "given", "variables"),
    [
        pytest.param("credfleet pool --version", "", {}, id="a version"),
        pytest.param("credfleet pool claim --help", "", {"COLUMNS": "100"}, id="help, in a wide terminal"),
        pytest.param("credfleet pool clame", "", {}, id="a misspelt command"),
        pytest.param("credfleet config check --output json", "", {}, id="a stack that is wrong"),
        pytest.param("credfleet preview-report -", "no JSON", {}, id="what is piped in"),
        pytest.param("credfleet preview-report <(echo '[]')", "", {}, id="a file of the shell's own"),
        pytest.param("credfleet", "", COMPLETION, id="a completion"),
        pytest.param("credfleet pool --help <&-", "", {}, id="a closed input"),
        pytest.param("credfleet pool clame >&-", "", {}, id="a closed output"),
        pytest.param("credfleet pool --help 2>&-", "", {}, id="closed errors"),
    ],
)
def test_a_forked_command_prints_and_ends_as_one_that_runs_by_itself(
    project: Path, apart: Path, line: str, given: str, variables: dict[str, str]
) -> None:
    forked = _outcome(project, line, given, **variables)
    assert forked == _outcome(apart, line, given, **variables)
    assert any(forked[1:])


ASK: Final = (
    "import sys\nfrom pathlib import Path\nfrom operations.cli.forking import fork_command\n"
    "fork_command(Path(sys.argv.pop(1)))\nprint('by itself')"
)


@pytest.mark.parametrize(
    ("variables", "words", "told"),
    [
        pytest.param({}, (), "forked", id="one like those the process was started with"),
        pytest.param({"MAKELEVEL": "3", "TERM": "dumb"}, (), "forked", id="one started by make"),
        pytest.param({"COLUMNS": "100"}, (), "forked", id="one in a wide terminal"),
        pytest.param(COMPLETION, (), "forked", id="a completion"),
        pytest.param({"KUBECONFIG": "/nowhere"}, (), "by itself", id="one with a variable that modules read"),
        pytest.param({"WORD": "\udcff"}, (), "by itself", id="one with a variable that is no text"),
        pytest.param({}, ("/dev/fd/63",), "by itself", id="one that is named what is open here alone"),
        pytest.param({}, ("pool", "--help"), "forked", id="help on a command"),
        pytest.param({}, ("--help",), "by itself", id="help on all of it, which imports little"),
    ],
)
def test_a_command_is_forked_where_its_environment_and_words_let_it(
    project: Path, tmp_path: Path, variables: dict[str, str], words: tuple[str, ...], told: str
) -> None:
    (tmp_path / "script.py").write_text("print('forked')")
    command = [sys.executable, "-c", ASK, str(tmp_path / "script.py"), *words]
    environment = {**ENVIRONMENT, **variables}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{told}\n"


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


def _waits(command: subprocess.Popen[str], attending: list[psutil.Process]) -> bool:
    """Whether both hear signals: a Python that is about to wait loses one, as the one forked does
    between two parts of its input. The one that was called waits once its streams are closed.
    """
    assert command.stdin is not None
    unread = array("i", [0])
    fcntl.ioctl(command.stdin, termios.FIONREAD, unread)
    both = [psutil.Process(command.pid), *(each for each in attending if not each.children())]
    has_closed = not Path(f"/proc/{command.pid}/fd/0").exists()
    return has_closed and not any(unread) and all(each.status() == psutil.STATUS_SLEEPING for each in both)


@contextmanager
def _waiting(project: Path) -> Generator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """A forked command that waits for the rest of its input, and what runs for it besides."""
    there = _zygotes(project)
    keeper = next(each for each in there if each.parent() not in there)
    with subprocess.Popen(
        [CREDFLEET, "preview-report", "-"],
        cwd=project,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdin is not None
        command.stdin.write(" " * _MORE_THAN_A_PIPE_HOLDS)
        command.stdin.flush()
        attending = keeper.children(recursive=True)
        try:
            while not _waits(command, attending):
                assert command.poll() is None
            yield command, attending
        finally:
            command.kill()
    assert not processes.outlasting(attending, 60.0)


def test_control_c_ends_a_forked_command_in_words(project: Path) -> None:
    with _waiting(project) as (command, _):
        command.send_signal(signal.SIGINT)
        assert command.wait(60) == 8  # its input stays open: the end of that would come as soon as the signal
        assert command.stderr is not None
        assert "stopped by Ctrl-C" in command.stderr.read()


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_nobody_answers_is_ended_by_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    project = _kept(_project(tmp_path / "project"))
    (zygote,) = _zygotes(project)
    zygote.suspend()
    try:
        with subprocess.Popen([CREDFLEET, "pool", "--help"], cwd=project, env=ENVIRONMENT) as command:
            try:
                while not _has_a_socket(command.pid):
                    assert command.poll() is None
                command.send_signal(number)
                assert command.wait(60) == -number
            finally:
                command.kill()
    finally:
        zygote.kill()


def _has_a_socket(pid: int) -> bool:
    with suppress(OSError):  # what was open a moment ago may be closed
        return any(os.readlink(each).startswith("socket:") for each in Path(f"/proc/{pid}/fd").iterdir())
    return False


TYPED: Final = '{"accessKeyID":"AK","secretAccessKey":"hunter2"}'
IN_A_TERMINAL: Final = f"""
import os
{KEEP}
while not [*Folders.find(Path.cwd()).commands.glob("*.sock")]:
    pass
os.execv({str(CREDFLEET)!r}, ["credfleet", "add", "account", "aws-9", "--type", "aws", "--id", "9"])
"""
"""The process for commands is started from the terminal in which the command asks for a value."""


def test_a_forked_command_asks_in_the_terminal_and_shows_no_secret_that_is_typed(tmp_path: Path) -> None:
    folder = _project(tmp_path / "project")
    cluster, pool = "credfleet:cluster: {context: mine}", "credfleet:accountPool: {members: {}}"
    (folder / "Pulumi.dev.yaml").write_text(f"config:\n  {cluster}\n  {pool}\n")
    environment = {**ENVIRONMENT, "PULUMI_CONFIG_PASSPHRASE": "correct horse"}
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, "-c", IN_A_TERMINAL], environment)
    shown, forking = b"", list[psutil.Process]()
    with suppress(OSError):  # Linux has no end of file for a terminal that is closed
        while part := os.read(terminal, 4096):
            shown += part
            if shown.endswith(b": "):
                forking = _zygotes(folder)
                os.write(terminal, f"{TYPED}\n".encode())
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0, shown
    assert len(forking) == 3  # the process, who attends to the command, and the command
    assert "hunter2" not in shown.decode()
    assert "aws-9" in (folder / "Pulumi.dev.yaml").read_text()
    subprocess.run([CREDFLEET, "sandbox", "down"], cwd=folder, env=environment, check=True)


def test_the_process_for_commands_ends_when_the_sandbox_is_stopped(tmp_path: Path) -> None:
    folder = _project(tmp_path / "project")
    keepers = _zygotes(_kept(folder))
    subprocess.run([CREDFLEET, "sandbox", "down"], cwd=folder, env=ENVIRONMENT, check=True)
    assert not processes.outlasting(keepers, 60.0)
