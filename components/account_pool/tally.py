"""What one operation met on its way, counted as its steps go by: lost races, and waits for another try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from components.account_pool.calls import Answer, Pause, Refusal, Refused, Steps

T = TypeVar("T")


@dataclass(slots=True)
class Tally:
    """conflicts: writes that somebody else's came before. retries: pauses before another try."""

    conflicts: int = 0
    retries: int = 0


def tallied(steps: Steps[T], tally: Tally) -> Steps[T]:
    """Make the same calls, and count into a tally what comes of them."""
    answer: Answer = None
    while True:
        try:
            asked = steps.send(answer)
        except StopIteration as end:
            return end.value
        tally.retries += isinstance(asked, Pause)
        answer = yield asked
        tally.conflicts += isinstance(answer, Refused) and answer.why is Refusal.CONFLICT
