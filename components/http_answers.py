"""Meaning of HTTP statuses, and pauses between retries of temporary failures."""

from __future__ import annotations

import random
from enum import StrEnum
from typing import Final


class HttpOutcome(StrEnum):
    """Result of a call. UNREACHABLE: temporary, and the call might have been carried out."""

    DONE = "done"
    ABSENT = "absent"
    CONFLICT = "conflict"
    NOT_ALLOWED = "not-allowed"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"


def answer_of(status: int) -> HttpOutcome:
    """Return the meaning of a status."""
    match status:
        case 401 | 403:
            return HttpOutcome.NOT_ALLOWED
        case 404:
            return HttpOutcome.ABSENT
        case 409:
            return HttpOutcome.CONFLICT
        case _ if status < 300:
            return HttpOutcome.DONE
        case _ if status == 429 or status >= 500:
            return HttpOutcome.UNREACHABLE
        case _:
            return HttpOutcome.REFUSED


FIRST_PAUSE_SECONDS: Final = 0.005
LONGEST_PAUSE_SECONDS: Final = 1.0

PATIENCE_SECONDS: Final = 30.0
"""How long to retry a server that has answered before."""
FIRST_ANSWER_SECONDS: Final = 2.0
"""How long to retry a server that has never answered: its address might be wrong, or it is down."""
LONGEST_WISH_SECONDS: Final = 10.0
"""Longest wait that a server can request with Retry-After."""


def jitter(attempt: int) -> float:
    """Return the seconds to wait after this many failures: random below a doubling limit (full jitter)."""
    bound = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(attempt, 20))
    return random.uniform(0, bound)  # noqa: S311 - spreads retries, hides nothing


def pause(attempt: int, wished: float) -> float:
    """Return the seconds to wait after this many failures, at least as long as the server asks."""
    return max(jitter(attempt), min(wished, LONGEST_WISH_SECONDS))
