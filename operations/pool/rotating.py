"""`credfleet pool rotate`: a second key for accounts, into use, and the former one revoked when told so."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from components.account_pool.core import rotation
from components.account_pool.core.calls import AskProgram, Steps, Told
from components.account_pool.core.cleaning import no_account
from components.account_pool.core.clock import data_written_at
from components.account_pool.core.holders import Holder, cleaning_token
from components.account_pool.core.keys import KEY_ID
from components.account_pool.core.model import Member
from components.account_pool.core.pool import ROTATION, Pool
from components.account_pool.core.rotation import Run
from components.errors import CredfleetError, Misconfigured, Misused
from operations.cli.answer import CommandResult
from operations.cli.inputs import ask
from operations.cli.tables import Column, Table
from operations.pool.access import WritablePoolOptions
from operations.pool.importing import read_value
from operations.pool.key_program import ByHand, KeyProgram
from operations.pool.launching import (
    Surroundings,
    command_of,
    end,
    look,
    open_log,
    own_pod,
    stopped_by_signals,
)

Commands: TypeAlias = Mapping[str, Sequence[str]]

_RUN: Final = "rotation"
_SECONDS: Final = 300.0
"""How long the program may take at a time."""


class Doing(StrEnum):
    """What is done to the keys of accounts."""

    ROTATE = "rotate"
    COMPLETE = "complete"
    ABORT = "abort"
    ROLL_BACK = "roll-back"


_QUESTIONS: Final = {
    Doing.ROTATE: "A second key of {} will be made and put in place of the first, which stays valid. Go on?",
    Doing.COMPLETE: "Every key of {} but the one in use will be revoked. Go on?",
    Doing.ABORT: "The second key of {}, which has no holder yet, will be revoked. Go on?",
    Doing.ROLL_BACK: "The former key of {} will be put back in place of the new one. Go on?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which accounts are meant: by name, or all of a type, or whose key is so many days old."""

    names: Sequence[str] = ()
    account_type: str | None = None
    days: int | None = None

    def of(self, members: Sequence[Member], now: datetime, namespace: str) -> list[Member]:
        """Pick them; raises Misused for none, and Misconfigured for a name that no account has."""
        if not self.names and self.account_type is None and self.days is None:
            raise Misused(
                place="ACCOUNT", problem="no account is named", fix="name accounts, --type or --older-than"
            )
        known = {member.name: member for member in members}
        for name in self.names:
            if name not in known:
                raise no_account(name, namespace)
        return [
            member
            for member in members
            if (not self.names or member.name in self.names)
            and self.account_type in (None, member.type)
            and (self.days is None or _is_older(member, now - timedelta(days=self.days)))
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """What a command line says. values: where the new credential is, None to have it made."""

    doing: Doing
    commands: Commands
    folder: Path
    values: str | None = None
    take_over: frozenset[str] = frozenset()


def rotate(where: WritablePoolOptions, chosen: Chosen, asked: Rotation) -> CommandResult:
    """Go on with the keys of accounts, one after the other; one that fails stops no other."""
    pool = where.open_existing(ROTATION)
    members = chosen.of(pool.members(), datetime.now(UTC), where.namespace)
    if asked.values is not None and len(members) != 1:
        raise Misused(place="--values", problem="it is the key of one account", fix="name that account alone")
    given = None if asked.values is None else read_value(asked.values, "given")
    if members:
        ask(_QUESTIONS[asked.doing].format(", ".join(each.name for each in members)), yes=where.yes)
    rows: list[tuple[str, str, str, str]] = []
    try:
        with stopped_by_signals():
            for member in members:
                rows.append(_one(pool, where, asked, member, given))
    finally:
        pool.flush()
    names = ("secretName", "keyId", "phase", "reason")
    document = [{name: cell or None for name, cell in zip(names, row, strict=True)} for row in rows]
    columns = (Column("Account", names=True), "Key in use", "Phase", Column("Reason", folds=True))
    table = Table("Keys", columns, rows)
    failed = any(reason for *_, reason in rows)
    return CommandResult({"keys": document}, [table if rows else "No account is meant."], int(failed))


def who(where: WritablePoolOptions, chosen: Chosen) -> CommandResult:
    """Tell who holds accounts whose key is being rotated, and may still use the former one."""
    pool = where.for_a_look().open_existing()
    found = chosen.of(pool.members(), datetime.now(UTC), where.namespace)
    members = [each for each in found if each.key_phase is not None]
    rows = [
        (member.name, member.annotations.get(KEY_ID, ""), str(member.key_phase), each.holder, each.why)
        for member in members
        for each in pool.lagging(member)
    ]
    names = ("secretName", "keyId", "phase", "holder", "reason")
    document = [dict(zip(names, row, strict=True)) for row in rows]
    columns = (
        Column("Account", names=True),
        "Key in use",
        "Phase",
        Column("Holder", folds=True),
        Column("Reason", folds=True),
    )
    table = Table("May use the former key", columns, rows)
    return CommandResult({"lagging": document}, [table if rows else "No holder may use a former key."])


def _one(
    pool: Pool, where: WritablePoolOptions, asked: Rotation, member: Member, given: Mapping[str, str] | None
) -> tuple[str, str, str, str]:
    try:
        with _program(where, asked, member, given) as (holder, answer):
            run = Run(
                where.namespace,
                cleaning_token(_RUN, uuid.uuid4().hex, holder),
                uuid.uuid4().hex,
                partial(look, where=where),
                asked.take_over,
            )
            now = pool.rotate(_steps(asked, run, member.name), answer)
    except CredfleetError as error:
        now = pool.member(member.name) or member
        fix = where.advise(error.fix)
        return member.name, now.annotations.get(KEY_ID, ""), now.key_phase or "", f"{error.problem} → {fix}"
    return now.name, now.annotations.get(KEY_ID, ""), now.key_phase or "rotated", ""


def _steps(asked: Rotation, run: Run, name: str) -> Steps[Member]:
    match asked.doing:
        case Doing.ROTATE:
            return rotation.rotate(run, name)
        case Doing.COMPLETE:
            return rotation.complete(run, name)
        case Doing.ABORT:
            return rotation.abort(run, name)
        case Doing.ROLL_BACK:
            return rotation.roll_back(run, name)


@contextmanager
def _program(
    where: WritablePoolOptions, asked: Rotation, member: Member, given: Mapping[str, str] | None
) -> Generator[tuple[Holder | None, Callable[[AskProgram], Told]]]:
    """Start what answers for the keys of an account, and name the process that holds it meanwhile."""
    command = command_of(asked.commands, member.type)
    if command is None:
        if given is None and asked.doing is Doing.ROTATE and member.key_phase is None:
            raise Misconfigured(
                place=f"account {member.name}",
                problem=f"no program makes keys for type {member.type}",
                fix="name one under accountPool.keys, or make the key yourself and add --values -",
            )
        yield (
            Holder.of_process(os.getpid(), own_pod(where)),
            ByHand(given or {}, partial(ask, yes=where.yes)).ask,
        )
        return
    _, output = open_log("rotate", member)
    with os.fdopen(output, "ab"):
        launcher = Surroundings(asked.folder, where, _SECONDS).launch(command, member, output)
    program = KeyProgram.of(command, asked.folder, launcher)
    answer = program.ask if given is None else ByHand(given, partial(ask, yes=where.yes), program).ask
    try:
        yield Holder.of_process(launcher.pid, own_pod(where)), answer
    finally:
        end(launcher)


def _is_older(member: Member, than: datetime) -> bool:
    written = data_written_at(member.managed)
    return written is not None and written < than
