"""What a program that is shut in gets of what it might look for: nothing but what it is shown.

Not proved: that a flaw of the kernel lets nothing through.
"""

import ctypes
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from operations.review.confined import REFUSED
from operations.review.confinement import Confinement, start
from tests.support.cases import tabled

CANARY: Final = "canary-of-the-runner"
HOSTILE: Final = """
import ctypes, json, os, signal, socket, sys
found = {}
KEYCTL, SEARCH, SESSION = (250 if os.uname().machine == "x86_64" else 219), 10, -3
def attempt(name, work):
    try:
        found[name] = work()
    except BaseException as error:
        found[name] = f"refused: {type(error).__name__}"
def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.settimeout(2)
        one.connect(address)
    return "connected"
port, outside, runner = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
attempt("environment", lambda: sorted(os.environ))
attempt("outside", lambda: open(outside).read())
attempt("hidden", lambda: os.listdir(".secrets"))
attempt("home", lambda: os.listdir(os.environ["HOME"]))
attempt("temporary", lambda: os.listdir(os.environ["TMPDIR"]))
attempt("passwords", lambda: open("/etc/passwd").read())
attempt("checkout", lambda: open("program.py", "a").write("#"))
attempt("parent's environment", lambda: open(f"/proc/{runner}/environ").read())
attempt("parent's memory", lambda: open(f"/proc/{runner}/mem", "rb").read(1))
attempt("ptrace", lambda: ctypes.CDLL(None).ptrace(16, runner, 0, 0))
attempt("kill", lambda: os.kill(runner, 0))
attempt("loopback", lambda: connect(socket.AF_INET, ("127.0.0.1", port)))
attempt("metadata server", lambda: connect(socket.AF_INET, ("169.254.169.254", 80)))
attempt("abstract socket", lambda: connect(socket.AF_UNIX, chr(0) + f"canary-{port}"))
attempt("raw socket", lambda: bool(socket.socket(socket.AF_PACKET, socket.SOCK_RAW)))
attempt("mount", lambda: ctypes.CDLL(None).mount(b"none", b"/tmp", b"tmpfs", 0, None))
attempt("mount as root of its own", lambda: ctypes.CDLL(None).unshare(0x10000000))
call = ctypes.CDLL(None).syscall
attempt("key of the runner", lambda: call(KEYCTL, SEARCH, SESSION, b"user", b"canary", 0))
attempt("memory", lambda: len(bytearray(2 << 30)))
print(json.dumps(found))
os.killpg(0, signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the hostile program shut in, beside what it looks for; return what it found."""
    folder = tmp_path_factory.mktemp("runner")
    checkout, secrets = folder / "checkout", folder / "checkout" / ".secrets"
    secrets.mkdir(parents=True)
    (secrets / "key").write_text(CANARY)
    (checkout / "program.py").write_text(HOSTILE)
    (folder / "outside").write_text(CANARY)
    shut = Confinement(
        readable=(checkout, Path(sys.base_prefix)),
        hidden=(secrets,),
        size=1 << 30,
    )
    add_key = 248 if os.uname().machine == "x86_64" else 217
    ctypes.CDLL(None).syscall(add_key, b"user", b"canary", CANARY.encode(), len(CANARY), -3)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        port = server.getsockname()[1]
        abstract.bind(f"\0canary-{port}")
        abstract.listen()
        program = [sys.executable, "program.py", str(port), str(folder / "outside"), str(os.getpid())]
        with start(shut, checkout, [os.path.realpath(sys.executable), *program[1:]]) as done:
            said = done.communicate()[0].decode()
        server.setblocking(False)
        heard = [one for one in (server, abstract) if _heard(one)]
    if done.returncode == REFUSED:
        pytest.skip(f"this kernel shuts no program in: {said.strip()}")
    assert (folder / "outside").read_text() == CANARY
    assert (checkout / "program.py").read_text() == HOSTILE
    return {**json.loads(said), "heard": len(heard), "output": said}


def _heard(listening: socket.socket) -> bool:
    listening.setblocking(False)
    try:
        listening.accept()
    except BlockingIOError:
        return False
    return True


def test_its_environment_is_what_it_was_told(tried: dict[str, Any]) -> None:
    assert set(tried["environment"]) - {"LC_CTYPE"} == {"HOME", "LANG", "PATH", "TMPDIR"}


@pytest.mark.parametrize("place", ["hidden", "home", "temporary"])
def test_its_folders_are_empty(tried: dict[str, Any], place: str) -> None:
    assert tried[place] == []


@tabled("what")
def test_it_is_refused_whatever_else_it_tries(tried: dict[str, Any], what: str) -> None:
    assert str(tried[what]).startswith("refused: ")


@pytest.mark.parametrize("what", ["ptrace", "mount", "mount as root of its own", "key of the runner"])
def test_its_calls_of_the_kernel_fail(tried: dict[str, Any], what: str) -> None:
    assert tried[what] == -1


def test_nobody_outside_heard_of_it(tried: dict[str, Any]) -> None:
    assert tried["heard"] == 0
    assert CANARY not in tried["output"]
