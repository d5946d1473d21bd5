"""Accounts with an owner but no claim: brought along by their tenant, or from before there were records.

A claim of the tenant takes such an account by itself. Adopting it beforehand protects it, and says which
slot it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from components.account_pool.judgement import Judgement, judge
from components.account_pool.keys import CLAIM_TOKEN, TENANT_ID
from components.account_pool.model import Member, Partition, Record, tenant_label
from components.account_pool.pool_settings import PoolSettings


@dataclass(frozen=True, slots=True)
class Adoption:
    """A claim that could be made for an account that has an owner and no claim. problem: why it cannot."""

    member: str
    tenant: str
    partition: Partition
    slot: str
    problem: str | None = None


def adoptions(
    members: Iterable[Member], records: Iterable[Record], settings: PoolSettings
) -> Iterator[Adoption]:
    """Propose a slot for each, in order the free ones of its tenant."""
    taken = {(str(record.partition), record.tenant, record.slot) for record in records}
    for member in sorted(members, key=lambda m: m.name):
        partition = member.place(settings.partition_keys)
        judged = judge(member, partition, member.tenant or "")
        is_unclaimed = CLAIM_TOKEN not in member.annotations and member.state is None and not member.shared
        if member.tenant is None or not is_unclaimed:
            continue
        tenant = member.annotations.get(TENANT_ID, member.tenant)
        slot = next(s for n in count() if (str(partition), tenant, s := str(n)) not in taken)
        taken.add((str(partition), tenant, slot))
        yield Adoption(member.name, tenant, partition, slot, _problem(member, tenant, judged))


def _problem(member: Member, tenant: str, judged: Judgement) -> str | None:
    if not judged.takes:
        return judged.why
    if tenant_label(tenant) != member.tenant:
        return f"its owner {member.tenant} is encoded, and annotation {TENANT_ID} does not say of whom"
    return None
