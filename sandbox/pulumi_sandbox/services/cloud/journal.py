"""Which requests a service got, in their order: what a test asks to see who came first."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import count
from threading import Lock

_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Neither its body nor its headers are kept: they hold secrets.

    began, ended: places in the one order of all beginnings and ends. status: None when its answer was lost.
    """

    began: int
    ended: int
    method: str
    path: str
    query: str
    status: int | None


class Journal:
    """The latest requests, in the order in which they ended; any thread may read."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = Lock()
        self._moments = count(1)
        self._requests: deque[Request] = deque(maxlen=_KEPT)

    def moment(self) -> int:
        """Return the next place in the order."""
        return next(self._moments)

    def add(self, request: Request) -> None:
        """Note a request that has ended."""
        with self._lock:
            self._requests.append(request)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._requests.clear()

    @property
    def requests(self) -> list[Request]:
        """All that are kept, in the order in which they began."""
        with self._lock:
            return sorted(self._requests, key=lambda request: request.began)
