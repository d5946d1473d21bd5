"""How a pool stands: one line per account, and counts per type and partition."""

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
    """What an account is to the pool at this moment; exactly one of them."""

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
    """One claim on a shared account; no tenant where nothing tells whose it is, since its record is gone."""

    tenant: str | None
    slot: str
    holders: tuple[str, ...] = ()
    since: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """One account: what it is, whose it is, who uses it, since when (as the API server wrote it), and why.

    since: of its state, where it has one, else of its claim. key_ends: when its key ends, where it is known.
    used, capacity, claims: of a shared account. retained: its tenant's after its claim, yet the pool's.
    brought: by its tenant, whose it is for good.
    given_up: decommissioned. key_phase, key_reason: how far the rotation of its key is, and why it stays.
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
    """What a consumer that the pool names has, and could get, of a type and partition that is not shared.

    has, most: accounts of the type in all partitions, and how many it may have; None for any number.
    available: what is free of the partition, as far as its quota goes.
    """

    consumer: str
    type: str
    partition: str
    has: int
    most: int | None
    available: int


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """All accounts by name, and per (type, partition) how many stand how, zeros included.

    problems: what is wrong with the pool beside its accounts. holds: where it gives none.
    shares: of the consumers that the pool names, of what they may claim.
    """

    accounts: tuple[Account, ...]
    counts: Mapping[tuple[str, str], Mapping[AccountUse, int]]
    problems: tuple[Problem, ...] = ()
    holds: Holds = field(default_factory=Holds)
    shares: tuple[Share, ...] = ()


def status_of(snapshot: PoolSnapshot, settings: PoolConfigMap) -> PoolStatus:
    """Return how a pool stands."""
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
    """Return what an account is to the pool; a claim that is gone holds nothing any more."""
    if member.shared:
        return AccountUse(member.state or (verdict if verdict in BY_TIME else AccountUse.SHARED))
    if verdict is Verdict.ORPHANED:
        return AccountUse.CLAIMED if member.tenant is None else AccountUse.OWNED
    return AccountUse(verdict)
