"""Watches started processes until they are ready or one of them ends."""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pulumi_sandbox import files
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services import processes
from pulumi_sandbox.services.ports import PortTakenError
from pulumi_sandbox.services.progress import Progress, Step

READY_SECONDS = 120.0
"""Timeout of a start. It takes seconds on an idle machine, but can take longer on a busy one."""


@dataclass(frozen=True, slots=True)
class _Started:
    name: str
    log: Path
    said_before: int

    @property
    def said(self) -> str:
        with self.log.open("rb") as file:
            file.seek(self.said_before)
            return file.read().decode(errors="replace")

    @property
    def last_words(self) -> str:
        lines = self.said.split("\n")
        return "its last words: " + " / ".join([line.strip()[:300] for line in lines if line.strip()][-3:])


@dataclass(slots=True)
class Launch:
    """One start of one or more processes, with its progress and errors.

    code: errors are `<code>-died` and `<code>-not-ready`. usual: seconds it takes. fix: for a died process.
    """

    code: str
    what: str
    usual: float
    fix: str
    progress: Progress
    _began: float = field(default_factory=time.monotonic)
    _started: dict[int, _Started] = field(default_factory=dict[int, _Started])

    def start(self, name: str, command: Sequence[str], log: Path, *, die_with_parent: bool) -> None:
        """Start a process as `processes.spawn` does."""
        said_before = log.stat().st_size if log.exists() else 0
        pid = processes.spawn(command, log, die_with_parent=die_with_parent)
        self._started[pid] = _Started(name, log, said_before)

    def wait_for(self, ready: Callable[[], bool]) -> None:
        """Wait until all are ready.

        Raises SandboxError `…-died`, `…-not-ready`, `disk-full` or `port-taken`, with the last lines of the
        log.
        """
        while not ready():
            elapsed = time.monotonic() - self._began
            self.progress(Step(self.what, elapsed, self.usual))
            ended = processes.first_ended(self._started, 0.05)
            if ended is not None:
                raise self._death(self._started[ended])
            if elapsed > READY_SECONDS:
                raise self._delay(elapsed)

    def end(self) -> None:
        """Kill all started processes, also those whose command line is not visible yet."""
        processes.end(self._started, lambda _: True, patience=0)

    def _death(self, started: _Started) -> SandboxError:
        words = started.last_words
        taken = re.search(r":(\d+): bind: address already in use", words)
        if taken:
            return PortTakenError(int(taken.group(1)), started.name)
        return _full_disk([started]) or SandboxError(
            code=f"{self.code}-died",
            place=str(started.log),
            problem=f"{started.name} ended while it was starting; {words}",
            fix=self.fix,
        )

    def _delay(self, elapsed: float) -> SandboxError:
        latest = [*self._started.values()][-1]
        words = " ".join(started.last_words for started in self._started.values())
        return _full_disk(self._started.values()) or SandboxError(
            code=f"{self.code}-not-ready",
            place=str(latest.log),
            problem=f"it is not ready after {elapsed:.0f} s; {words}",
            fix=f"look into {latest.log.parent}, then run the command again",
        )


def _full_disk(started: Iterable[_Started]) -> SandboxError | None:
    full = next((each for each in started if files.names_full_disk(each.said)), None)
    if full is None:
        return None
    return SandboxError(
        code="disk-full",
        place=str(full.log),
        problem=f"the disk is full, so {full.name} cannot start; {full.last_words}",
        fix="free some space, then run the command again; what is there is kept",
    )
