"""What a zygote forks is what a new interpreter would be: decided in `zygotes/`.

Not here: that deployments come out alike either way; tests/program runs forked, tests of the engine do not.
"""

from __future__ import annotations

import marshal
import os
import socket
import subprocess
import sys
import venv
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

import pytest
from pulumi_sandbox.services import processes
from pulumi_sandbox.zygotes.address import FOLDER, SERVER, forked, socket_of

from sandbox.tests.support.zygotes import zygote_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")

SHOW = """
import sys, os
print(sys.argv[1:], __name__, os.getcwd(), os.environ.get("PULUMI_SAID"), sys.stdin.read(), sys.path)
print("to errors", file=sys.stderr)
"""


RUN = """
import os, sys
from pulumi_sandbox.zygotes import launcher
user = os.geteuid() + int(sys.argv[1])
os.geteuid = lambda: user
launcher.run_forked(sys.argv[2], sys.argv[3:])
"""
"""Has a command forked, as the user whose number is higher by the first word; ends with 0 where none does."""


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """A zygote that no test harms."""
    with zygote_in(tmp_path_factory.mktemp("zygotes")):
        yield


@pytest.fixture
def own_zygote(tmp_path: Path) -> Generator[None]:
    """A zygote of this test."""
    with zygote_in(tmp_path / "zygotes"):
        yield


def _is_forked(command: list[str], environment: Mapping[str, str]) -> bool:
    """Whether a zygote ran it: its parent is no process of this one, nor of the launcher."""
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return any(SERVER.name in word for word in shown.split("\0"))


@pytest.mark.usefixtures("zygote")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SHOW, ["a", "b c"]),
        ("import sys; sys.exit(3)", []),
        ("import sys; sys.exit('why')", []),
        ("raise ValueError('why')", []),
        ("def f():\n  1/0\nf()", []),
        ("import os; os._exit(9)", []),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", []),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", []),
        ("import atexit; atexit.register(print, 'last'); print('first')", []),
        ("import threading, time\nthreading.Timer(0.01, print, ['later']).start()", []),
        ("import signal; print([signal.getsignal(n) for n in (2, 15, 17)])", []),
        ("import os; print(oct(os.umask(0)))", []),
        ("import gc, os; print(gc.isenabled(), os.getpgid(0) == os.getpid())", []),
        ("import __main__; x = 1; print(__main__.x, __main__.__file__)", []),
        ("import pulumi_kubernetes as k; print(k.core.v1.Secret, k.apps.v1.Deployment, k.Provider)", []),
        ("from pulumi_kubernetes import apps, core; print(core, core.v1.Pod, apps.v1beta1.Deployment)", []),
        ("import pulumi_azure_native as a; print(a.resources.ResourceGroup, a.authorization)", []),
        ("from pulumi_azure_native import authorization as a; print(a, a.RoleAssignment, a.outputs)", []),
        ("from pulumi_gcp import secretmanager as s; print(s, s.Secret, s.outputs)", []),
    ],
)
def test_a_forked_script_does_what_the_script_does_by_itself(tmp_path: Path, text: str, words: list[str]):
    script = tmp_path / "script.py"
    script.write_text(text)
    command = [sys.executable, "-u", "-P", str(script), *words]
    environment = {**os.environ, "PULUMI_SAID": "it"}

    def outcome(words: list[str]) -> tuple[int, str, str]:
        done = subprocess.run(
            words,
            cwd=tmp_path,
            env=environment,
            input="given",
            capture_output=True,
            text=True,
            check=False,
            process_group=0,
            umask=0o027,
        )
        return done.returncode, done.stdout, done.stderr

    assert outcome(forked(command, environment)) == outcome(command)


@pytest.mark.usefixtures("zygote")
def test_nothing_is_handed_to_the_zygote_of_another_user(tmp_path: Path):
    (tmp_path / "script.py").write_text("raise SystemExit(3)")
    command = [sys.executable, "-u", "-P", str(tmp_path / "script.py")]
    address = str(socket_of(Path(os.environ[FOLDER]), Path(sys.executable), os.environ))
    asked = subprocess.run([sys.executable, "-c", RUN, "0", address, *command], check=False)
    another = subprocess.run([sys.executable, "-c", RUN, "1", address, *command], check=False)
    assert (asked.returncode, another.returncode) == (3, 0)


