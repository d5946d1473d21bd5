"""Processes and ports: whose they are, and that none is left or harmed."""

import os
import platform
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Final

import psutil
import pytest
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services import launch, ports, processes
from pulumi_sandbox.services.launch import Launch
from pulumi_sandbox.services.parts import Layout, Part
from pulumi_sandbox.services.ports import LOOPBACK, PortTakenError
from pulumi_sandbox.services.progress import silent

from sandbox.tests.support.cluster import KEEPER, ROOT

SLEEP = "/usr/bin/sleep"


@pytest.fixture
def sleeper(tmp_path: Path) -> Generator[int]:
    pid = processes.spawn([SLEEP, "1000"], tmp_path / "log", die_with_parent=True)
    while processes.command_line(pid)[:1] != [SLEEP]:  # the launcher has not yet become the program
        assert processes.first_ended([pid], 0.01) is None
    yield pid
    processes.end([pid], lambda _: True, patience=0)


def test_a_process_is_found_by_its_program_and_the_exact_argument(sleeper: int):
    assert sleeper in processes.find("sleep", "1000")
    assert sleeper not in processes.find("sleep", "100")
    assert sleeper not in processes.find("etcd", "1000")


def test_a_process_that_is_not_ours_is_never_signalled(sleeper: int):
    processes.end([sleeper], lambda _: False, patience=0)
    assert processes.first_ended([sleeper], 0) is None


def test_a_process_deaf_to_the_polite_signal_is_killed(tmp_path: Path):
    deaf = "from signal import *; signal(SIGTERM, SIG_IGN); print('deaf', flush=True); sigwait({SIGUSR1})"
    log = tmp_path / "log"
    pid = processes.spawn([sys.executable, "-c", deaf], log)
    while "deaf" not in (log.read_text() if log.exists() else ""):
        assert processes.first_ended([pid], 0.01) is None
    processes.end([pid], lambda _: True, patience=0.05)
    assert processes.command_line(pid) == []


