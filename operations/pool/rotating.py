"""`credfleet pool rotate`: puts a second key of accounts into use, and revokes the former one on request."""

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
from typing import Final

from components.account_pool.core import rotation
from components.account_pool.core.calls import AskProgram, Steps, Told
from components.account_pool.core.cleaning import no_account
from components.account_pool.core.clock import data_written_at
from components.account_pool.core.holders import Holder, cleaning_token
from components.account_pool.core.keys import KEY_ID
from components.account_pool.core.model import KeyPhase, Member
from components.account_pool.core.pool import ROTATION
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.rotation import Run, key_digest
from components.errors import CredfleetError, Misconfigured, Misused, NotAllowed
from operations.cli.answer import CommandResult
from operations.cli.inputs import ask
from operations.cli.tables import Column, Table
from operations.pool import launching
from operations.pool.access import PoolTarget
from operations.pool.claims import check_types
from operations.pool.importing import read_value
from operations.pool.key_program import ByHand, KeyProgram
from operations.pool.options import RotationOptions

_RUN: Final = "rotation"
_COLUMNS: Final = {
    "secretName": Column("Account", names=True),
    "keyId": "Key in use",
    "phase": "Phase",
}
_SECONDS: Final = 300.0
"""Timeout of one run of the key program."""


class Doing(StrEnum):
    """What is done to the keys of accounts."""

    ROTATE = "rotate"
    COMPLETE = "complete"
    ABORT = "abort"
    ROLL_BACK = "roll-back"


_STEPS: Final[Mapping[Doing, Callable[[Run, str], Steps[Member]]]] = {
    Doing.ROTATE: rotation.rotate,
    Doing.COMPLETE: rotation.complete,
    Doing.ABORT: rotation.abort,
    Doing.ROLL_BACK: rotation.roll_back,
}
_QUESTIONS: Final = {
    Doing.ROTATE: "A second key of {} will be made and put in place of the first, which stays valid. Go on?",
    Doing.COMPLETE: "Every key of {} but the one in use will be revoked. Go on?",
    Doing.ABORT: "The second key of {}, which has no holder yet, will be revoked. Go on?",
    Doing.ROLL_BACK: "The former key of {} will be put back in place of the new one. Go on?",
}


@dataclass(frozen=True, slots=True)
class _Rotation:
    """What is done to keys, and by whom. given: the new credential; None if a program creates it."""

    where: PoolTarget
    doing: Doing
    programs: launching.Programs
    given: Mapping[str, str] | None
    take_over: frozenset[str]


def rotate(asked: RotationOptions, where: PoolTarget) -> CommandResult:
    """Continue the rotation of accounts one by one; failures do not stop the others.

    Raises Misused for options that exclude each other.
    """
    doing = [each for each in Doing if getattr(asked, each.name.lower(), False)]
    if len(doing) + asked.who > 1 or (asked.values is not None and (doing or asked.who)):
        raise Misused(
            place="credfleet pool rotate",
            problem="--complete, --abort, --roll-back, --who and --values exclude each other",
            fix="give one of them",
        )
    if asked.who:
        return _list_lagging(asked, where)
    programs = launching.load_programs(where.stack) if where.stack else launching.Programs({}, {}, Path.cwd())
    pool = where.open_existing(ROTATION)
    members = _chosen(asked, pool.members(), where.namespace)
    if asked.values is not None and len(members) != 1:
        raise Misused(place="--values", problem="it is the key of one account", fix="name that account alone")
    given = None if asked.values is None else read_value(asked.values, "given")
    rotation = _Rotation(where, (*doing, Doing.ROTATE)[0], programs, given, frozenset(asked.take_over or ()))
    if members:
        ask(_QUESTIONS[rotation.doing].format(", ".join(each.name for each in members)), yes=where.yes)
    keys: list[dict[str, str | None]] = []
    with pool.flushed():
        for member in members:
            keys.append(_one(pool, rotation, member))
    columns = {**_COLUMNS, "reason": Column("Reason", folds=True)}
    table = Table.of("Keys", columns, keys, empty="No account is meant.")
    return CommandResult({"keys": keys}, [table], int(any(each["reason"] for each in keys)))


def _chosen(asked: RotationOptions, members: Sequence[Member], namespace: str) -> list[Member]:
    """Return the selected accounts; raises Misused for none, and Misconfigured for an unknown name."""
    names, days, now = asked.accounts or (), asked.older_than, datetime.now(UTC)
    if not names and asked.type is None and days is None:
        raise Misused(
            place="ACCOUNT", problem="no account is named", fix="name accounts, --type or --older-than"
        )
    known = {member.name for member in members}
    if unknown := next((name for name in names if name not in known), None):
        raise no_account(unknown, namespace)
    check_types("--type", [asked.type] if asked.type else [], members)
    return [
        member
        for member in members
        if (not names or member.name in names)
        and asked.type in (None, member.type)
        and (days is None or _is_older(member, now - timedelta(days=days)))
    ]


