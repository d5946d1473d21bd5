"""The standing of every account of a pool, counted by type and partition. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from components.account_pool.errors import Misconfigured
from components.account_pool.keys import STATE_REASON
from components.account_pool.model import Member, Record
from components.account_pool.selection import misconfiguration

STANDINGS: Final = (
    "free",
    "claimed",
    "owned",
    "dirty",
    "cleaning",
    "quarantined",
    "shared",
    "internal",
    "misconfigured",
)
"""What an account can be, in the order told. `owned` has a tenant and no claim: brought along or retained."""


@dataclass(frozen=True, slots=True)
class Account:
    """An account as people ask for it.

    `since` is when it was claimed (RFC 3339), `reason` why it is not usable.
    """

    name: str
    type: str
    partition: Mapping[str, str]
    standing: str
    account_id: str | None
    reason: str | None
    tenant: str | None
    slot: str | None
    phase: str | None
    policy: str | None
    holders: tuple[str, ...]
    since: str | None

    def to_json(self) -> dict[str, Any]:
        """Give the account for machines."""
        return {
            "name": self.name,
            "type": self.type,
            "partition": dict(self.partition),
            "state": self.standing,
            "accountId": self.account_id,
            "reason": self.reason,
            "tenant": self.tenant,
            "slot": self.slot,
            "phase": self.phase,
            "releasePolicy": self.policy,
            "holders": [*self.holders],
            "since": self.since,
        }


@dataclass(frozen=True, slots=True)
class Group:
    """The accounts of one type and partition; `counts` has every standing, also those nobody is in."""

    type: str
    partition: Mapping[str, str]
    counts: Mapping[str, int]

    @property
    def place(self) -> str:
        """The partition as text, empty for the one without any key."""
        return ",".join(f"{key}={value}" for key, value in sorted(self.partition.items()))

    def to_json(self) -> dict[str, Any]:
        """Give the group for machines."""
        counts = {standing: self.counts[standing] for standing in STANDINGS}
        return {"type": self.type, "partition": dict(self.partition), "total": sum(counts.values()), **counts}


def accounts(members: Iterable[Member], records: Iterable[Record], keys: Sequence[str]) -> list[Account]:
    """Tell how each member stands, with the claim on it; `keys` are the partition keys of the pool."""
    claims = {(record.member, str(record.token)): record for record in records}
    told = [_account(member, claims, keys) for member in members]
    return sorted(told, key=lambda account: (account.type, sorted(account.partition.items()), account.name))


def groups(told: Iterable[Account]) -> list[Group]:
    """Count accounts by type and partition."""
    counted: dict[tuple[str, tuple[tuple[str, str], ...]], Counter[str]] = {}
    for account in told:
        place = (account.type, tuple(sorted(account.partition.items())))
        counted.setdefault(place, Counter())[account.standing] += 1
    return [Group(type_, dict(partition), counts) for (type_, partition), counts in sorted(counted.items())]


def _account(member: Member, claims: Mapping[tuple[str, str], Record], keys: Sequence[str]) -> Account:
    wrong = misconfiguration(member, keys)
    try:
        tokens = member.tokens
    except Misconfigured as unreadable:
        tokens, wrong = (), wrong or unreadable.cause
    record = next((claims[each] for token in tokens if (each := (member.name, str(token))) in claims), None)
    return Account(
        name=member.name,
        type=member.type,
        partition={key: member.labels[key] for key in keys if key in member.labels},
        standing="misconfigured" if wrong else _standing(member, claimed=bool(tokens)),
        account_id=member.account_id,
        reason=wrong or member.annotations.get(STATE_REASON),
        tenant=record.tenant if record else member.tenant,
        slot=record.slot if record else None,
        phase=str(record.phase) if record else None,
        policy=str(record.policy) if record else None,
        holders=tuple(sorted(record.holders)) if record else (),
        since=record.since if record else None,
    )


def _standing(member: Member, *, claimed: bool) -> str:
    if member.state is not None:
        return member.state
    if member.shared:
        return "shared"
    if claimed:
        return "claimed"
    if member.tenant is not None:
        return "owned"
    return "internal" if member.internal else "free"
