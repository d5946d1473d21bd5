"""`credfleet pool clean`: cleans dirty accounts with the user's own commands.

A command gets the account's name and no secret: it reads the credential from the Secret with the kubeconfig
that it is given. Its output goes to its own log.
"""

import os
import shlex
import shutil
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Lock

import typer

from components.account_pool.core.calls import AskProgram, KeyVerb, Said, Told
from components.account_pool.core.cleaning import Wiped, no_account
from components.account_pool.core.holders import Holder
from components.account_pool.core.model import Member, account_key
from components.account_pool.core.pool import CLEANER
from components.account_pool.core.pool_operator import PoolOperator
from components.cluster_target import configuration_of
from components.errors import CredfleetError, Misconfigured, Misused
from operations.cli.answer import CommandResult
from operations.cli.inputs import ask
from operations.cli.tables import Column, Table
from operations.pool import launching
from operations.pool.access import DEFAULT_STACK, PoolOptions, PoolTarget
from operations.pool.claims import check_types, seconds
from operations.pool.key_program import KeyProgram
from operations.pool.options import CleaningOptions


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Runs the cleaning command of an account's type.

    timeout: seconds for one command. within: seconds after which none is started. cooldown: seconds between
    two attempts. stopped: by a signal; then nothing is started or judged.
    """

    programs: launching.Programs
    where: PoolTarget
    attempts: int
    timeout: float
    within: float
    cooldown: float
    began: float = field(default_factory=time.monotonic)
    logs: dict[str, Path] = field(default_factory=dict[str, Path])
    stopped: Event = field(default_factory=Event)
    launchers: dict[str, launching.Launcher] = field(default_factory=dict[str, launching.Launcher])
    starting: Lock = field(default_factory=Lock)

    def command(self, account_type: str) -> Sequence[str] | None:
        """Return the command for a type, or else for its cloud."""
        return launching.command_of(self.programs.cleaning, account_type)

    def is_over(self) -> bool:
        """Return whether the time of the run is over, or it was stopped."""
        return self.stopped.is_set() or time.monotonic() - self.began >= self.within

    def stop(self) -> None:
        """End all running commands, and start no others; the next run handles their accounts."""
        self.stopped.set()
        with self.starting:
            for launcher in [*self.launchers.values()]:
                launching.let_go(launcher)

    @contextmanager
    def hold(self, member: Member) -> Generator[Holder | None]:
        """Start the launcher for a member's command before the member is taken, and yield it as holder.

        It ends when this process does, but only after everything that the command started.
        """
        command, pod = self.command(member.type), launching.own_pod(self.where)
        if command is None:
            yield Holder.of_process(os.getpid(), pod)
            return
        with self.starting:
            if self.stopped.is_set():
                raise KeyboardInterrupt
            launcher, self.logs[member.name] = launching.launch(
                "clean", command, member, self.where, self.programs.folder, seconds=self.timeout
            )
            self.launchers[member.name] = launcher
        try:
            yield Holder.of_process(launcher.pid, pod)
        finally:
            del self.launchers[member.name]
            launching.end(launcher)

    def wipe(self, pool: PoolOperator, member: Member) -> str | None:
        """Run the command for a member; return None on success, otherwise why the account is not clean."""
        command = self.command(member.type)
        if command is None:
            return f"no cleaner is configured for type {member.type}"
        failure = self._misidentified(pool, member)
        if failure is not None:
            return failure
        name = launching.name_of(command)
        typer.echo(f"· {member.name}: {name}, which writes to {self.logs[member.name]}", err=True)
        attempt = 1
        while (failure := self._run(name, self.launchers[member.name])) and attempt < self.attempts:
            if self.is_over():
                break
            pause = f"tried again in {self.cooldown:g} s ({attempt} of {self.attempts})"
            typer.echo(f"· {member.name}: {failure}; {pause}", err=True)
            self.stopped.wait(self.cooldown)
            attempt += 1
        return f"{failure}, {attempt} times" if failure and attempt > 1 else failure

    def _misidentified(self, pool: PoolOperator, member: Member) -> str | None:
        """Return why the credential is not known to open the member's account; None if it does."""
        account = member.account_id
        if launching.command_of(self.programs.keys, member.type) is None or account is None:
            return None
        told = self.ask(AskProgram(KeyVerb.IDENTIFY, member, "", pool.credential(member.name)))
        if told.said is not Said.DONE:
            return f"nothing was wiped: {told.problem}"
        if account_key(told.account_id) != account_key(account):
            return f"nothing was wiped: its credential opens another account than {account}"
        return None

    def ask(self, asked: AskProgram) -> Told:
        """Ask the key program of a type; raises KeyboardInterrupt if stopped."""
        command = launching.command_of(self.programs.keys, asked.member.type)
        if command is None:
            return Told(Said.UNKNOWN, f"no program makes keys for type {asked.member.type}")
        launcher = self.launchers[asked.member.name]
        told = KeyProgram.of(command, self.programs.folder, launcher).ask(asked)
        if self.stopped.is_set():
            raise KeyboardInterrupt
        return told

    def _run(self, name: str, launcher: launching.Launcher) -> str | None:
        """Run a command once; raises KeyboardInterrupt if stopped, as its result means nothing then."""
        failure = launching.run_once(launcher, "")
        if self.stopped.is_set() or failure is None:
            raise KeyboardInterrupt
        return f"{name} {failure}" if failure else None

    def look(self, holder: Holder) -> bool | None:
        """Return whether a holder is alive."""
        return launching.look(holder, self.where)


