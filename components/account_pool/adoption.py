"""Accounts with an owner but no claim: brought along by their tenant, or from before there were records.

A claim of the tenant takes such an account by itself. Adopting it beforehand protects it, and says which
slot it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from components.account_pool.keys import TENANT_ID
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
        if member.tenant is None or not member.is_own_unused(member.tenant):
            continue
        values = tuple((key, member.labels.get(key)) for key in sorted(settings.partition_keys))
        partition = Partition(member.type, values)
        tenant = member.annotations.get(TENANT_ID, member.tenant)
        slot = next(s for n in count() if (str(partition), tenant, s := str(n)) not in taken)
        taken.add((str(partition), tenant, slot))
        yield Adoption(member.name, tenant, partition, slot, _problem(member, tenant))


def _problem(member: Member, tenant: str) -> str | None:
    if not member.tenant:
        return "its owner is empty"
    if tenant_label(tenant) != member.tenant:
        return f"its owner {member.tenant} is encoded, and annotation {TENANT_ID} does not say of whom"
    return None
