"""Starts the user's own programs below a launcher, which ends with the command, however that ends.

They get enough of the environment to run, and no variable that holds a credential. What they say on standard
error goes to a log of its own.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from components.account_pool.core.holders import Holder, is_running
from components.connection import NoReply, connect
from components.http_answers import HttpOutcome
from components.labels import hyperscaler_of
from operations.cli.failures import DEFECTS
from operations.folders import Folders

if TYPE_CHECKING:
    from components.account_pool.core.model import Member
    from operations.pool.access import WritablePoolOptions

Launcher: TypeAlias = "subprocess.Popen[bytes]"

_PASSED_ON: Final = (
    "HOME",
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "LANG",
    "LC_ALL",
    "PATH",
    "TMPDIR",
    "TZ",
)
"""Variables a cleaner gets of ours: enough to run, and none that holds a credential."""

_POD: Final = "CREDFLEET_POD"
"""In the environment of a run in a pod: NAMESPACE/NAME/UID of that, where others may ask about it."""

_LAUNCHER: Final = (sys.executable, "-I", str(Path(__file__).with_name("launcher.py")))


class Programs(NamedTuple):
    """What a stack has run on accounts: type or cloud → program and arguments, from a folder on."""

    cleaning: Mapping[str, Sequence[str]]
    keys: Mapping[str, Sequence[str]]
    folder: Path


def load_programs(stack: str) -> Programs:
    """Return what `accountPool.cleaning` and `accountPool.keys` of a stack name; raises as `settings_of`."""
    from operations.config.settings import settings_of

    section, folder = settings_of(stack).account_pool, Folders.find(Path.cwd()).project
    return Programs({}, {}, folder) if section is None else Programs(section.cleaning, section.keys, folder)


def command_of(commands: Mapping[str, Sequence[str]], account_type: str) -> Sequence[str] | None:
    """Return the command of a type: its own, else that of its cloud."""
    return commands.get(account_type) or commands.get(hyperscaler_of(account_type) or "")


def find_program(named: str, folder: Path) -> str:
    """Find a program as a shell in `folder` would: by PATH when it is a bare word."""
    return str((folder / named).absolute()) if "/" in named else named


def open_log(what: str, member: Member) -> tuple[Path, int]:
    """Make the file that a program of an account writes to, for this user alone."""
    log = DEFECTS / f"{what}-{member.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.log"
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return log, os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where commands run. folder: where relative programs are. seconds: how long one run may take."""

    folder: Path
    where: WritablePoolOptions
    seconds: float

    def launch(self, command: Sequence[str], member: Member, log: int) -> Launcher:
        """Start what will run a command of an account, as often as it is asked to."""
        return subprocess.Popen(
            [*_LAUNCHER, str(self.seconds), find_program(command[0], self.folder), *command[1:], member.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=self.folder,
            env=_environment(self.where, member),
            start_new_session=True,
        )


def run_once(launcher: Launcher, line: str) -> str | None:
    """Have the command run once, and return what the launcher answers; None when it was let go, or ended."""
    answer = b""
    if launcher.stdin and launcher.stdout:
        with suppress(OSError, ValueError):
            launcher.stdin.write(f"{line}\n".encode())
            launcher.stdin.flush()
            answer = launcher.stdout.readline()
    return answer.decode().strip() if answer else None


def let_go(launcher: Launcher) -> None:
    """Let a launcher end with all that its command started."""
    if launcher.stdin:
        with suppress(OSError):
            launcher.stdin.close()


def end(launcher: Launcher) -> None:
    """Let a launcher go, and wait until it is over; its group outlives one that was killed."""
    let_go(launcher)
    if launcher.stdout:
        launcher.stdout.read()
        launcher.stdout.close()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(launcher.pid, signal.SIGKILL)
    launcher.wait()


@contextmanager
def stopped_by_signals() -> Generator[None]:
    """Let SIGTERM and SIGHUP stop what runs as Ctrl-C does, where they are not ignored, as by nohup."""
    heard = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) != signal.SIG_IGN]
    former = {each: signal.signal(each, signal.default_int_handler) for each in heard}
    try:
        yield
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)


def own_pod(where: WritablePoolOptions) -> str:
    """Name the pod that this process runs in; empty where others cannot ask the pool's cluster about it."""
    pod = os.environ.get(_POD, "")
    return pod if _is_pod_alive(pod, where) else ""


def look(holder: Holder, where: WritablePoolOptions) -> bool | None:
    """Whether a holder is alive; where its processes cannot be seen, its pod is asked about."""
    alive = is_running(holder)
    return _is_pod_alive(holder.pod, where) if alive is None else alive


def _environment(where: WritablePoolOptions, member: Member) -> dict[str, str]:
    ours = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
    target = where.target()
    kubeconfig = {"KUBECONFIG": str(Path(target.kubeconfig).resolve())} if target.kubeconfig else {}
    context = {"CREDFLEET_CONTEXT": target.context} if target.context else {}
    return {
        **ours,
        **kubeconfig,
        **context,
        "CREDFLEET_NAMESPACE": where.namespace,
        "CREDFLEET_TYPE": member.type,
    }


def _is_pod_alive(pod: str, where: WritablePoolOptions) -> bool | None:
    """Whether a pod may still run a process; None where it cannot be asked."""
    named = re.fullmatch("([-a-z0-9]+)/([-.a-z0-9]+)/(.+)", pod)
    if named is None:
        return None
    namespace, name, uid = named.groups()
    try:
        reply = connect(where.target()).patient.call("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
    except NoReply:
        return None
    if reply.answer is HttpOutcome.ABSENT:
        return False
    if reply.answer is not HttpOutcome.DONE:
        return None
    is_it = reply.body["metadata"]["uid"] == uid
    return is_it and reply.body.get("status", {}).get("phase") not in ("Succeeded", "Failed")
