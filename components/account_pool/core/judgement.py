"""The only place that decides whether a claim can take a member, and if not, why.

Claims, the forecast, explanations, the status and the review of a configuration all call `judge`. Label
selectors (`selection.py`) select a superset of the members that `judge` accepts; `selection.py` also orders
them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from components.account_pool.core.holds import Holds, describe_hold
from components.account_pool.core.keys import INTERNAL, POOL_STATE, STATE_REASON, TENANT_ID
from components.account_pool.core.model import Member, Partition, Phase, State
from components.account_pool.core.records import Record
from components.account_pool.core.tokens import Token
from components.errors import Misconfigured
from components.labels import SHARED, TENANT_NAME

_KYMA_LABELS: Final = ("dirty", "shared", "cleaning", "quarantined", "tenantName", "euAccess", "internal")
"""Labels of Kyma's own pools. If a pool does not use these label names, an account with such a label
belongs to another pool or is half migrated, so it can be neither claimed nor cleaned."""


class Verdict(StrEnum):
    """Verdict on a member for a claim that has no account yet.

    Accepted: OWN: its tenant's, and unused. FREE: without owner. ROOM: shared, with capacity left. CLAIMED:
    carries a claim. ORPHANED: carries a deleted claim. OWNED: by another tenant. RESTING: no owner, but not
    given out again yet. EXPIRING: no owner, but its key expires soon. HELD: would be accepted, but the pool
    gives out no new accounts.
    """

    OWN = "own"
    FREE = "free"
    ROOM = "room"
    MISCONFIGURED = "misconfigured"
    ELSEWHERE = "elsewhere"
    DIRTY = "dirty"
    CLEANING = "cleaning"
    QUARANTINED = "quarantined"
    FULL = "full"
    CLAIMED = "claimed"
    ORPHANED = "orphaned"
    OWNED = "owned"
    INTERNAL = "internal"
    RESTING = "resting"
    EXPIRING = "expiring"
    HELD = "held"


NONE_OF_TYPE: Final = "the pool has no account of this type"
"""Text in place of the counts if the pool has nothing to count."""

BY_TIME: Final = frozenset({Verdict.RESTING, Verdict.EXPIRING})
"""Verdicts of accounts without an owner that a time keeps unassigned: end of a rest, or of a key."""

_TAKEN: Final = frozenset({Verdict.OWN, Verdict.FREE, Verdict.ROOM})


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict and its reason as text."""

    verdict: Verdict
    why: str

    @property
    def takes(self) -> bool:
        """Whether the claim can take the member, at the resourceVersion it was read with."""
        return self.verdict in _TAKEN


def judge(
    member: Member,
    partition: Partition,
    owner: str,
    records: Mapping[str, Record] | None = None,
    *,
    unreadable: Container[str] = (),
    holds: Holds | None = None,
) -> Judgement:
    """Judge a member for a claim of this partition.

    `owner`: label value of the claiming tenant; empty for no claim in particular. `records`: all records by
    name, if read after the member; deleted claims are then distinguished from live ones. `unreadable`: names
    of unreadable records. `holds`: of the pool, if the claim is new.
    """
    judged = next(_judgements(member, partition, owner, records, unreadable))
    if holds and judged.takes and (hold := holds.on(partition)):
        return Judgement(Verdict.HELD, f"{judged.why}, but {describe_hold(*hold)}")
    return judged


def _judgements(
    member: Member,
    partition: Partition,
    owner: str,
    records: Mapping[str, Record] | None,
    unreadable: Container[str],
) -> Iterator[Judgement]:
    """Yield every reason not to take the member, most severe first; the last item accepts it."""
    keys = [key for key, _ in partition.values]
    if wrong := misconfiguration(member, keys):
        yield Judgement(Verdict.MISCONFIGURED, f"misconfigured: {wrong}")
    if (place := member.place(keys)) != partition:
        yield Judgement(Verdict.ELSEWHERE, f"in another part of the pool: {place}")
    if member.state is not None:
        yield Judgement(Verdict(member.state), _state_in_words(member))
    if member.shared:
        used = f"{len(member.shared_claims)} of {member.shared_capacity} claims on it"
        if len(member.shared_claims) >= member.shared_capacity:
            yield Judgement(Verdict.FULL, f"full: {used}")
        yield from _by_time(member)
        yield Judgement(Verdict.ROOM, used)
    if member.token is not None:
        yield _of_claimed(member, member.token, records, unreadable)
    if member.tenant is not None and member.tenant == owner:
        yield Judgement(Verdict.OWN, "its own tenant asks")
    if member.tenant is not None:
        tenant = member.annotations.get(TENANT_ID, member.tenant)
        yield Judgement(Verdict.OWNED, f"belongs to tenant {tenant}")
    if member.internal:
        yield Judgement(Verdict.INTERNAL, "internal: kept out of the pool")
    yield from _by_time(member)
    yield Judgement(Verdict.FREE, "free")


def _by_time(member: Member) -> Iterator[Judgement]:
    if member.rests_until:
        yield Judgement(Verdict.RESTING, f"rests until {member.rests_until}")
    if member.key_ends_soon:
        yield Judgement(Verdict.EXPIRING, describe_end(member))


