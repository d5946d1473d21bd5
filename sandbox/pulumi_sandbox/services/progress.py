"""What a long step says while it runs; the command line decides how that looks."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One word of progress. The same `what` comes again, with more seconds, while the step lasts."""

    what: str
    elapsed: float
    """Seconds since the step began."""
    usual: float | None = None
    """Seconds it usually takes, when known."""


Progress = Callable[[Step], None]


def silent(step: Step) -> None:
    """Say nothing."""
    del step
