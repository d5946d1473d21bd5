"""What the claims of one process do for each other: they take turns, and choose different accounts.

Many that begin together read the same list, so that some choose the same account, and each ends when nearly
all do. In turns those before are done sooner, and those after see what these took; and of those that run,
none chooses what another is about to take while there is anything else. Both are courtesies, never locks:
who has waited long enough goes on without a turn, and only the API server says who gets an account.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock, Semaphore

from components.account_pool.model import JsonObject, Member, Wanted
from components.account_pool.selection import Choose, next_to_take


class Turns:
    """Lets in so many claims at once; safe for any number of threads.

    seconds: how long a claim waits for its turn at most.
    """

    def __init__(self, at_once: int, seconds: float) -> None:
        self._free = Semaphore(at_once)
        self._seconds = seconds
        self._lock = Lock()
        self._chosen: dict[str, str] = {}
        """Which member each claim is about to take, by the name of its record."""

    @contextmanager
    def taken(self) -> Generator[Choose]:
        """Wait for a turn; yields how the claim chooses in it."""
        records = set[str]()

        def choose(wanted: Wanted, untried: list[JsonObject]) -> Member | None:
            records.add(wanted.record)
            return self._choose(wanted, untried)

        is_in_time = self._free.acquire(timeout=self._seconds)
        try:
            yield choose
        finally:
            with self._lock:
                for record in records:
                    self._chosen.pop(record, None)
            if is_in_time:
                self._free.release()

    def _choose(self, wanted: Wanted, untried: list[JsonObject]) -> Member | None:
        """Put last what other claims are about to take. A shared member has room for several."""
        if wanted.partition.shared:
            return next_to_take(wanted, untried)
        with self._lock:
            self._chosen.pop(wanted.record, None)
            spoken_for = {*self._chosen.values()}
            untried.sort(key=lambda body: body["metadata"]["name"] in spoken_for)
            member = next_to_take(wanted, untried)
            if member is not None:
                self._chosen[wanted.record] = member.name
        return member
