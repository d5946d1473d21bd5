"""Which members a request may take, and which of them first.

Selectors are made of validated values only. Requests are spread over the free members by a hash of record
and member, so that claimers of different tenants rarely try the same one, and helpers of one tenant always
do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from components.account_pool.errors import Misconfigured
from components.account_pool.keys import INTERNAL, POOL_RECORD, POOL_STATE
from components.account_pool.model import (
    Member,
    Partition,
    State,
)
from components.labels import HYPERSCALER_TYPE, SHARED, TENANT_NAME

RECORDS = f"{POOL_RECORD}=true"
MEMBERS = HYPERSCALER_TYPE
MEMBERS_WITH_STATE = f"{HYPERSCALER_TYPE},{POOL_STATE}"


def members_of_type(account_type: str) -> str:
    """Select every member of a type, whatever its partition and state."""
    return f"{HYPERSCALER_TYPE}={account_type}"


def _members_in(partition: Partition) -> list[str]:
    terms = [f"!{key}" if value is None else f"{key}={value}" for key, value in partition.values]
    return [members_of_type(partition.type), *terms]


def members_owned(partition: Partition, tenant_label: str) -> str:
    """Select the tenant's own dedicated members of a partition."""
    return ",".join([*_members_in(partition), f"!{SHARED}", f"{TENANT_NAME}={tenant_label}"])


def members_free(partition: Partition) -> str:
    """Select what nobody owns in a partition; a member with a token left behind is not free all the same."""
    absent = [f"!{key}" for key in (TENANT_NAME, POOL_STATE, SHARED, INTERNAL)]
    return ",".join([*_members_in(partition), *absent])


def members_shared(partition: Partition) -> str:
    """Select the shared members of a partition."""
    return ",".join([*_members_in(partition), f"{SHARED}=true"])


def by_hash(record_name: str, members: Iterable[Member]) -> list[Member]:
    """Order members as the claim of this record tries them."""

    def digest(member: Member) -> bytes:
        return hashlib.sha256((record_name + member.name).encode()).digest()

    return sorted(members, key=digest)


def least_used(record_name: str, members: Iterable[Member]) -> list[Member]:
    """Shared members with room, those with the fewest claims first."""
    roomy = (m for m in members if m.state is None and len(m.shared_claims) < m.shared_capacity)
    return sorted(by_hash(record_name, roomy), key=lambda member: len(member.shared_claims))


def misconfiguration(member: Member, keys: Iterable[str]) -> str | None:
    """Tell why nobody could ever claim or clean this member; None when it is in order."""
    return next(_faults(member, keys), None)


def _faults(member: Member, keys: Iterable[str]) -> Iterator[str]:
    if member.tenant == "":
        yield f"{TENANT_NAME} is empty, so it is neither free nor owned"
    if member.state is not None and member.state not in set(State):
        yield f"{POOL_STATE} {member.state!r} is not known"
    if member.shared and member.labels[SHARED] != "true":
        yield f"{SHARED} is {member.labels[SHARED]!r}; it is `true` or absent"
    if member.shared and member.tenant is not None:
        yield f"a shared account has no owner, but {TENANT_NAME} is {member.tenant!r}"
    if unreadable := _unreadable(member):
        yield unreadable
    for key in keys:
        if member.labels.get(key) in ("", "false"):
            yield f"{key} is {member.labels[key]!r}; leave the label out instead"
    for key in ("dirty", "shared", "cleaning", "quarantined"):
        if key in member.labels:
            yield f"label {key} means nothing here; the state of an account is {POOL_STATE}"


def _unreadable(member: Member) -> str | None:
    try:
        _ = member.tokens
        if member.shared:
            _ = member.shared_capacity
    except Misconfigured as error:
        return error.cause
    return None
