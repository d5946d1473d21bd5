"""Which accounts wait for an operator, and how long: the oldest first. Pure; by the API server's clock."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from components.account_pool.core.status import Account, AccountUse

WAIT: Final = (AccountUse.DIRTY, AccountUse.CLEANING, AccountUse.QUARANTINED)
"""What does not end by itself: a cleaner or an operator has to come."""

LONG_SECONDS: Final = 86_400.0
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def oldest_first(accounts: Iterable[Account], *standings: AccountUse) -> list[Account]:
    """Return those that stand so, longest first; those of unknown times last."""
    found = (each for each in accounts if each.standing in standings)
    return sorted(found, key=lambda each: (not each.since, each.since, each.secret_name))


def seconds_since(since: str, now: datetime) -> float:
    """Return how long ago it was that the API server wrote; 0 where it did not, or by a faster clock."""
    return max(0.0, (now - datetime.fromisoformat(since)).total_seconds()) if since else 0.0


def is_long(account: Account, now: datetime) -> bool:
    """Whether an account stands as it does for more than a day: cleaners come at least every night."""
    return seconds_since(account.since, now) > LONG_SECONDS


def describe(account: Account, now: datetime) -> str:
    """Return since how long an account stands as it does: `3 d`; empty if unknown."""
    seconds = seconds_since(account.since, now)
    size, unit = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    return f"{int(seconds // size)} {unit}" if account.since else ""
