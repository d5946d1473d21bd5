"""Which members the API server is asked for, and which of those that a claim may take come first.

Selectors are made of validated values only, and select every member that `judge` takes. Requests are spread
over the free members by a hash of record and member, so that claimers of different tenants rarely try the
same one, and helpers of one tenant always do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from components.account_pool.judgement import Verdict, judge
from components.account_pool.keys import INTERNAL, POOL_RECORD, POOL_STATE
from components.account_pool.model import Member, Partition, Wanted
from components.labels import HYPERSCALER_TYPE, SHARED, TENANT_NAME

RECORDS = f"{POOL_RECORD}=true"
MEMBERS = HYPERSCALER_TYPE
MEMBERS_WITH_STATE = f"{HYPERSCALER_TYPE},{POOL_STATE}"


def members_of_type(account_type: str) -> str:
    """Select every member of a type, whatever its partition and state."""
    return f"{HYPERSCALER_TYPE}={account_type}"


def records_of(account_type: str, tenant_label: str) -> str:
    """Select the records of a tenant's claims on a type, in whatever part of the pool."""
    return f"{RECORDS},{HYPERSCALER_TYPE}={account_type},{TENANT_NAME}={tenant_label}"


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


def in_order(wanted: Wanted, members: Iterable[Member]) -> list[Member]:
    """Return what this claim may take, in the order it tries them.

    First what is its tenant's own, then what is free, each by hash; of shared ones those with the fewest
    claims first.
    """
    judged = ((judge(member, wanted.partition, wanted.owner), member) for member in members)
    taken = [(each.verdict, member) for each, member in judged if each.takes]
    order = by_hash(wanted.record, (member for _, member in taken))
    if wanted.partition.shared:
        return sorted(order, key=lambda member: len(member.shared_claims))
    own = {member.name for verdict, member in taken if verdict is Verdict.OWN}
    return sorted(order, key=lambda member: member.name not in own)
