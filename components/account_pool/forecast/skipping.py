"""Errors of a pool that skip a claim, and those that fail the update; reasons of skipped claims.

A skipped claim has nothing to lose: the rest of the stack is updated, its dependents are skipped, and a later
update retries it. A claim that has an account never loses it by a skip.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from components import errors
from components.account_pool.forecast.claims import NONE_FREE, ClaimForecast

SKIPPED: Final = "Skipped"
"""Phase of a claim that was skipped and has no account yet."""

SKIPS: Final[Mapping[type[errors.PoolError], bool]] = {
    errors.Exhausted: True,
    errors.LimitReached: True,
    errors.QuotaReached: True,
    errors.Withheld: True,
    errors.LostMember: False,  # resources might still use the account
    errors.Misconfigured: False,  # the claim's account is unknown
    errors.NotAllowed: False,  # the deployer lacks a right, for every claim
    errors.Restored: False,  # every claim looks dead
    errors.Unreachable: False,  # the result of the claim is unknown
}
"""Error of a pool → whether it skips the claim; otherwise it fails the update."""

LEFT_TO_OTHERS: Final = frozenset({errors.Exhausted.CODE, errors.QuotaReached.CODE})
"""Codes of claims that are skipped because other claims of the same run get the free accounts."""


def skips(refusal: type[errors.PoolError] | None, *, required: bool) -> bool:
    """Return whether an error skips the claim; a required claim is never skipped."""
    return not required and refusal is not None and SKIPS[refusal]


def reason_of(refusal: errors.PoolError) -> dict[str, str]:
    """Return why a claim is skipped, with the keys used in states."""
    return {"code": refusal.code, "place": refusal.place, "cause": refusal.problem, "mend": refusal.fix}


def forecast_reason(namespace: str, expected: ClaimForecast) -> dict[str, str]:
    """Return why a claim is expected to be skipped, in the same form."""
    return {
        "code": expected.refusal.CODE if expected.refusal else "",
        "place": f"pool {namespace}",
        "cause": expected.text.replace(NONE_FREE, f"no free {expected.type} account is left for it"),
        "mend": "add accounts, or clean or release some, and run again"
        if expected.refusal is errors.Exhausted
        else "run again once that has changed",
    }


def in_words(reason: Mapping[str, str]) -> str:
    """Return why a claim is skipped, in one line."""
    return f"{reason['place']}: {reason['cause']} → {reason['mend']}"
