"""`credfleet pool status`: how a live pool stands, as tables or JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from components.account_pool.status import PoolStatus, Standing
from components.labels import HYPERSCALER_TYPE
from operations.cli.answer import Answer
from operations.cli.tables import Column, Table
from operations.pool.access import Where

_ALWAYS_TOLD: Final = frozenset(
    {Standing.FREE, Standing.CLAIMED, Standing.DIRTY, Standing.CLEANING, Standing.QUARANTINED}
)

_SHOWN: Final = 5
"""Tenants, slots and holders of one account told in a table."""


def status(where: Where, *, watch: bool) -> Answer:
    """Return how the accounts of a pool stand; raises as `Where.open_existing`."""
    pool = where.open_existing()

    def look() -> Answer:
        found = pool.status()
        parts = [*_held(found, where.namespace)]
        if found.accounts:
            parts = [*parts, counted(found), listed(found), *_problems(found)]
        else:
            parts = [f"Pool {where.namespace} has no accounts."]
        return Answer(as_document(where.namespace, found), parts, again=look if watch else None)

    return look()


def as_document(namespace: str, status: PoolStatus) -> dict[str, Any]:
    """Return a pool for machines: counts by type and partition (zeros included), then every account."""
    return {
        "namespace": namespace,
        "hold": status.hold or None,
        "partitions": [
            {
                "type": type_,
                "partition": values(partition),
                "total": sum(counts.values()),
                **{str(standing): counts[standing] for standing in Standing},
            }
            for (type_, partition), counts in status.counts.items()
        ],
        "accounts": [
            {
                "secretName": account.secret_name,
                "type": account.type,
                "partition": values(account.partition),
                "state": str(account.standing),
                "tenant": account.tenant,
                "slot": account.slot,
                "holders": [*account.holders],
                "since": account.since or None,
                "reason": account.reason or None,
                "accountId": account.account_id,
                "used": account.used,
                "capacity": account.capacity,
                "claims": [
                    {
                        "tenant": each.tenant,
                        "slot": each.slot,
                        "holders": [*each.holders],
                        "since": each.since or None,
                    }
                    for each in account.claims
                ],
            }
            for account in status.accounts
        ],
        "problems": [
            {"place": each.place, "cause": each.cause, "mend": each.mend} for each in status.problems
        ],
    }


def counted(status: PoolStatus) -> Table:
    """Return the counts; a standing out of the ordinary has a column only when some account is in it."""
    told = [each for each in Standing if each in _ALWAYS_TOLD or any(c[each] for c in status.counts.values())]
    rows = [
        (type_, place(partition), *(str(counts[each] or "·") for each in told))
        for (type_, partition), counts in status.counts.items()
    ]
    return Table("Pool", ("Type", "Partition", *(each.capitalize() for each in told)), rows)


def values(partition: str) -> Mapping[str, str]:
    """Return the keys an account of a partition has; `partition` is the protocol's own text for it."""
    terms = (term.partition("=") for term in partition.split(",") if not term.startswith("!"))
    return {key: value for key, _, value in terms if key != HYPERSCALER_TYPE}


def place(partition: str) -> str:
    """Return a partition as people write it: `eu-access=true`, empty for the one without any key."""
    return ",".join(f"{key}={value}" for key, value in values(partition).items())


def _held(status: PoolStatus, namespace: str) -> Iterator[str]:
    if status.hold:
        end = f"`credfleet pool resume -n {namespace}` ends it"
        yield f"This pool gives no new accounts: {status.hold}\n→ {end}"


def _problems(status: PoolStatus) -> Iterator[str]:
    """Return what is wrong with the pool beside its accounts, one text each."""
    for each in status.problems:
        yield f"✗ {each.place}: {each.cause}\n→ {each.mend}"


def _few(names: Collection[str]) -> str:
    """Return the first of some names and how many more there are; JSON tells all."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(sorted(names)[:_SHOWN]) + more


def listed(status: PoolStatus) -> Table:
    """Return every account: first those in use, then what is free."""
    accounts = sorted(status.accounts, key=lambda each: each.standing is Standing.FREE)
    rows = [
        (
            account.secret_name,
            account.type,
            place(account.partition),
            f"{account.standing} {account.used}/{account.capacity}" if account.capacity else account.standing,
            account.tenant or _few({each.tenant or "?" for each in account.claims}),
            account.slot or _few({each.slot for each in account.claims}),
            account.since,
            _few(account.holders),
            account.reason,
        )
        for account in accounts
    ]
    columns = (
        Column("Account", names=True),
        "Type",
        Column("Partition", leaves=3),
        "State",
        "Tenant",
        Column("Slot", leaves=1),
        Column("Since", leaves=2),
        Column("Holders", leaves=4),
        Column("Reason", folds=True),
    )
    return Table("Accounts", columns, rows)
