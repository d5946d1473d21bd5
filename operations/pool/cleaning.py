"""`credfleet pool clean`: wipes dirty accounts by commands of the user's own.

A command gets the name of the account and nothing secret: what it needs of the credential it reads from the
Secret itself, by the kubeconfig it is told. Its output goes to a log of its own.
"""

import os
import shlex
import shutil
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Lock

import typer

from components.account_pool.core.calls import AskProgram, KeyVerb, Said, Told
from components.account_pool.core.cleaning import Wiped
from components.account_pool.core.holders import Holder
from components.account_pool.core.model import Member, account_key
from components.account_pool.core.pool import CLEANER, Pool
from components.errors import Misconfigured, Misused
from operations.cli.answer import CommandResult
from operations.cli.inputs import ask
from operations.cli.tables import Column, Table
from operations.pool.access import DEFAULT_STACK, WritablePoolOptions
from operations.pool.key_program import KeyProgram
from operations.pool.launching import (
    Launcher,
    Programs,
    Surroundings,
    command_of,
    end,
    find_program,
    let_go,
    load_programs,
    look,
    open_log,
    own_pod,
    run_once,
    stopped_by_signals,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a run may take on itself. at_once: accounts wiped in parallel.

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
    """Runs the command of an account's type. commands, keys: type or cloud → program and arguments.

    folder: where relative programs are. stopped: Ctrl-C was pressed, so nothing is begun or judged.
    """

    commands: Mapping[str, Sequence[str]]
    folder: Path
    where: WritablePoolOptions
    limits: Limits
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    began: float = field(default_factory=time.monotonic)
    logs: dict[str, Path] = field(default_factory=dict[str, Path])
    stopped: Event = field(default_factory=Event)
    launchers: dict[str, Launcher] = field(default_factory=dict[str, Launcher])
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
                let_go(launcher)

    @contextmanager
    def hold(self, member: Member) -> Generator[Holder | None]:
        """Start what will run the command of a member, before the member is taken: the launcher holds it.

        It ends when this process does, and not before all is dead that the command started.
        """
        command, pod = self.command(member.type), own_pod(self.where)
        if command is None:
            yield Holder.of_process(os.getpid(), pod)
            return
        launcher = self._launch(command, member)
        try:
            yield Holder.of_process(launcher.pid, pod)
        finally:
            del self.launchers[member.name]
            end(launcher)

    def _launch(self, command: Sequence[str], member: Member) -> Launcher:
        self.logs[member.name], output = open_log("clean", member)
        with os.fdopen(output, "ab"), self.starting:
            if self.stopped.is_set():
                raise KeyboardInterrupt
            around = Surroundings(self.folder, self.where, self.limits.seconds)
            launcher = around.launch(command, member, output)
            self.launchers[member.name] = launcher
        return launcher

    def wipe(self, pool: Pool, member: Member) -> str | None:
        """Run the command of a member's type until it ends well: None, or why the account is not clean."""
        command = self.command(member.type)
        if command is None:
            return f"no cleaner is configured for type {member.type}"
        failure = self._misidentified(pool, member)
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

    def _misidentified(self, pool: Pool, member: Member) -> str | None:
        """Ask which account the credential opens: None for the member's own. What it says is not told."""
        account = member.account_id
        if command_of(self.keys, member.type) is None or account is None:
            return None
        told = self.ask(AskProgram(KeyVerb.IDENTIFY, member, "", pool.credential(member.name)))
        if told.said is not Said.DONE:
            return f"nothing was wiped: {told.problem}"
        if account_key(told.account_id) != account_key(account):
            return f"nothing was wiped: its credential opens another account than {account}"
        return None

    def ask(self, asked: AskProgram) -> Told:
        """Ask the program for keys of a type; raises KeyboardInterrupt when it was stopped."""
        command = command_of(self.keys, asked.member.type)
        if command is None:
            return Told(Said.UNKNOWN, f"no program makes keys for type {asked.member.type}")
        told = KeyProgram.of(command, self.folder, self.launchers[asked.member.name]).ask(asked)
        if self.stopped.is_set():
            raise KeyboardInterrupt
        return told

    def _run(self, name: str, launcher: Launcher) -> str | None:
        """Run a command once; raises KeyboardInterrupt when it was stopped, which says nothing of it."""
        failure = run_once(launcher, "")
        if self.stopped.is_set() or failure is None:
            raise KeyboardInterrupt
        return f"{name} {failure}" if failure else None

    def look(self, holder: Holder) -> bool | None:
        """Whether a holder is alive."""
        return look(holder, self.where)


def clean(
    cleaner: Cleaner, cleaner_id: str, take_over: frozenset[str], *, account_type: str | None
) -> CommandResult:
    """Wipe every dirty account, and tell what became of each; exit code 1 when one was not wiped."""
    check(cleaner)
    pool = cleaner.where.open_existing(CLEANER)
    listed = pool.cleanable(cleaner_id, take_over=take_over, account_type=account_type, look=cleaner.look)
    for each in listed:
        if each.needs_new_key and command_of(cleaner.keys, each.type) is None:
            raise Misconfigured(
                place=f"account {each.name}",
                problem=f"it is not free without a new key, and no program makes one for type {each.type}",
                fix="name the stack with --stack, and a program for it under accountPool.keys",
            )
    if listed:
        helpless = sum(cleaner.command(member.type) is None for member in listed)
        also = f", and {helpless} without a cleaner quarantined" if helpless else ""
        names = ", ".join(member.name for member in listed)
        ask(f"Of {names}, {len(listed) - helpless} will be wiped{also}. Go on?", yes=cleaner.where.yes)
    try:
        with stopped_by_signals():
            done = pool.clean(
                cleaner_id,
                partial(cleaner.wipe, pool),
                take_over=take_over,
                account_type=account_type,
                at_once=cleaner.limits.at_once,
                is_over=cleaner.is_over,
                stop=cleaner.stop,
                hold=cleaner.hold,
                look=cleaner.look,
                ask=cleaner.ask,
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


def load_commands(stack: str) -> Programs:
    """Return the programs of a stack; raises Misconfigured when it names no cleaner, or as `settings_of`."""
    programs = load_programs(stack)
    if not programs.cleaning:
        raise Misconfigured(
            place="credfleet:accountPool.cleaning",
            problem=f"stack {stack} names no cleaner, so every dirty account would only be quarantined",
            fix=f"add accountPool.cleaning to Pulumi.{stack}.yaml, such as {{aws: [cleaners/aws.sh]}},"
            " or give --command",
        )
    return programs


def commands_of_pool(stack: str | None, namespace: str) -> Programs:
    """Return the programs of a stack, or of the default one if the pool is its.

    Raises Misused when the pool is not the default stack's, and as `load_commands`.
    """
    from operations.config.settings import settings_of

    section = settings_of(DEFAULT_STACK).account_pool if stack is None else None
    if section is not None and section.namespace != namespace:
        raise Misused(
            place="--stack",
            problem=f"pool {namespace} is not that of stack {DEFAULT_STACK}, whose commands would clean it",
            fix="name the stack of the pool with --stack, or give --command",
        )
    return load_commands(stack or DEFAULT_STACK)


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
    for account_type, command in (*cleaner.commands.items(), *cleaner.keys.items()):
        if shutil.which(find_program(command[0], cleaner.folder)) is None:
            raise Misconfigured(
                place=f"cleaner of {account_type}",
                problem=f"{command[0]} is not a program that can be run here; nothing was touched",
                fix="correct the path (relative to the project), or make it executable",
            )
