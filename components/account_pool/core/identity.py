"""Detection of Secrets that hold the same cloud account. The account's identity is its cloud and id.

Two Secrets of one account would each be given out, and cleaning one would wipe the other's holder. Such an
account gets no new holder and is not cleaned until one Secret is left or the others are quarantined. Pure.
The Secret of an account that a tenant brings is named after the account. If two tenants bring the same one,
the API server rejects the second, although neither can read the pool.
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
    """Return the key that accounts are compared by: the cloud, and the id there."""
    return hyperscaler_of(account_type) or account_type, account_key(account_id)


BROUGHT_NAME: Final = "brought-"
"""Prefix of the names of brought accounts, so that they never equal the name of a declared account."""


def brought_name(account_type: str, account_id: str) -> str:
    """Return the Secret name of an account that a tenant brings."""
    return _named(*cloud_account(account_type, account_id))


def former_name(tenant: str, account_type: str, account_id: str) -> str:
    """Return the Secret name that earlier versions gave a tenant's account."""
    return _named(tenant, account_type, account_key(account_id))


def _named(*parts: str) -> str:
    return BROUGHT_NAME + hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]


def find_other(name: str, account: tuple[str, str], members: Iterable[Member]) -> Member | None:
    """Return a Secret of the same account with another name, or None."""
    return next(
        (
            each
            for each in members
            if each.name != name and each.account_id and cloud_account(each.type, each.account_id) == account
        ),
        None,
    )


def find_twins(members: Iterable[Member]) -> Mapping[str, Sequence[str]]:
    """Map each duplicate Secret to the others of its account; quarantined ones without holder are ignored."""
    accounts: dict[tuple[str, str], list[str]] = defaultdict(list)
    for member in members:
        if member.account_id and not _is_kept_away(member):
            accounts[cloud_account(member.type, member.account_id)].append(member.name)
    return {
        name: sorted({*names} - {name}) for names in accounts.values() if len(names) > 1 for name in names
    }


def mark_twins(members: Iterable[Member]) -> tuple[Member, ...]:
    """Return the members; duplicates of an account without a holder get a reason in `unfit`."""
    listed = (*members,)
    twins = find_twins(listed)
    return tuple(
        replace(member, unfit=describe_twins(member, twins[member.name]))
        if member.name in twins and not member.unfit and not _is_held(member)
        else member
        for member in listed
    )


def describe_twins(member: Member, others: Sequence[str]) -> str:
    """Return a message that a Secret holds the same account as others."""
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
