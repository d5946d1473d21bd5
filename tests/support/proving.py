"""How much tests try: little in `make test`, much where CREDFLEET_PROVE is set, as `make prove` does.

What was tried is counted, and `conftest.py` says it at the end of a run that proves.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Final

SEARCHES: Final = bool(os.environ.get("CREDFLEET_SEARCH"))
"""Whether a deliberate fault is looked for: then the first failure is enough, however large."""
PROVES: Final = bool(os.environ.get("CREDFLEET_PROVE"))
TRIED: Final[Counter[str]] = Counter()


def counted(usual: int, proving: int, searching: int | None = None) -> int:
    """Return how many cases a test tries."""
    return searching if SEARCHES and searching else proving if PROVES else usual


def tried(what: str, count: int = 1) -> None:
    """Count cases that a test is about to try."""
    TRIED[what] += count
