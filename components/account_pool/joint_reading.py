"""One read for all threads that ask the same at the same time.

A read shows every write done before it was asked for, so nobody may be given the answer to one that was
already under way. Who asks meanwhile waits for the next, which begins when that one has ended and is made
once for all who wait. So a hundred claims at once read the free accounts a few times, and one alone at once.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Lock
from typing import Generic, TypeVar

Query = TypeVar("Query")
Answer = TypeVar("Answer")


class JointReading(Generic[Query, Answer]):
    """Joins equal questions; safe for any number of threads."""

    def __init__(self, ask: Callable[[Query], Answer]) -> None:
        self._ask = ask
        self._lock = Lock()
        self._under_way: dict[Query, Future[Answer]] = {}
        self._next: dict[Query, Future[Answer]] = {}

    def __call__(self, query: Query) -> Answer:
        """Return an answer that was asked for after this call began."""
        with self._lock:
            joined, before = self._next.get(query), self._under_way.get(query)
            own = Future[Answer]()
            if joined is None:
                self._next[query] = own
        if joined is not None:
            return joined.result()
        if before is not None:
            wait([before])
        with self._lock:
            self._under_way[query] = self._next.pop(query)
        try:
            own.set_result(self._ask(query))
        except BaseException as error:
            own.set_exception(error)
            raise
        finally:
            with self._lock:
                if self._under_way.get(query) is own:
                    del self._under_way[query]
        return own.result()
