"""Recovery of a pool that came back from a backup: claims and accounts are bound again by tenant and name.

After a restore every record has a new uid, so no member carries its claim any more and every token looks
dead. Until this has run, everybody refuses the pool (decision 12).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from components.account_pool import changes
from components.account_pool.calls import Kind, Pause, Replace, Steps
from components.account_pool.judgement import may_take
from components.account_pool.model import Member, Phase, Record, Token
from components.account_pool.pool_settings import CONFIG_MAP, with_pool_uid
from components.account_pool.selection import RECORDS
from components.account_pool.steps import (
    change_member,
    get_member,
    get_record,
    list_all,
    read,
    record_of,
    replace_record,
    write,
)


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """Records by what became of them: bound again, still bound, or without their account."""

    rebound: tuple[str, ...]
    intact: tuple[str, ...]
    lost: tuple[str, ...]


def recover(namespace: str, *, dry_run: bool) -> Steps[RecoveryReport]:
    """Bind every claim to its member again, then sign the pool, so that claims go on."""
    bodies = yield from list_all(Kind.RECORD, RECORDS)
    rebound: list[str] = []
    intact: list[str] = []
    lost: list[str] = []
    for body in bodies:
        record = Record.parse(body)
        standing = yield from _recover(record.name, namespace, dry_run=dry_run)
        {"rebound": rebound, "intact": intact, "lost": lost}[standing].append(record.name)
    if not dry_run:
        yield from _sign()
    return RecoveryReport(tuple(rebound), tuple(intact), tuple(lost))


def _recover(name: str, namespace: str, *, dry_run: bool) -> Steps[str]:
    for attempt in count():
        if attempt:
            yield Pause(attempt - 1)
        record = yield from get_record(name)
        if record is None or record.phase is Phase.RELEASING:
            return "intact"
        member = yield from get_member(record.member)
        if member is not None and member.carries(record):
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
    """Whether the member is this tenant's by its label and no living claim is on it."""
    if record.partition.shared:
        return member.shared and (_stale(member, record) is not None or may_take(member, record))
    if member.shared or member.tenant != record.tenant_label:
        return False
    if member.token is None:
        return True
    _, alive = yield from record_of(member.token)
    return not alive


def _stale(member: Member, record: Record) -> Token | None:
    """Find the token this very record had before the restore."""
    return next((token for token in member.tokens if token.record == record.name), None)


def _sign() -> Steps[None]:
    for attempt in count():
        body = yield from read(Kind.RECORD, CONFIG_MAP)
        if body is None or (yield from write(Replace(Kind.RECORD, with_pool_uid(body)))) is not None:
            return
        yield Pause(attempt)
