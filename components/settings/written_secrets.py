"""Which Secrets a stack writes, over all its parts: no two of them may write one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from components.errors import Problem
from components.naming import config_path
from components.settings.nouns import AccountPool, Tenant
from components.settings.section import Written


def members_of(pool: AccountPool) -> Iterator[Written]:
    """Name the Secrets of the pool's members."""
    for name in pool.members:
        yield pool.namespace, name, config_path("accountPool", "members", name)


def deliveries_of(tenants: Mapping[str, Tenant]) -> Iterator[Written]:
    """Name the copies of claimed accounts."""
    for name, tenant in tenants.items():
        for key, slot in tenant.accounts.items():
            if slot.deliver_to is not None:
                place = config_path("tenants", name, "accounts", key, "deliverTo")
                yield tenant.namespace, slot.deliver_to.target, place


def review_written(secrets: Iterable[Written]) -> Iterator[Problem]:
    """Refuse a Secret that is written twice: each update would overwrite the other one's keys."""
    first: dict[tuple[str, str], str] = {}
    for namespace, name, place in secrets:
        owner = first.setdefault((namespace, name), place)
        if owner != place:
            cause = f"its Secret {namespace}/{name} is also that of {owner}"
            yield Problem(place, cause, "rename one of the two")
