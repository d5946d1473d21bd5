"""`credfleet pool status`: how a live pool stands, as tables or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import typer

from components.account_pool.status import Account, PoolStatus, Standing
from components.labels import HYPERSCALER_TYPE
from operations.cli.answer import print_json, print_table
from operations.pool.access import Where, open_pool

_ALWAYS_TOLD: Final = frozenset(
    {Standing.FREE, Standing.CLAIMED, Standing.DIRTY, Standing.CLEANING, Standing.QUARANTINED}
)


def show(where: Where, *, as_json: bool) -> None:
    """Print how the accounts of a pool stand; raises as `Pool.open`."""
    status = open_pool(where).status()
    if as_json:
        print_json(status_as_json(where.namespace, status))
    elif not status.accounts:
        typer.echo(f"Pool {where.namespace} has no accounts.")
    else:
        show_counts(status)
        _show_accounts(status)


def status_as_json(namespace: str, status: PoolStatus) -> dict[str, Any]:
    """Give a pool for machines: counts by type and partition (zeros included), then every account."""
    return {
        "namespace": namespace,
        "partitions": [
            {
                "type": type_,
                "partition": values(partition),
                "total": sum(counts.values()),
                **{str(standing): counts[standing] for standing in Standing},
            }
            for (type_, partition), counts in status.counts.items()
        ],
        "accounts": [_account_as_json(account) for account in status.accounts],
    }


def show_counts(status: PoolStatus) -> None:
    """Print the counts; a standing out of the ordinary has a column only when some account is in it."""
    told = [each for each in Standing if each in _ALWAYS_TOLD or any(c[each] for c in status.counts.values())]
    rows = [
        (type_, place(partition), *(str(counts[each] or "·") for each in told))
        for (type_, partition), counts in status.counts.items()
    ]
    print_table("Pool", ("Type", "Partition", *(each.capitalize() for each in told)), rows)


def values(partition: str) -> Mapping[str, str]:
    """Give the keys an account of a partition has; `partition` is the protocol's own text for it."""
    terms = (term.partition("=") for term in partition.split(",") if not term.startswith("!"))
    return {key: value for key, _, value in terms if key != HYPERSCALER_TYPE}


def place(partition: str) -> str:
    """Give a partition as people write it: `eu-access=true`, empty for the one without any key."""
    return ",".join(f"{key}={value}" for key, value in values(partition).items())


def _show_accounts(status: PoolStatus) -> None:
    """Print every account that is not simply free."""
    rows = [
        (
            account.secret_name,
            account.type,
            f"{account.standing} {account.used}/{account.capacity}" if account.capacity else account.standing,
            account.tenant or "",
            account.slot or "",
            account.since,
            account.reason or ", ".join(account.holders),
        )
        for account in status.accounts
        if account.standing is not Standing.FREE
    ]
    if rows:
        columns = ("Account", "Type", "State", "Tenant", "Slot", "Since", "Holders or reason")
        print_table("Accounts in use", columns, rows)


def _account_as_json(account: Account) -> dict[str, Any]:
    return {
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
    }
