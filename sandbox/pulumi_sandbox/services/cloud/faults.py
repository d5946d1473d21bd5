"""What goes wrong on demand: refusals, delays, answers that are lost although the work was done."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the next requests that match.

    path: a regular expression, searched in the path. method: None for any. times: how many requests it meets.
    seconds: wait so long first. status: refuse with this HTTP status, so that the service never sees the
    request. lost: let the service do its work, then close the connection instead of answering.
    """

    path: str = ""
    method: str | None = None
    times: int = 1
    seconds: float = 0.0
    status: int | None = None
    lost: bool = False

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Read one; raises TypeError for a field there is none of, ValueError for a broken expression."""
        fault = cls(**given)
        try:
            re.compile(fault.path)
        except re.error as error:
            raise ValueError(f"path: {error}") from None
        return fault

    def meets(self, method: str, path: str) -> bool:
        """Whether a request is one of those."""
        return self.method in (None, method) and re.search(self.path, path) is not None


class Faults:
    """Faults that wait for their requests, in the order they were asked for; any thread may ask."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Let a fault wait."""
        with self._lock:
            self._waiting.append(fault)

    def clear(self) -> None:
        """Forget those that still wait."""
        with self._lock:
            self._waiting.clear()

    @property
    def waiting(self) -> list[Fault]:
        """Those that still wait, with the times that are left to them."""
        with self._lock:
            return list(self._waiting)

    def take(self, method: str, path: str) -> Fault | None:
        """Return the fault a request meets, and count it down."""
        with self._lock:
            for index, fault in enumerate(self._waiting):
                if fault.meets(method, path):
                    left = replace(fault, times=fault.times - 1)
                    self._waiting[index : index + 1] = [left] if left.times > 0 else []
                    return fault
        return None
