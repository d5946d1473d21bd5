"""`credfleet pool clean`: wipes dirty accounts by commands of the user's own.

A command gets the name of the account and nothing secret: what it needs of the credential it reads from the
Secret itself, by the kubeconfig it is told. Its output goes to a log of its own.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock
from typing import Final, TypeAlias

import typer

from components.account_pool.core.cleaning import Wiped
from components.account_pool.core.holders import Holder, is_running
from components.account_pool.core.model import Member, account_key
from components.account_pool.core.pool import CLEANER
from components.connection import NoReply, connect
from components.errors import Misconfigured, Misused
from components.http_answers import HttpOutcome
from components.labels import hyperscaler_of
from operations.cli.answer import CommandResult
from operations.cli.ask import ask
from operations.cli.failures import DEFECTS
from operations.cli.tables import Column, Table
from operations.folders import Folders
from operations.pool.access import WritablePoolOptions

LOGS: Final = DEFECTS
"""Where the output of cleaners is written, below the working directory."""

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

_IDENTIFY_SECONDS: Final = 60.0
"""How long a command may take to say which account a credential opens."""

_POD: Final = "CREDFLEET_POD"
"""In the environment of a run in a pod: NAMESPACE/NAME/UID of that, where others may ask about it."""

_LAUNCHER: Final = (sys.executable, "-I", str(Path(__file__).with_name("launcher.py")))
_Launcher: TypeAlias = "subprocess.Popen[bytes]"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a run may take on itself. at_once: accounts wiped side by side.

    seconds: how long one command may take. within: seconds after which no more is begun. attempts: how often
    the command of an account is tried before that is quarantined; cooldown: seconds between two of them.
    """

    at_once: int
    seconds: float
    within: float
    attempts: int
    cooldown: float


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Runs the command of an account's type. commands, identify: type or cloud → program and arguments.

    folder: where relative programs are. stopped: somebody pressed Ctrl-C, so nothing is begun or judged.
    """

    commands: Mapping[str, Sequence[str]]
    folder: Path
    where: WritablePoolOptions
    limits: Limits
    identify: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    began: float = field(default_factory=time.monotonic)
    logs: dict[str, Path] = field(default_factory=dict[str, Path])
    stopped: Event = field(default_factory=Event)
    launchers: dict[str, _Launcher] = field(default_factory=dict[str, _Launcher])
    starting: Lock = field(default_factory=Lock)

    def command(self, account_type: str) -> Sequence[str] | None:
        """Find the command of a type: its own, else that of its cloud."""
        return command_of(self.commands, account_type)

    def is_over(self) -> bool:
        """Whether the time of the run is over, or it was stopped."""
        return self.stopped.is_set() or time.monotonic() - self.began >= self.limits.within

    def stop(self) -> None:
        """End every command that runs, and begin no other; their accounts are the next run's."""
        self.stopped.set()
        with self.starting:
            for launcher in [*self.launchers.values()]:
                _let_go(launcher)

    @contextmanager
    def hold(self, member: Member) -> Generator[Holder | None]:
        """Start what will run the command of a member, before the member is taken: the launcher holds it.

        It ends when this process does, and not before all is dead that the command started.
        """
        command, pod = self.command(member.type), os.environ.get(_POD, "")
        pod = pod if _is_pod_alive(pod, self.where) else ""  # it may be in another cluster than the pool
        if command is None:
            yield Holder.of_process(os.getpid(), pod)
            return
        launcher = self._launch(command, member)
        try:
            yield Holder.of_process(launcher.pid, pod)
        finally:
            del self.launchers[member.name]
            _end(launcher)

    def _launch(self, command: Sequence[str], member: Member) -> _Launcher:
        log = LOGS / f"clean-{member.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.log"
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        program = _program(command[0], self.folder)
        with (
            os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output,
            self.starting,
        ):
            if self.stopped.is_set():
                raise KeyboardInterrupt
            self.launchers[member.name] = launcher = subprocess.Popen(
                [*_LAUNCHER, str(self.limits.seconds), program, *command[1:], member.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=self.folder,
                env=self._environment(member),
                start_new_session=True,
            )
        self.logs[member.name] = log
        return launcher

    def wipe(self, member: Member) -> str | None:
        """Run the command of a member's type until it ends well: None, or why the account is not clean."""
        command = self.command(member.type)
        if command is None:
            return f"no cleaner is configured for type {member.type}"
        failure = self._misidentified(member)
        if self.stopped.is_set():
            raise KeyboardInterrupt
        if failure is not None:
            return failure
        name = Path(command[0]).name
        typer.echo(f"· {member.name}: {name}, which writes to {self.logs[member.name]}", err=True)
        attempt = 1
        while (failure := self._run(name, self.launchers[member.name])) and attempt < self.limits.attempts:
            if self.is_over():
                break
            pause = f"tried again in {self.limits.cooldown:g} s ({attempt} of {self.limits.attempts})"
            typer.echo(f"· {member.name}: {failure}; {pause}", err=True)
            self.stopped.wait(self.limits.cooldown)
            attempt += 1
        return f"{failure}, {attempt} times" if failure and attempt > 1 else failure

    def _misidentified(self, member: Member) -> str | None:
        """Ask which account the credential opens: None for the member's own. What it says is not told."""
        command, account = command_of(self.identify, member.type), member.account_id
        if command is None or account is None:
            return None
        name = Path(command[0]).name
        with self.logs[member.name].open("ab") as log:
            try:
                answer = subprocess.run(
                    [_program(command[0], self.folder), *command[1:], member.name],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=self.folder,
                    env=self._environment(member),
                    timeout=min(self.limits.seconds, _IDENTIFY_SECONDS),
                    check=False,
                    start_new_session=True,
                )
            except subprocess.TimeoutExpired:
                return f"nothing was wiped: {name} did not answer in time"
            except OSError as error:
                return f"nothing was wiped: {name} could not be started: {error.strerror}"
        if answer.returncode:
            return f"nothing was wiped: {name} ended with exit code {answer.returncode}"
        if account_key(answer.stdout.decode(errors="replace").strip()) != account_key(account):
            return f"nothing was wiped: its credential opens another account than {account}"
        return None

    def _run(self, name: str, launcher: _Launcher) -> str | None:
        """Run a command once; raises KeyboardInterrupt when it was stopped, which says nothing of it."""
        answer = b""
        if launcher.stdin and launcher.stdout:
            with suppress(OSError, ValueError):  # it was let go, or ended
                launcher.stdin.write(b".")
                launcher.stdin.flush()
                answer = launcher.stdout.readline()
        if self.stopped.is_set() or not answer:
            raise KeyboardInterrupt
        failure = answer.decode().strip()
        return f"{name} {failure}" if failure else None

    def look(self, holder: Holder) -> bool | None:
        """Whether a holder is alive; where its processes cannot be seen, its pod is asked about."""
        alive = is_running(holder)
        return _is_pod_alive(holder.pod, self.where) if alive is None else alive

    def _environment(self, member: Member) -> dict[str, str]:
        ours = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
        target = self.where.target()
        kubeconfig = {"KUBECONFIG": str(Path(target.kubeconfig).resolve())} if target.kubeconfig else {}
        context = {"CREDFLEET_CONTEXT": target.context} if target.context else {}
        return {
            **ours,
            **kubeconfig,
            **context,
            "CREDFLEET_NAMESPACE": self.where.namespace,
            "CREDFLEET_TYPE": member.type,
        }


def clean(
    cleaner: Cleaner, cleaner_id: str, take_over: frozenset[str], *, account_type: str | None
) -> CommandResult:
    """Wipe every dirty account, and tell what became of each; exit code 1 when one was not wiped."""
    check(cleaner)
    pool = cleaner.where.open_existing(CLEANER)
    listed = pool.cleanable(cleaner_id, take_over=take_over, account_type=account_type, look=cleaner.look)
    if listed:
        helpless = sum(cleaner.command(member.type) is None for member in listed)
        also = f", and {helpless} without a cleaner quarantined" if helpless else ""
        names = ", ".join(member.name for member in listed)
        ask(f"Of {names}, {len(listed) - helpless} will be wiped{also}. Go on?", yes=cleaner.where.yes)
    try:
        with _stopped_by_signals():
            done = pool.clean(
                cleaner_id,
                cleaner.wipe,
                take_over=take_over,
                account_type=account_type,
                at_once=cleaner.limits.at_once,
                is_over=cleaner.is_over,
                stop=cleaner.stop,
                hold=cleaner.hold,
                look=cleaner.look,
            )
    finally:
        pool.flush()
    cleaned = [
        {
            "secretName": each.member,
            "outcome": str(each.outcome),
            "reason": each.reason,
            "log": str(cleaner.logs[each.member]) if each.member in cleaner.logs else None,
        }
        for each in done
    ]
    rows = [[cell or "" for cell in each.values()] for each in cleaned]
    columns = (
        Column("Account", names=True),
        "Outcome",
        Column("Reason", folds=True),
        Column("Log", leaves=1),
    )
    table = Table("Cleaned", columns, rows)
    outcomes = {each.outcome for each in done}
    failed = bool(outcomes - {Wiped.CLEANED, Wiped.RUNNING}) or outcomes == {Wiped.RUNNING}
    return CommandResult({"cleaned": cleaned}, [table if rows else "Nothing is dirty."], int(failed))


def command_of(commands: Mapping[str, Sequence[str]], account_type: str) -> Sequence[str] | None:
    """Return the command of a type: its own, else that of its cloud."""
    return commands.get(account_type) or commands.get(hyperscaler_of(account_type) or "")


def load_identify(stack: str) -> Mapping[str, Sequence[str]]:
    """Return the commands of a stack's `accountPool.identify`; raises as `settings_of`."""
    from operations.config.settings import settings_of

    section = settings_of(stack).account_pool
    return {} if section is None else section.identify


def load_commands(stack: str) -> tuple[Mapping[str, Sequence[str]], Path]:
    """Return the commands of a stack's `accountPool.cleaning`, and the folder they are relative to.

    Raises Misconfigured when it names none, or as `settings_of`.
    """
    from operations.config.settings import settings_of

    section = settings_of(stack).account_pool
    if section is None or not section.cleaning:
        raise Misconfigured(
            place="credfleet:accountPool.cleaning",
            problem=f"stack {stack} names no cleaner, so every dirty account would only be quarantined",
            fix=f"add a command for each type to Pulumi.{stack}.yaml, such as {{aws: [cleaners/aws.sh]}},"
            " or give --command",
        )
    return section.cleaning, Folders.find(Path.cwd()).project


def parse_commands(terms: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Read `TYPE=COMMAND` terms; raises Misused for one without both."""
    commands: dict[str, Sequence[str]] = {}
    for term in terms:
        account_type, _, command = term.partition("=")
        try:
            commands[account_type] = shlex.split(command)
        except ValueError:
            commands[account_type] = []
        if not account_type or not commands[account_type]:
            raise Misused(
                place=f"--command {term}",
                problem="it is not a type with a command as a shell would take it",
                fix="write --command aws=cleaners/aws.sh, once for each type",
            )
    return commands


def check(cleaner: Cleaner) -> None:
    """Raise Misconfigured for a program that is not there, before an account is quarantined for it."""
    for account_type, command in (*cleaner.commands.items(), *cleaner.identify.items()):
        if shutil.which(_program(command[0], cleaner.folder)) is None:
            raise Misconfigured(
                place=f"cleaner of {account_type}",
                problem=f"{command[0]} is no program that can be run here; nothing was touched",
                fix="correct the path (relative to the project), or make it executable",
            )


def _program(named: str, folder: Path) -> str:
    """Find a program as a shell in `folder` would: by PATH when it is a bare word."""
    return str((folder / named).resolve()) if "/" in named else named


def _let_go(launcher: _Launcher) -> None:
    """Let a launcher end with all that its command started."""
    if launcher.stdin:
        with suppress(OSError):
            launcher.stdin.close()


def _end(launcher: _Launcher) -> None:
    """Let a launcher go, and wait until it is over; its group outlives one that was killed."""
    _let_go(launcher)
    if launcher.stdout:
        launcher.stdout.read()
        launcher.stdout.close()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(launcher.pid, signal.SIGKILL)
    launcher.wait()


@contextmanager
def _stopped_by_signals() -> Generator[None]:
    """Let SIGTERM and SIGHUP stop what runs as Ctrl-C does, where they are not ignored, as by nohup."""
    heard = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) != signal.SIG_IGN]
    former = {each: signal.signal(each, signal.default_int_handler) for each in heard}
    try:
        yield
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)


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
