"""Status of a pool: one entry per account, and counts per type and partition."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from components.account_pool.core.changes import is_given_up
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.consumers import refusal
from components.account_pool.core.discrepancies import discrepancies
from components.account_pool.core.holds import Holds
from components.account_pool.core.judgement import BY_TIME, Verdict, describe_end, judge, misconfiguration
from components.account_pool.core.keys import KEY_REASON, STATE_REASON, TENANT_ID
from components.account_pool.core.model import ClaimRequest, Member, Origin, Phase
from components.account_pool.core.records import Record
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.tokens import Token
from components.errors import Problem
from components.labels import BRING_YOUR_OWN


class AccountUse(StrEnum):
    """Use of an account; exactly one applies."""

    FREE = "free"
    RESTING = "resting"
    EXPIRING = "expiring"
    CLAIMED = "claimed"
    OWNED = "owned"
    SHARED = "shared"
    INTERNAL = "internal"
    DIRTY = "dirty"
    CLEANING = "cleaning"
    QUARANTINED = "quarantined"
    MISCONFIGURED = "misconfigured"


@dataclass(frozen=True, slots=True)
class SharedClaim:
    """One claim on a shared account; `tenant` is None if its record is gone."""

    tenant: str | None
    slot: str
    holders: tuple[str, ...] = ()
    since: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """Status of one account: owner, holders, timestamps as the API server recorded them, and reasons.

    `since`: start of its state, or of its claim if it has none. `key_ends`: expiry of its key, if known.
    `used`, `capacity`, `claims`: of a shared account. `retained`: kept by its tenant after the claim, but
    still the pool's. `brought`: by its tenant, which owns it permanently. `given_up`: decommissioned.
    `key_phase`, `key_reason`: phase of its rotation, and why it stopped.
    """

    secret_name: str
    type: str
    partition: str
    standing: AccountUse
    tenant: str | None = None
    slot: str | None = None
    holders: tuple[str, ...] = ()
    since: str = ""
    reason: str = ""
    key_ends: str = ""
    account_id: str | None = None
    used: int = 0
    capacity: int = 0
    claims: tuple[SharedClaim, ...] = ()
    retained: bool = False
    brought: bool = False
    given_up: bool = False
    key_phase: str | None = None
    key_reason: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """Accounts of a type and exclusive partition that a consumer has and could get.

    `has`, `most`: accounts of the type in all partitions, and the maximum; None if unlimited. `available`:
    free accounts of the partition, up to the quota.
    """

    consumer: str
    type: str
    partition: str
    has: int
    most: int | None
    available: int


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """All accounts by name, and counts of each use per (type, partition), including zeros.

    `problems`: of the pool, apart from its accounts. `holds`: parts that give out no new accounts. `shares`:
    of the named consumers, for what they can claim.
    """

    accounts: tuple[Account, ...]
    counts: Mapping[tuple[str, str], Mapping[AccountUse, int]]
    problems: tuple[Problem, ...] = ()
    holds: Holds = field(default_factory=Holds)
    shares: tuple[Share, ...] = ()


def status_of(snapshot: PoolSnapshot, settings: PoolConfigMap) -> PoolStatus:
    """Return the status of a pool."""
    by_name = {record.name: record for record in snapshot.records}
    accounts = [_account(member, by_name, snapshot.unreadable, settings) for member in snapshot.members]
    counters: dict[tuple[str, str], Counter[AccountUse]] = defaultdict(Counter)
    for account in accounts:
        counters[account.type, account.partition][account.standing] += 1
    counts = {key: {s: counter[s] for s in AccountUse} for key, counter in sorted(counters.items())}
    by_secret = sorted(accounts, key=lambda a: a.secret_name)
    problems, shares = tuple(discrepancies(snapshot, settings)), tuple(_shares(snapshot, settings, counts))
    return PoolStatus(tuple(by_secret), counts, problems, snapshot.holds, shares)


def _shares(
    snapshot: PoolSnapshot,
    settings: PoolConfigMap,
    counts: Mapping[tuple[str, str], Mapping[AccountUse, int]],
) -> Iterator[Share]:
    places = {
        str(place): place for m in snapshot.members if not (place := m.place(settings.partition_keys)).shared
    }
    held = Counter(
        (consumer.name, record.partition.type)
        for record in snapshot.records
        if record.phase is not Phase.RELEASING
        for consumer in settings.consumers
        if consumer.has(record)
    )
    for consumer in settings.consumers:
        for named, place in sorted(places.items(), key=lambda each: (each[1].type, each[0])):
            asked = ClaimRequest.at("", place, "", "", next(iter(consumer.holders), ""))
            if refusal(settings.consumers, asked) is None:
                has, most = held[consumer.name, place.type], consumer.quota_on(place)
                free = counts[place.type, named][AccountUse.FREE]
                left = free if most is None else min(free, max(0, most - has))
                yield Share(consumer.name, place.type, named, has, most, left)


def _account(
    member: Member, records: Mapping[str, Record], unreadable: frozenset[str], settings: PoolConfigMap
) -> Account:
    place = member.place(settings.partition_keys)
    judged = judge(member, place, "", records, unreadable=unreadable)
    if judged.verdict is Verdict.MISCONFIGURED:
        wrong = misconfiguration(member, settings.partition_keys) or ""
        bad = Account(member.name, member.type, str(place), AccountUse.MISCONFIGURED, reason=wrong)
        return replace(bad, key_phase=member.key_phase, key_reason=member.annotations.get(KEY_REASON, ""))
    is_by_time = judged.verdict in BY_TIME
    ends = describe_end(member) if member.key_ends_soon else ""
    told = (member.annotations.get(STATE_REASON), judged.why if is_by_time else ends)
    reason = "; ".join(filter(None, told))
    account = Account(
        secret_name=member.name,
        type=member.type,
        partition=str(place),
        standing=_standing(member, judged.verdict),
        since=member.state_since,
        reason=reason,
        key_ends=member.key_ends,
        account_id=member.account_id,
        given_up=is_given_up(member),
        brought=BRING_YOUR_OWN in member.annotations,
        key_phase=member.key_phase,
        key_reason=member.annotations.get(KEY_REASON, ""),
    )
    if member.shared:
        claims = tuple(_shared_claims(member, records))
        return replace(
            account,
            holders=tuple(holder for each in claims for holder in each.holders),
            used=len(claims),
            capacity=member.shared_capacity,
            claims=claims,
        )
    record = records.get(member.token.record) if member.token else None
    record = record if record is not None and record.token == member.token else None
    is_lost = record is None and judged.verdict in (Verdict.CLAIMED, Verdict.ORPHANED)
    return replace(
        account,
        tenant=record.tenant if record else member.annotations.get(TENANT_ID, member.tenant),
        slot=record.slot if record else None,
        holders=tuple(sorted(record.holders)) if record else (),
        since=member.state_since or (record.since if record else ""),
        reason=judged.why if is_lost else reason,
        retained=member.origin == Origin.RETAINED and member.token is None,
    )


def _shared_claims(member: Member, records: Mapping[str, Record]) -> Iterator[SharedClaim]:
    for text, consumer in sorted(member.shared_claims.items(), key=lambda each: each[1]):
        token = Token.parse(text, member.name)
        record = records.get(token.record)
        if record is None or record.token != token:
            yield SharedClaim(None, consumer)
        else:
            yield SharedClaim(record.tenant, record.slot, tuple(sorted(record.holders)), record.since)


def _standing(member: Member, verdict: Verdict) -> AccountUse:
    """Return the use of an account; a claim without a record no longer holds it."""
    if member.shared:
        return AccountUse(member.state or (verdict if verdict in BY_TIME else AccountUse.SHARED))
    if verdict is Verdict.ORPHANED:
        return AccountUse.CLAIMED if member.tenant is None else AccountUse.OWNED
    return AccountUse(verdict)
