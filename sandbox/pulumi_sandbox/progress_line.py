"""A progress line for steps longer than a second: what, the time so far, the usual time."""

import shutil
import sys
from contextlib import AbstractContextManager
from typing import TextIO

from pulumi_sandbox.services.progress import Step

_QUIET_SECONDS = 15.0
"""Interval of progress lines in a log file, which cannot be redrawn like a terminal."""


def worded(step: Step) -> str:
    """Return a step as one line: `· building etcd … 1:05, usually 4:30`."""
    elapsed = f" {_clock(step.elapsed)}" if step.elapsed >= 1 else ""
    usual = f", usually {_clock(step.usual)}" if step.usual is not None else ""
    return f"· {step.what}{elapsed}{usual}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes else f"{rest} s"


class ProgressLine(AbstractContextManager["ProgressLine"]):
    """Displays the latest step: rewritten in place on a terminal, as occasional lines elsewhere.

    A context manager; call it with each `Step`. On exit, a terminal's line is erased.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._said: tuple[str, float] | None = None

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Erase a terminal's line, so that something else can be written there."""
        if self._live and self._said:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def __call__(self, step: Step) -> None:
        """Display the step."""
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{worded(step)[:width]}")
        elif (
            self._said is None or self._said[0] != step.what or step.elapsed - self._said[1] >= _QUIET_SECONDS
        ):
            self._stream.write(f"{worded(step)}\n")
        else:
            return
        self._said = (step.what, step.elapsed)
        self._stream.flush()
