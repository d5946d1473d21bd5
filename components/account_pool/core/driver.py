"""Driver of protocol operations: makes the calls, waits, and enforces the timeout."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from components.account_pool.core import calls
from components.errors import Unreachable
from components.http_answers import pause

_SIDE_BY_SIDE: Final = 32

T = TypeVar("T")


class Driver:
    """Driver of operations on one namespace; thread-safe."""

    def __init__(
        self, api: calls.PoolApi, place: str, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._api = api
        self._place = place
        self._sleep = sleep
        self._aside = ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="credfleet-read")

    def run(
        self,
        steps: calls.Steps[T],
        seconds: float,
        *,
        patience: float | None = None,
        ask: Callable[[calls.AskProgram], calls.Told] | None = None,
    ) -> T:
        """Run an operation to its end; raises Unreachable on timeout, which is safe at any point.

        `patience`: timeout for the first answer, by default `seconds`. `ask`: runs the operator's key
        program; its time does not count.
        """
        began = time.monotonic()
        limit = seconds if patience is None else patience
        answer: calls.Answer = None
        last, wished = "", 0.0
        has_written = False
        while True:
            try:
                asked = steps.send(answer)
            except StopIteration as end:
                return end.value
            if time.monotonic() - began > limit:
                steps.close()
                raise Unreachable(place=self._place, seconds=limit, last=last, has_begun=has_written)
            has_written = has_written or isinstance(asked, calls.Write)
            match asked:
                case calls.Pause(attempt):
                    self._sleep(pause(attempt, wished))
                    answer = None
                    continue
                case calls.AskProgram():
                    if ask is None:
                        raise TypeError(asked.verb)
                    asked_at = time.monotonic()
                    answer = ask(asked)
                    began += time.monotonic() - asked_at
                    has_written = True
                    continue
                case calls.Parallel(first, second):
                    other = self._aside.submit(self._api, second)
                    answer = calls.Pair(self._api(first), other.result())
                    silences = [_silence(answer.first), _silence(answer.second)]
                case _:
                    answer = self._api(asked)
                    silences = [_silence(answer)]
            last = next((each.text for each in silences if each), last)
            wished = max((each.retry_after for each in silences if each), default=0.0)
            limit = limit if all(silences) else seconds


def _silence(answer: calls.Result) -> calls.Unknown | None:
    return answer if isinstance(answer, calls.Unknown) else None
