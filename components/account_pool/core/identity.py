"""Which Secrets are one and the same cloud account. An account is what it is at its cloud, not its Secret.

Each of two would be handed out, and wiped, under the other's holder. Such an account gets no new holder,
and is not cleaned, until one Secret is left or all others are quarantined. Pure.

The Secret of an account that a tenant brings is called after the account: of two that bring one, the API
server refuses the second, though neither may see what is in the pool.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from components.account_pool.core.model import Member, State, account_key
from components.errors import Misconfigured
from components.labels import hyperscaler_of


def cloud_account(account_type: str, account_id: str) -> tuple[str, str]:
    """Return what an account is compared by: its cloud, and its id there."""
    return hyperscaler_of(account_type) or account_type, account_key(account_id)


BROUGHT_NAME: Final = "brought-"
"""What names of brought accounts begin with, so that none is the name of one that a stack will declare."""


def brought_name(account_type: str, account_id: str) -> str:
    """Return the name of the Secret of an account that is brought."""
    return _named(*cloud_account(account_type, account_id))


def former_name(tenant: str, account_type: str, account_id: str) -> str:
    """Return the name that a tenant's account got from earlier versions."""
    return _named(tenant, account_type, account_key(account_id))


def _named(*parts: str) -> str:
    return BROUGHT_NAME + hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]


def find_other(name: str, account: tuple[str, str], members: Iterable[Member]) -> Member | None:
    """Return the Secret of an account that has another name; None where there is none."""
    return next(
        (
            each
            for each in members
            if each.name != name and each.account_id and cloud_account(each.type, each.account_id) == account
        ),
        None,
    )


def find_twins(members: Iterable[Member]) -> Mapping[str, Sequence[str]]:
    """Return of Secrets the others of their account; those that are kept from everybody are none."""
    accounts: dict[tuple[str, str], list[str]] = defaultdict(list)
    for member in members:
        if member.account_id and not _is_kept_away(member):
            accounts[cloud_account(member.type, member.account_id)].append(member.name)
    return {
        name: sorted({*names} - {name}) for names in accounts.values() if len(names) > 1 for name in names
    }


def mark_twins(members: Iterable[Member]) -> tuple[Member, ...]:
    """Return members, those without a holder with what is wrong if they are another Secret's account."""
    listed = (*members,)
    twins = find_twins(listed)
    return tuple(
        replace(member, unfit=describe_twins(member, twins[member.name]))
        if member.name in twins and not member.unfit and not _is_held(member)
        else member
        for member in listed
    )


def describe_twins(member: Member, others: Sequence[str]) -> str:
    """Say that a Secret is the account of others."""
    return (
        f"it is account {member.account_id}, and so is Secret {', '.join(others)}: two would use it, and"
        " cleaning one would wipe the other"
    )


def _is_kept_away(member: Member) -> bool:
    return member.state == State.QUARANTINED and not _is_held(member)


def _is_held(member: Member) -> bool:
    try:
        return bool(member.tokens)
    except Misconfigured:
        return True