def clean(options: CleaningOptions, where: PoolTarget) -> CommandResult:
    """Clean every dirty account and report the outcomes; exit code 1 if one was not cleaned."""
    cleaner = Cleaner(
        _programs(options, where),
        where,
        options.attempts,
        seconds(options.timeout, option="--timeout", least=1),
        seconds(options.within, option="--within"),
        seconds(options.cooldown, option="--cooldown"),
    )
    check(cleaner.programs)
    pool, keys = where.open_existing(CLEANER), cleaner.programs.keys
    take_over = frozenset(options.take_over or ())
    if options.commands or options.type or take_over:
        _refuse_unknown(options, take_over, pool)
    listed = pool.cleanable(
        options.cleaner, take_over=take_over, account_type=options.type, look=cleaner.look
    )
    for each in listed:
        if each.needs_new_key and launching.command_of(keys, each.type) is None:
            raise Misconfigured(
                place=f"account {each.name}",
                problem=f"it is not free without a new key, and no program makes one for type {each.type}",
                fix="name the stack with --stack, and a program for it under accountPool.keys",
            )
    if listed:
        helpless = sum(cleaner.command(member.type) is None for member in listed)
        also = f", and {helpless} without a cleaner quarantined" if helpless else ""
        names = ", ".join(member.name for member in listed)
        ask(f"Of {names}, {len(listed) - helpless} will be wiped{also}. Go on?", yes=where.yes)
    with pool.flushed():
        done = pool.clean(
            options.cleaner,
            partial(cleaner.wipe, pool),
            take_over=take_over,
            account_type=options.type,
            at_once=options.at_once,
            is_over=cleaner.is_over,
            stop=cleaner.stop,
            hold=cleaner.hold,
            look=cleaner.look,
            ask=cleaner.ask,
        )
    cleaned = [
        {
            "secretName": each.member,
            "outcome": str(each.outcome),
            "reason": each.reason and where.advise(each.reason),
            "log": str(cleaner.logs[each.member]) if each.member in cleaner.logs else None,
        }
        for each in done
    ]
    columns = {
        "secretName": Column("Account", names=True),
        "outcome": "Outcome",
        "reason": Column("Reason", folds=True),
        "log": Column("Log", leaves=1),
    }
    table = Table.of("Cleaned", columns, cleaned, empty="Nothing is dirty.")
    outcomes = {each.outcome for each in done}
    failed = bool(outcomes - {Wiped.CLEANED, Wiped.RUNNING}) or outcomes == {Wiped.RUNNING}
    return CommandResult({"cleaned": cleaned}, [table], int(failed))


def _refuse_unknown(options: CleaningOptions, take_over: Collection[str], pool: PoolOperator) -> None:
    """Raise Misused for a type of no cloud or account, Misconfigured for an account that does not exist."""
    members = pool.members()
    check_types("--command", parse_commands(options.commands or ()), members)
    check_types("--type", [options.type] if options.type else [], members)
    for name in sorted({*take_over} - {each.name for each in members}):
        raise no_account(name, pool.namespace)


def load_commands(stack: str) -> launching.Programs:
    """Return the programs of a stack; raises Misconfigured if it has no cleaner, or as `settings_of`."""
    programs = launching.load_programs(stack)
    if not programs.cleaning:
        raise Misconfigured(
            place="credfleet:accountPool.cleaning",
            problem=f"stack {stack} names no cleaner, so every dirty account would only be quarantined",
            fix=f"add accountPool.cleaning to Pulumi.{stack}.yaml, such as {{aws: [cleaners/aws.sh]}},"
            " or give --command",
        )
    return programs


def _programs(options: CleaningOptions, where: PoolTarget) -> launching.Programs:
    """Return the given commands, otherwise the pool's programs; raises as `parse_commands` and others."""
    if not options.commands:
        return commands_of_pool(where)
    keys = launching.load_programs(where.stack).keys if where.stack else {}
    return launching.Programs(parse_commands(options.commands), keys, Path.cwd())


def commands_of_pool(where: PoolTarget) -> launching.Programs:
    """Return the programs of the pool's stack, or those of the default stack if the pool is its pool.

    Raises Misused if the pool is not that of the default stack, and as `load_commands`.
    """
    from operations.config.settings import settings_of

    if where.stack is not None or settings_of(DEFAULT_STACK).account_pool is None:
        return load_commands(where.stack or DEFAULT_STACK)
    own = PoolOptions(stack=DEFAULT_STACK, kubeconfig=where.kubeconfig).resolve()
    if own.namespace != where.namespace or not _is_one_cluster(own, where):
        raise Misused(
            place="--stack",
            problem=f"the pool is not that of stack {DEFAULT_STACK}, whose commands would clean it",
            fix="name the stack of the pool with --stack, or give --command",
        )
    return load_commands(DEFAULT_STACK)


def _is_one_cluster(one: PoolTarget, other: PoolTarget) -> bool:
    """Return whether two pools have the same cluster address according to their kubeconfigs."""
    try:
        targets = {one.target(), other.target()}
        return len(targets) == 1 or len({configuration_of(each).host for each in targets}) == 1
    except CredfleetError:
        return False


def parse_commands(terms: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Parse `TYPE=COMMAND` terms; raises Misused for an incomplete one."""
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


def check(programs: launching.Programs) -> None:
    """Raise Misconfigured for a missing program before an account is quarantined because of it."""
    for account_type, command in (*programs.cleaning.items(), *programs.keys.items()):
        if shutil.which(launching.find_program(command[0], programs.folder)) is None:
            raise Misconfigured(
                place=f"cleaner of {account_type}",
                problem=f"{command[0]} is not a program that can be run here; nothing was touched",
                fix="correct the path (relative to the project), or make it executable",
            )
