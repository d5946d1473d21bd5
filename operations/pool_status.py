"""`credfleet pool status`: the census of a live pool, as tables or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from operations.census import STANDINGS, Account, Group, accounts, groups
from operations.forms import print_json, print_table
from operations.pool_access import open_pool

_ALWAYS_TOLD = ("free", "claimed", "dirty", "cleaning", "quarantined")


def show(namespace: str, kubeconfig: Path | None, *, as_json: bool) -> None:
    """Print how the accounts of a pool stand; raises as `Pool.open`."""
    pool = open_pool(namespace, kubeconfig)
    told = accounts(pool.members(), pool.records(), pool.settings.partition_keys)
    counted = groups(told)
    if as_json:
        print_json(status_as_json(namespace, told, counted))
    elif not told:
        typer.echo(f"Pool {namespace} has no accounts.")
    else:
        show_groups(counted)
        show_accounts(told)


def status_as_json(namespace: str, told: Sequence[Account], counted: Sequence[Group]) -> dict[str, Any]:
    """Give the census for machines: counts by type and partition, then every account."""
    return {
        "namespace": namespace,
        "partitions": [group.to_json() for group in counted],
        "accounts": [account.to_json() for account in told],
    }


def show_groups(counted: Sequence[Group]) -> None:
    """Print the counts; a standing nobody is in has a column only if it is an ordinary one."""
    columns = [each for each in STANDINGS if each in _ALWAYS_TOLD or any(g.counts[each] for g in counted)]
    rows = [
        (
            group.type,
            group.place,
            *(str(group.counts[each]) if group.counts[each] else "·" for each in columns),
        )
        for group in counted
    ]
    print_table("Pool", ("Type", "Partition", *(each.capitalize() for each in columns)), rows)


def show_accounts(told: Sequence[Account]) -> None:
    """Print every account that is not simply free."""
    rows = [
        (
            account.name,
            account.type,
            account.standing,
            account.tenant or "",
            account.slot or "",
            account.since or "",
            account.reason or ", ".join(account.holders),
        )
        for account in told
        if account.standing != "free"
    ]
    if rows:
        columns = ("Account", "Type", "State", "Tenant", "Slot", "Since", "Holders or reason")
        print_table("Accounts in use", columns, rows)