def explain_cut(member: Member, namespace: str) -> str:
    """Return a message that an account is withheld from its tenant, and until when."""
    reason = member.annotations.get(STATE_REASON, "no reason given")
    return (
        f"account {member.name} is quarantined, {reason}: its copies and the right to read it stay away until"
        f" `credfleet pool unquarantine {member.name} -n {namespace}`"
    )


def describe_end(member: Member) -> str:
    """Return a message with the expiry time of an account's key."""
    return f"its key ends at {member.key_ends}"


def is_kept_by_time(member: Member) -> bool:
    """Return whether a usable account is withheld from new holders only because of time."""
    return bool(member.rests_until) or member.key_ends_soon


def describe_time(members: Iterable[Member]) -> str:
    """Return how many of these free accounts rest, and how many keys expire soon, as text."""
    kept = [member for member in members if member.tenant is None and member.state is None]
    until = sorted(member.rests_until for member in kept if member.rests_until)
    ending = sum(member.key_ends_soon and not member.rests_until for member in kept)
    resting = f", {len(until)} resting, the first until {until[0]}" if until else ""
    return resting + (f", {ending} whose key ends soon" if ending else "")


def _state_in_words(member: Member) -> str:
    words: Mapping[str, str] = {State.DIRTY: "dirty, waits to be cleaned", State.CLEANING: "being cleaned"}
    state = words.get(str(member.state), str(member.state))
    reason = member.annotations.get(STATE_REASON)
    return f"{state}: {reason}" if reason else state


def _of_claimed(
    member: Member, token: Token, records: Mapping[str, Record] | None, unreadable: Container[str]
) -> Judgement:
    if records is None:
        return Judgement(Verdict.CLAIMED, "claimed")
    if token.record in unreadable:
        return Judgement(Verdict.CLAIMED, f"claimed, but ConfigMap {token.record} cannot be read")
    record = records.get(token.record)
    if is_restored(member, token, record):
        why = "its claim came back from a backup; a recovery binds it again"
        return Judgement(Verdict.CLAIMED, why)
    if record is None or record.token != token:
        why = "carries a claim that is gone; a sweep takes it off"
        return Judgement(Verdict.ORPHANED, why)
    return Judgement(Verdict.CLAIMED, f"claimed by tenant {record.tenant}, slot {record.slot}")


def is_restored(member: Member, token: Token, record: Record | None) -> bool:
    """Return whether a token that looks dead belongs to a claim restored from a backup.

    `record`: the record with the token's name. A record becomes Bound only after the member carries its
    token, and no step removes the token before the record. A Bound record whose member carries the same name
    with another uid can therefore only result from a restore. The account is in use.
    """
    return (
        record is not None
        and record.phase is Phase.BOUND
        and record.member == member.name
        and record.uid != token.uid
        and not member.bears(record.token)
    )


def may_take(member: Member, record: Record, former: str | None = None) -> bool:
    """Return whether this claim can take the member it names, at the resourceVersion it was read with.

    `former`: the account that the claim had before its record was lost.
    """
    takes = judge(member, record.partition, record.tenant_label).takes
    return takes or may_take_back(member, record.partition, record.tenant_label, former)


def may_take_back(member: Member, partition: Partition, owner: str, former: str | None) -> bool:
    """Return whether a claim can take its former account, whose Secret was recreated since."""
    labels = {key: value for key, value in member.labels.items() if key != POOL_STATE}
    is_its_own = member.name == former and member.is_created_again
    usable = replace(member, labels=labels, rests_until="", key_ends_soon=False)
    return is_its_own and judge(usable, partition, owner).takes


def unusable(member: Member, record: Record) -> str | None:
    """Return why only present holders can use the member of a claim; None if new ones can join."""
    if wrong := misconfiguration(member, (key for key, _ in record.partition.values)):
        return f"it is misconfigured: {wrong}"
    if member.state is not None:
        return f"it is {member.state} ({member.annotations.get(STATE_REASON, 'no reason given')})"
    return None


def misconfiguration(member: Member, keys: Iterable[str]) -> str | None:
    """Return why this member can never be claimed or cleaned; None if it is valid."""
    return next(_faults(member, keys), None)


def _faults(member: Member, keys: Iterable[str]) -> Iterator[str]:
    if member.unfit:
        yield member.unfit
    if member.tenant == "":
        yield f"{TENANT_NAME} is empty, so it is neither free nor owned"
    if member.state is not None and member.state not in set(State):
        yield f"{POOL_STATE} {member.state!r} is not known"
    if member.shared and member.labels[SHARED] != "true":
        yield f"{SHARED} is {member.labels[SHARED]!r}; it is `true` or absent"
    if member.shared and member.tenant is not None:
        yield f"a shared account has no owner, but {TENANT_NAME} is {member.tenant!r}"
    if member.shared and member.internal:
        yield f"a shared account is everybody's, but {INTERNAL} keeps it for one tenant"
    if unreadable := _unreadable(member):
        yield unreadable
    keys = (*keys,)
    for key in keys:
        if member.labels.get(key) in ("", "false"):
            yield f"{key} is {member.labels[key]!r}; leave the label out instead"
    for key in _KYMA_LABELS:
        if key in member.labels and key not in keys:
            yield f"label {key} means nothing here; what pools call their labels is accountPool.labels"


def _unreadable(member: Member) -> str | None:
    try:
        _ = member.tokens
        if member.shared:
            _ = member.shared_capacity
    except Misconfigured as error:
        return error.problem
    return None
