"""Which refusals of a pool skip a claim, and which fail the update; and what a skipped claim says of itself.

A claim that is skipped has nothing and loses nothing: the rest of the stack is updated, what depends on it
waits, and a later update takes it up. What a claim has already is never given up by a skip.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from components import errors
from components.account_pool.forecast.claims import NONE_FREE, ClaimForecast

SKIPPED: Final = "Skipped"
"""Phase of a claim that could not be served, and has no account yet."""

SKIPS: Final[Mapping[type[errors.PoolError], bool]] = {
    errors.Exhausted: True,
    errors.LimitReached: True,
    errors.QuotaReached: True,
    errors.Withheld: True,
    errors.LostMember: False,  # resources may still use the account
    errors.Misconfigured: False,  # it is unknown what the claim has
    errors.NotAllowed: False,  # the identity that runs this lacks a right, for every claim
    errors.Restored: False,  # every claim looks dead
    errors.Unreachable: False,  # it is unknown what became of the claim
}
"""Every error of a pool: whether it skips the one claim, or fails the update."""

LEFT_TO_OTHERS: Final = frozenset({errors.Exhausted.CODE, errors.QuotaReached.CODE})
"""Codes of claims that are skipped because other claims of the same run get what is free."""


def skips(refusal: type[errors.PoolError] | None, *, required: bool) -> bool:
    """Whether a claim that is refused so is skipped; one that is required never is."""
    return not required and refusal is not None and SKIPS[refusal]


def reason_of(refusal: errors.PoolError) -> dict[str, str]:
    """Return why a claim is skipped, by the keys that states have it under."""
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
