"""One operation of the pool, run call by call, while others run between its calls."""

from __future__ import annotations

from typing import Any

from components.account_pool.core.calls import (
    Call,
    Parallel,
    Steps,
    Unknown,
    Yielded,
)
from tests.support.memory_pool import MemoryServer, answer_to


class Paused:
    """An operation at one of its calls."""

    def __init__(self, steps: Steps[Any], server: MemoryServer) -> None:
        self._steps, self._server = steps, server
        self._asked: Yielded = steps.send(None)

    def until(self, kind: type[Call | Parallel]) -> Paused:
        """Go on until it is about to make a call of this kind."""
        while not isinstance(self._asked, kind):
            self.go_on()
        return self

    def go_on(self, *, lost: bool = False) -> Paused:
        """Make the call it is at. lost: no answer comes."""
        answer = answer_to(self._asked, self._server)
        self._asked = self._steps.send(Unknown("no answer") if lost else answer)
        return self

    def end(self) -> Any:
        """Go on to its end; raises what it raises."""
        while True:
            try:
                self.go_on()
            except StopIteration as over:
                return over.value

    def asked_to_its_end(self) -> list[Yielded]:
        """Go on to its end; return what it asked on the way."""
        asked: list[Yielded] = []
        while True:
            asked.append(self._asked)
            try:
                self.go_on()
            except StopIteration:
                return asked
