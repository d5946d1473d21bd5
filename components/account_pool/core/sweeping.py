"""Repair of a pool: the sweep after crashes, and the recovery after a restore from a backup.

The sweep removes dead tokens from members and finishes interrupted operations. It is never required for
safety, and any number can run concurrently. Members are listed before records: a token on a member without a
record in the later list stays dead. In the other order, a claim made in between would look dead. After a
restore, every record has a new uid, so no member carries its claim and every token looks dead. Until the
recovery has bound claims and accounts again by tenant and name, every process rejects the pool.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from components.account_pool.core import changes
from components.account_pool.core.calls import Kind, Pause, Replace, Steps
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap, with_pool_uid
from components.account_pool.core.discrepancies import discrepancies, is_of
from components.account_pool.core.held_claims import finish
from components.account_pool.core.holders import holder_of
from components.account_pool.core.judgement import is_restored, may_take, misconfiguration
from components.account_pool.core.model import Member, Phase, State
from components.account_pool.core.records import Record
from components.account_pool.core.selection import MEMBERS, RECORDS
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.steps import (
    change_member,
    get_member,
    get_record,
    list_all,
    read,
    record_of,
    replace_record,
    write,
)
from components.account_pool.core.tokens import Token
from components.errors import Misconfigured, Problem

FREED_UNASKED = 5
"""Members that a sweep frees without a confirmation; more suggest a restored backup."""


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did or would do, and what it leaves to operators.

    `freed`: members, one entry for each dead token removed. `withheld`: one for each left, because there were
    more than allowed, or nothing was to be written. `finished`: releases finished, or to be finished.
    `aborted`: abandoned claims.
    """

    freed: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    aborted: tuple[str, ...] = ()
    findings: tuple[Problem, ...] = ()


def pending_records() -> Steps[Mapping[str, str]]:
    """Return the pending claims as record name → resourceVersion, to compare with a later read."""
    records = PoolSnapshot.of((), (yield from list_all(Kind.RECORD, RECORDS))).records
    return {r.name: r.resource_version for r in records if r.phase is Phase.PENDING}


def sweep(
    namespace: str, settings: PoolConfigMap, *, most: int, write: bool, pending: Mapping[str, str]
) -> Steps[SweepReport]:
    """Run one pass. `most`: maximum tokens to remove. `write`: if False, only report. `pending`: before."""
    bodies = yield from list_all(Kind.MEMBER, MEMBERS)  # (1)
    snapshot = PoolSnapshot.of(bodies, (yield from list_all(Kind.RECORD, RECORDS)))  # (2)
    records = {record.name: record for record in snapshot.records}
    orphans = [
        (member, token)
        for member in snapshot.members
        for token in (() if misconfiguration(member, settings.partition_keys) else member.tokens)
        if _is_dead(member, token, snapshot, records)
    ]
    found = tuple(member.name for member, _ in orphans)
    stale = [r for r in records.values() if pending.get(r.name) == r.resource_version]
    releasing = [r for r in records.values() if r.phase is Phase.RELEASING]
    findings = tuple(_findings(namespace, snapshot, settings))
    if not write:
        return SweepReport((), found, tuple(record.name for record in releasing), (), findings)
    freed: list[str] = []
    if len(orphans) <= most:
        for member, token in orphans:
            patch = changes.remove(member, token, records.get(token.record))
            if (yield from change_member(patch)) is not None:
                freed.append(member.name)
    finished: list[str] = []
    for record in releasing:  # (3)
        if (yield from _finish(record)):
            finished.append(record.name)
    aborted: list[str] = []
    for record in stale:
        given_up = yield from replace_record(replace(record, phase=Phase.RELEASING, holders={}), namespace)
        if given_up is not None and (yield from _finish(given_up)):
            aborted.append(record.name)
    withheld = () if len(orphans) <= most else found
    return SweepReport(tuple(freed), withheld, tuple(finished), tuple(aborted), findings)


def _is_dead(member: Member, token: Token, snapshot: PoolSnapshot, records: Mapping[str, Record]) -> bool:
    record = records.get(token.record)
    if token.record in snapshot.unreadable or is_restored(member, token, record):
        return False
    return record is None or not is_of(member, token, record)