@pytest.mark.usefixtures("zygote")
def test_a_forked_module_is_found_in_the_folder_it_is_started_in(tmp_path: Path):
    (tmp_path / "one_module.py").write_text("import sys; print(__name__, sys.argv[1:])")
    command = [sys.executable, "-u", "-m", "one_module", "x"]
    done = subprocess.run(
        forked(command, os.environ), cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "__main__ ['x']\n"


@pytest.mark.usefixtures("zygote")
def test_a_module_of_a_project_is_read_anew_each_time(tmp_path: Path):
    for word in ("once", "again"):
        (tmp_path / "of_the_project.py").write_text(f"WORD = {word!r}")
        (tmp_path / "script.py").write_text(
            f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.dont_write_bytecode = True\n"
            "import of_the_project; print(of_the_project.WORD)"
        )
        command = [sys.executable, "-u", "-P", str(tmp_path / "script.py")]
        done = subprocess.run(forked(command, os.environ), capture_output=True, text=True, check=True)
        assert done.stdout == f"{word}\n"


PARENT = "import os; print(open(f'/proc/{os.getppid()}/cmdline').read())"


@pytest.fixture
def environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[tuple[Path, Callable[[str], subprocess.CompletedProcess[str]]]]:
    """Where another interpreter, which has a zygote, has its modules; and how to run a script there."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=False, symlinks=True)
    python, installed = home / "bin" / "python", next(home.glob("lib/python*/site-packages"))
    (installed / "__pycache__").mkdir()
    (installed / "dill.py").write_text("import os; WORD, WHERE = 'old', os.getpid()")
    folder = tmp_path / "zygotes"
    monkeypatch.setattr(sys, "executable", str(python))
    script = tmp_path / "script.py"

    def run(text: str) -> subprocess.CompletedProcess[str]:
        script.write_text(text)
        command = forked([str(python), "-u", "-P", str(script)], os.environ)
        return subprocess.run(command, capture_output=True, text=True, check=True)

    with zygote_in(folder):
        yield installed, run


def test_an_installed_module_is_imported_once_and_never_given_away_when_it_changed(
    environment_of_its_own: tuple[Path, Callable[[str], subprocess.CompletedProcess[str]]],
):
    installed, run = environment_of_its_own
    text = f"import dill, os; print(dill.WORD, dill.WHERE == os.getpid())\n{PARENT}"
    assert run(text).stdout.startswith("old False")
    (installed / "dill.py").write_text("import os; WORD, WHERE = 'newer', os.getpid()")
    told = run(text).stdout
    assert told.startswith("newer True")
    assert SERVER.name not in told


@pytest.mark.usefixtures("zygote")
@pytest.mark.parametrize("heard", [True, False], ids=["after it heard of it", "before it heard of it"])
def test_what_is_forked_ends_with_whoever_asked_for_it(tmp_path: Path, heard: bool):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(os.getpid())\ntime.sleep(600)"
    )
    command = [sys.executable, "-u", "-P", str(script)]
    body = marshal.dumps((command, str(tmp_path), dict(os.environ), 0o022))
    told, tell = os.pipe()
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(socket_of(Path(os.environ[FOLDER]), Path(sys.executable), os.environ)))
        socket.send_fds(asking, [len(body).to_bytes(4, "little")], [tell, tell, tell])
        asking.sendall(body)
        with os.fdopen(told) as lines:
            child = os.pidfd_open(int(lines.readline()))
        if heard:
            assert asking.recv(1)
    os.close(tell)
    assert processes.first_ended([_pid_of(child)], 60.0) is not None
    os.close(child)


def _pid_of(descriptor: int) -> int:
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("Pid:")))


@pytest.mark.usefixtures("own_zygote")
@pytest.mark.parametrize(
    "how", ["another environment", "a zygote that was killed", "its socket was taken away"]
)
def test_a_process_is_started_by_itself_where_no_zygote_may_fork_it(tmp_path: Path, how: str):
    script = tmp_path / "script.py"
    script.write_text(PARENT)
    environment = dict(os.environ)
    command = forked([sys.executable, "-u", "-P", str(script)], environment)
    assert _is_forked(command, environment)
    if how == "another environment":
        environment["LANG"] = "C"
        command = forked(command[6:], environment)
    elif how == "a zygote that was killed":
        processes.end_all(SERVER.name, command[5], patience=0.0)
    else:
        Path(command[5]).unlink()
    assert not _is_forked(command, environment)


@pytest.mark.usefixtures("zygote")
@pytest.mark.parametrize("name", ["SHLVL", "MAKELEVEL", "MFLAGS", "PULUMI_SAID"])
def test_a_variable_that_no_module_reads_keeps_no_process_from_being_forked(tmp_path: Path, name: str):
    script = tmp_path / "script.py"
    script.write_text(PARENT)
    environment = {**os.environ, name: "7"}
    assert _is_forked(forked([sys.executable, "-u", "-P", str(script)], environment), environment)
