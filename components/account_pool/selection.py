"""Which members a request may take, and which of them first.

Selectors are made of validated values only. Requests are spread over the free members by a hash of record and member,
so that claimers of different tenants rarely try the same one, and helpers of one tenant always do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from components.account_pool.model import (
    INTERNAL_LABEL,
    RECORD_LABEL,
    SHARED_LABEL,
    STATE_LABEL,
    TENANT_LABEL,
    TYPE_LABEL,
    Member,
    Partition,
    State,
)

RECORDS = f"{RECORD_LABEL}=true"
MEMBERS = TYPE_LABEL


def members_of_type(account_type: str) -> str:
    """Every member of a type, whatever its partition and state."""
    return f"{TYPE_LABEL}={account_type}"


def _members_in(partition: Partition) -> list[str]:
    terms = [f"!{key}" if value is None else f"{key}={value}" for key, value in partition.values]
    return [members_of_type(partition.type), *terms]


def members_owned(partition: Partition, tenant_label: str) -> str:
    """The tenant's own dedicated members of a partition."""
    return ",".join([*_members_in(partition), f"!{SHARED_LABEL}", f"{TENANT_LABEL}={tenant_label}"])


def members_free(partition: Partition) -> str:
    """Members of a partition that nobody owns; those among them with a token left behind are not free."""
    absent = [f"!{key}" for key in (TENANT_LABEL, STATE_LABEL, SHARED_LABEL, INTERNAL_LABEL)]
    return ",".join([*_members_in(partition), *absent])


def members_shared(partition: Partition) -> str:
    """The shared members of a partition."""
    return ",".join([*_members_in(partition), f"{SHARED_LABEL}=true"])


def by_hash(record_name: str, members: Iterable[Member]) -> list[Member]:
    """The order in which the claim of this record tries members."""

    def digest(member: Member) -> bytes:
        return hashlib.sha256((record_name + member.name).encode()).digest()

    return sorted(members, key=digest)


def least_used(record_name: str, members: Iterable[Member]) -> list[Member]:
    """Shared members with room, those with the fewest claims first."""
    roomy = (m for m in members if m.state is None and len(m.shared_claims) < m.shared_capacity)
    return sorted(by_hash(record_name, roomy), key=lambda member: len(member.shared_claims))


def misconfiguration(member: Member, keys: Iterable[str]) -> str | None:
    """Why nobody could ever claim or clean this member, though it bears the type; None when it is in order."""
    if member.tenant == "":
        return f"{TENANT_LABEL} is empty, so it is neither free nor owned"
    if member.state is not None and member.state not in set(State):
        return f"{STATE_LABEL} {member.state!r} is not known"
    if member.shared and member.labels[SHARED_LABEL] != "true":
        return f"{SHARED_LABEL} is {member.labels[SHARED_LABEL]!r}; it is `true` or absent"
    if member.shared and member.tenant is not None:
        return f"a shared account has no owner, but {TENANT_LABEL} is {member.tenant!r}"
    for key in keys:
        if member.labels.get(key) in ("", "false"):
            return f"{key} is {member.labels[key]!r}; leave the label out instead"
    for key in ("dirty", "shared", "cleaning", "quarantined"):
        if key in member.labels:
            return f"label {key} means nothing here; the state of an account is {STATE_LABEL}"
    return None