def _findings(namespace: str, snapshot: PoolSnapshot, settings: PoolConfigMap) -> Iterator[Problem]:
    """(4) Yield what only operators can decide."""
    yield from discrepancies(snapshot, settings)
    keys = settings.partition_keys
    for member in snapshot.members:
        if wrong := misconfiguration(member, keys):
            yield Problem(
                f"Secret {member.name}",
                f"{wrong}; it can be neither claimed nor cleaned",
                "correct its labels and annotations with kubectl, or in the stack that declares it",
            )
        if member.state == State.CLEANING:
            where = f" on {holder}" if (holder := holder_of(member)) else ""
            yield Problem(
                f"Secret {member.name}",
                f"it is being cleaned{where}, and it is unknown whether its cleaner still works",
                "run that cleaner there again under its id; if that is impossible, run"
                f" `credfleet pool clean --take-over {member.name} -n {namespace}` with a new credential",
            )


def _finish(record: Record) -> Steps[bool]:
    """Finish a release; also False if its member is unreadable, which is reported for the member."""
    try:
        return (yield from finish(record))
    except Misconfigured:
        return False


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """Records by outcome: bound again, still bound, or without their account.

    `problems`: unreadable records and accounts, whose claims were not processed.
    """

    rebound: tuple[str, ...]
    intact: tuple[str, ...]
    lost: tuple[str, ...]
    problems: tuple[Problem, ...] = ()


def recover(namespace: str, *, dry_run: bool) -> Steps[RecoveryReport]:
    """Bind every claim to its member again, then add the uid to the pool, so that claims continue."""
    snapshot = PoolSnapshot.of((), (yield from list_all(Kind.RECORD, RECORDS)))
    problems = list(snapshot.problems)
    became: dict[str, list[str]] = {"rebound": [], "intact": [], "lost": []}
    for record in snapshot.records:
        try:
            standing = yield from _recover(record.name, namespace, dry_run=dry_run)
        except Misconfigured as error:
            problems.append(Problem(error.place, error.problem, error.fix))
            continue
        became[standing].append(record.name)
    if not dry_run:
        yield from _sign()
    return RecoveryReport(
        tuple(became["rebound"]), tuple(became["intact"]), tuple(became["lost"]), tuple(problems)
    )


def _recover(name: str, namespace: str, *, dry_run: bool) -> Steps[str]:
    for attempt in count():
        if attempt:
            yield Pause(attempt - 1)
        record = yield from get_record(name)
        if record is None or record.phase is Phase.RELEASING:
            return "intact"
        member = yield from get_member(record.member)
        if member is not None and record.is_carried_by(member):
            return "intact"
        if member is None or not (yield from _is_its_own(member, record)):
            return "intact" if record.phase is Phase.PENDING else "lost"
        if dry_run:
            return "rebound"
        stale = _stale(member, record)
        if stale is not None and stale.uid not in (record.uid, record.former_uid):
            former = yield from replace_record(replace(record, former_uid=stale.uid), namespace)
            if former is None:
                continue
            record = former
        if (yield from change_member(changes.rebind(member, record, stale))) is not None:
            return "rebound"
    raise AssertionError


def _is_its_own(member: Member, record: Record) -> Steps[bool]:
    """Return whether the member is in the pool, this tenant's, not being wiped, and without a live claim."""
    if not member.type or member.state == State.CLEANING:
        return False
    if record.partition.shared:
        return member.shared and (_stale(member, record) is not None or may_take(member, record))
    if member.shared or member.tenant != record.tenant_label:
        return False
    if member.token is None:
        return True
    _, alive = yield from record_of(member.token)
    return not alive


def _stale(member: Member, record: Record) -> Token | None:
    """Return the token that this record had before the restore."""
    return next((token for token in member.tokens if token.record == record.name), None)


def _sign() -> Steps[None]:
    for attempt in count():
        body = yield from read(Kind.RECORD, CONFIG_MAP)
        if body is None or (yield from write(Replace(Kind.RECORD, with_pool_uid(body)))) is not None:
            return
        yield Pause(attempt)
