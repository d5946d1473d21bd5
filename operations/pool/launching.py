"""Starts the user's own programs with a launcher, which ends when the command does, however that ends.

They get the environment that they need to run, without credentials. Their standard error goes to its own log.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
    from operations.pool.access import PoolTarget

Launcher: TypeAlias = "subprocess.Popen[bytes]"

_PASSED_ON: Final = (
    "AWS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HOME",
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "LANG",
    "LC_ALL",
    "NODE_EXTRA_CA_CERTS",
    "PATH",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
    *("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"),
    *("all_proxy", "https_proxy", "http_proxy", "no_proxy"),
)
"""Variables that a program inherits: enough to run and to reach a cloud, but no credentials."""

_INTERPRETER: Final = re.compile(r"(bash|env|node|perl|pypy|python|ruby|sh|uv)[\d.]*")

_POD: Final = "CREDFLEET_POD"
"""Variable of a run in a pod: its NAMESPACE/NAME/UID, so that others can check whether it is alive."""

_LAUNCHER: Final = (sys.executable, "-I", str(Path(__file__).with_name("launcher.py")))


class Programs(NamedTuple):
    """The programs of a stack: type or cloud → program and arguments, with paths relative to `folder`."""

    cleaning: Mapping[str, Sequence[str]]
    keys: Mapping[str, Sequence[str]]
    folder: Path


def load_programs(stack: str) -> Programs:
    """Return `accountPool.cleaning` and `accountPool.keys` of a stack; raises as `settings_of`."""
    from operations.config.settings import settings_of

    section, folder = settings_of(stack).account_pool, Folders.find(Path.cwd()).project
    return Programs({}, {}, folder) if section is None else Programs(section.cleaning, section.keys, folder)


def command_of(commands: Mapping[str, Sequence[str]], account_type: str) -> Sequence[str] | None:
    """Return the command for a type, or else for its cloud."""
    return commands.get(account_type) or commands.get(hyperscaler_of(account_type) or "")


def find_program(named: str, folder: Path) -> str:
    """Return a program's path as a shell in `folder` would; bare words are found in PATH."""
    return str((folder / named).absolute()) if "/" in named else named


def name_of(command: Sequence[str]) -> str:
    """Return a program's name in messages: its file, even if an interpreter runs it."""
    program, *arguments = command
    if not _INTERPRETER.fullmatch(Path(program).name):
        return Path(program).name
    files = (Path(each).name for each in arguments if re.fullmatch(r"[^-=][^=]*[./][^=]*", each))
    return next((each for each in files if not _INTERPRETER.fullmatch(each)), Path(program).name)


def launch(
    what: str, command: Sequence[str], member: Member, where: PoolTarget, folder: Path, *, seconds: float
) -> tuple[Launcher, Path]:
    """Start a launcher that runs a command for an account whenever asked; return it and its log.

    what: is done to the account. folder: of relative programs. seconds: the limit of one run.
    """
    log = DEFECTS / f"{what}-{member.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.log"
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
        launcher = subprocess.Popen(
            [*_LAUNCHER, str(seconds), find_program(command[0], folder), *command[1:], member.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=folder,
            env=_environment(where, member),
            start_new_session=True,
        )
    return launcher, log


def run_once(launcher: Launcher, line: str) -> str | None:
    """Run the command once and return the launcher's answer; None if the launcher ended."""
    answer = b""
    if launcher.stdin and launcher.stdout:
        with suppress(OSError, ValueError):
            launcher.stdin.write(f"{line}\n".encode())
            launcher.stdin.flush()
            answer = launcher.stdout.readline()
    return answer.decode().strip() if answer else None


def let_go(launcher: Launcher) -> None:
    """Let a launcher end with everything that its command started."""
    if launcher.stdin:
        with suppress(OSError):
            launcher.stdin.close()


def end(launcher: Launcher) -> None:
    """Let a launcher end, and wait for it; then kill its group, which outlives a killed launcher."""
    let_go(launcher)
    if launcher.stdout:
        launcher.stdout.read()
        launcher.stdout.close()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(launcher.pid, signal.SIGKILL)
    launcher.wait()


def own_pod(where: PoolTarget) -> str:
    """Return the pod of this process; empty if other processes cannot look it up in the pool's cluster."""
    pod = os.environ.get(_POD, "")
    return pod if _is_pod_alive(pod, where) else ""


def look(holder: Holder, where: PoolTarget) -> bool | None:
    """Return whether a holder is alive; if its processes are not visible, its pod is looked up."""
    alive = is_running(holder)
    return _is_pod_alive(holder.pod, where) if alive is None else alive


def _environment(where: PoolTarget, member: Member) -> dict[str, str]:
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


def _is_pod_alive(pod: str, where: PoolTarget) -> bool | None:
    """Return whether a pod can still run a process; None if unknown."""
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
