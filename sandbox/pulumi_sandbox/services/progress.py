"""The progress of a long step, whose display the command line decides."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A progress report. It is repeated with the same `what` and more seconds while the step lasts."""

    what: str
    elapsed: float
    """Seconds since the step started."""
    usual: float | None = None
    """Usual duration in seconds, if known."""


Progress = Callable[[Step], None]


def silent(step: Step) -> None:
    """Report nothing."""
    del step