def _list_lagging(asked: RotationOptions, where: PoolTarget) -> CommandResult:
    """Report holders of accounts in rotation that may still use the former key."""
    pool = where.for_a_look().open_existing()
    found = _chosen(asked, pool.members(), where.namespace)
    lagging = [
        {**_key_of(member, none=""), "holder": each.holder, "reason": each.why}
        for member in found
        if member.key_phase is not None
        for each in pool.lagging(member)
    ]
    also = {"holder": Column("Holder", folds=True), "reason": Column("Reason", folds=True)}
    none = "No holder may use a former key."
    table = Table.of("May use the former key", {**_COLUMNS, **also}, lagging, empty=none)
    return CommandResult({"lagging": lagging}, [table])


def _key_of(member: Member, none: str | None = None) -> dict[str, str | None]:
    """Return which key of an account is in use, and the phase of a rotation."""
    key_id, phase = member.annotations.get(KEY_ID) or none, member.key_phase and str(member.key_phase)
    return {"secretName": member.name, "keyId": key_id, "phase": phase}


def _one(pool: PoolOperator, asked: _Rotation, member: Member) -> dict[str, str | None]:
    try:
        # Its former key is not revoked yet. Without a given key, an interrupted run is continued.
        if member.key_phase == KeyPhase.DELIVERED and _is_another_given(pool, asked, member):
            raise _not_begun(asked, member)
        _refuse_without_program(pool, asked, member)
        with _program(asked, member) as (holder, answer, log):
            run = Run(
                asked.where.namespace,
                cleaning_token(_RUN, uuid.uuid4().hex, holder),
                uuid.uuid4().hex,
                partial(launching.look, where=asked.where),
                asked.take_over,
                log,
            )
            now = pool.rotate(_STEPS[asked.doing](run, member.name), answer)
        if _is_another_given(pool, asked, member):
            raise _not_begun(asked, now)
    except CredfleetError as error:
        now = pool.member(member.name) or member
        return {**_key_of(now), "reason": f"{error.problem} → {asked.where.advise(error.fix)}"}
    return {**_key_of(now), "phase": now.key_phase or "rotated", "reason": None}


def _is_another_given(pool: PoolOperator, asked: _Rotation, member: Member) -> bool:
    """Return whether a given key differs from the one in use; without one, no credential is read."""
    return asked.given is not None and asked.given != pool.credential(member.name)


def _refuse_without_program(pool: PoolOperator, asked: _Rotation, member: Member) -> None:
    """Raise NotAllowed before any write if a program created the key in use, but none is configured."""
    if member.key_phase is None or asked.doing not in (Doing.COMPLETE, Doing.ABORT):
        return
    is_by_hand = launching.command_of(asked.programs.keys, member.type) is None
    if is_by_hand and key_digest(pool.credential(member.name), member.uid) != member.annotations.get(KEY_ID):
        raise rotation.is_not_its_key(member)


def _not_begun(asked: _Rotation, member: Member) -> NotAllowed:
    return NotAllowed(
        place=f"account {member.name}",
        problem="its last rotation is not complete, so no other key was taken",
        fix=f"run `credfleet pool rotate {member.name} --complete -n {asked.where.namespace}`, or with"
        " --roll-back; then this again",
    )


@contextmanager
def _program(
    asked: _Rotation, member: Member
) -> Generator[tuple[Holder | None, Callable[[AskProgram], Told], str]]:
    """Start the key program of an account; yield the process that holds the account, it, and its log."""
    where, given, folder = asked.where, asked.given, asked.programs.folder
    command = launching.command_of(asked.programs.keys, member.type)
    if command is None:
        if given is None and asked.doing is Doing.ROTATE and member.key_phase is None:
            raise Misconfigured(
                place=f"account {member.name}",
                problem=f"no program makes keys for type {member.type}",
                fix="name one under accountPool.keys, or make the key yourself and add --values -",
            )
        yield (
            Holder.of_process(os.getpid(), launching.own_pod(where)),
            ByHand(given or {}, partial(ask, yes=where.yes)).ask,
            "",
        )
        return
    launcher, log = launching.launch("rotate", command, member, where, folder, seconds=_SECONDS)
    program = KeyProgram.of(command, folder, launcher)
    answer = program.ask if given is None else ByHand(given, partial(ask, yes=where.yes), program).ask
    try:
        yield Holder.of_process(launcher.pid, launching.own_pod(where)), answer, str(log)
    finally:
        launching.end(launcher)


def _is_older(member: Member, than: datetime) -> bool:
    written = data_written_at(member.managed)
    return written is not None and written < than