def test_a_process_that_was_killed_and_nobody_reaps_has_ended():
    careless = ["/bin/sh", "-c", f"{SLEEP} 1000 & echo $!; exec {SLEEP} 2000"]
    with subprocess.Popen(careless, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        child.kill()
        alive = processes.outlasting([child], 10)
        parent.kill()
    assert alive == []


FIRST_THREAD_ENDS: Final = """
import ctypes, os, socket, sys, threading
with socket.create_server(("127.0.0.1", 0)) as server:
    def keeps_its_port():
        while not open(f"/proc/{os.getpid()}/stat").read().rpartition(")")[2].startswith(" Z"):
            pass
        os.write(1, b"%d\\n" % server.getsockname()[1])
        os.read(0, 1)
        os._exit(0)
    threading.Thread(target=keeps_its_port).start()
    ctypes.CDLL(None).syscall(60, 0)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of the call is that of x86-64")
def test_a_process_whose_first_thread_has_ended_still_holds_its_ports():
    command = [sys.executable, "-c", FIRST_THREAD_ENDS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as ending:
        assert ending.stdin is not None
        assert ending.stdout is not None
        port, process = int(ending.stdout.readline()), psutil.Process(ending.pid)
        assert process.status() == psutil.STATUS_ZOMBIE
        assert processes.outlasting([process], 0) == [process]
        assert not ports.is_free(port)
        ending.stdin.close()
        assert not processes.outlasting([process], 60.0)
        assert ports.is_free(port)


def test_a_started_process_sees_nothing_of_the_callers_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "sentinel")
    pid = processes.spawn(["/usr/bin/env"], tmp_path / "log")
    assert processes.first_ended([pid], 10) == pid
    said = (tmp_path / "log").read_text()
    assert "sentinel" not in said, said


def test_a_started_process_has_a_group_of_its_own_in_the_callers_session(tmp_path: Path):
    pid = processes.spawn([SLEEP, "2000"], tmp_path / "log", die_with_parent=True)
    assert (os.getpgid(pid), os.getsid(pid)) == (pid, os.getsid(0))
    processes.end([pid], lambda _: True, patience=0)


def test_what_is_tied_to_a_process_dies_with_it_however_it_dies(tmp_path: Path):
    parent = (
        "import sys, time; from pathlib import Path; from pulumi_sandbox.services import processes; "
        f"print(processes.spawn(['{SLEEP}', '2000'], Path(sys.argv[1]), die_with_parent=True), flush=True); "
        "time.sleep(1000)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent, str(tmp_path / "log")], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as killed:
        assert killed.stdout is not None
        tied = int(killed.stdout.readline())
        killed.kill()
    assert processes.first_ended([tied], 30) == tied


@pytest.mark.parametrize(
    ("words", "ends", "code"),
    [
        ("open: no such file", True, "cloud-died"),
        ("open: no such file", False, "cloud-not-ready"),
        ("write: no space left on device; goroutine 1", True, "disk-full"),
        ("write: no space left on device", False, "disk-full"),
        ("write: Disk quota exceeded", True, "disk-full"),
    ],
)
def test_what_does_not_start_is_told_by_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, ends: bool, code: str
):
    monkeypatch.setattr(launch, "READY_SECONDS", 30.0 if ends else 1.0)
    started = Launch("cloud", "starting it", 1.0, "run it again", silent)
    log = tmp_path / "log"
    log.write_text("of a former start: no space left on device\n")
    command = f"echo '{words}'; for i in 1 2 3; do echo $i; done; {'exit 1' if ends else 'sleep 60'}"
    try:
        started.start("it", ["/bin/sh", "-c", command], log, die_with_parent=True)
        with pytest.raises(SandboxError) as caught:
            started.wait_for(lambda: False)
    finally:
        started.end()
    assert (caught.value.code, caught.value.place) == (code, str(log))
    assert caught.value.fix.startswith("free some space") == (code == "disk-full")


def test_the_owner_of_a_taken_port_is_named_with_its_program_and_without_its_arguments():
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        assert not ports.is_free(port)
        owner = f"{processes.command_line(os.getpid())[0]} (pid {os.getpid()})"
        assert f"{owner} listens on it" in PortTakenError(port, "the stand-in").problem
    assert ports.port_owner(port) is None


def test_the_owner_of_a_port_taken_on_ipv6_is_named_too():
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        owner = ports.port_owner(server.getsockname()[1])
    assert f"(pid {os.getpid()})" in str(owner)


def test_a_connection_to_elsewhere_holds_no_port():
    with socket.create_server((LOOPBACK, 0)) as server, socket.socket() as going:
        going.connect(server.getsockname())
        port = going.getsockname()[1]
        assert ports.port_owner(port) is None
        assert "or a connection to elsewhere has it" in PortTakenError(port, "the stand-in").problem


def test_free_ports_differ_and_are_none_the_kernel_gives_to_outgoing_connections():
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    chosen = ports.free_ports(3)
    assert len(set(chosen)) == 3
    assert max(chosen) < lowest


@pytest.mark.life
def test_the_tests_control_plane_dies_with_a_killed_test_run(tmp_path: Path):
    test = tmp_path / "test_killed.py"
    test.write_text(
        "import os, signal\n"
        "def test_it(control_plane):\n"
        "    with open(os.environ['TOLD'], 'w') as told:\n"
        "        told.write(str(control_plane.folder))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    told = tmp_path / "told"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "sandbox.tests.support.cluster",
        f"--basetemp={tmp_path / 'base'}",
    ]
    run = subprocess.run(
        [*command, f"--rootdir={tmp_path}", str(test)],
        cwd=ROOT,
        env={**os.environ, "TOLD": str(told)},
        capture_output=True,
        check=False,
    )
    assert run.returncode == -signal.SIGKILL, run.stdout
    folder = Path(told.read_text())
    for keeper in processes.find(KEEPER.name, str(folder)):
        assert processes.first_ended([keeper], 30) == keeper
    assert [pid for part in Part for pid in processes.find(part, Layout(folder).mark(part))] == []
    assert not folder.exists()
