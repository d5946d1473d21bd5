"""How long calls are repeated that fail in a way that passes by itself, and with which pauses."""

from __future__ import annotations

import random
from typing import Final

FIRST_PAUSE_SECONDS: Final = 0.005
LONGEST_PAUSE_SECONDS: Final = 1.0

PATIENCE_SECONDS: Final = 30.0
"""How long a server is waited for that has answered before."""
FIRST_ANSWER_SECONDS: Final = 2.0
"""How long one is waited for that has never answered: a wrong address, or one that is down."""
LONGEST_WISH_SECONDS: Final = 10.0
"""How long a server may ask to be left alone (Retry-After)."""


def jitter(attempt: int) -> float:
    """Return the seconds to wait after so many failures: up to a bound that doubles (full jitter)."""
    bound = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(attempt, 20))
    return random.uniform(0, bound)  # noqa: S311 - spreads retries, hides nothing


def pause(attempt: int, wished: float) -> float:
    """Return the seconds to wait after so many failures, at least as long as the server wishes."""
    return max(jitter(attempt), min(wished, LONGEST_WISH_SECONDS))
