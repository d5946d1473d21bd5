"""What the claims of one process do for each other: none chooses what another is about to take.

Many that begin together read the same list, so that some would choose the same account. This is a courtesy,
never a lock: only the API server says who gets an account.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

from components.account_pool.model import JsonObject, Member, Wanted
from components.account_pool.selection import Choose, next_to_take


class Turns:
    """Knows which member each running claim is about to take; safe for any number of threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._chosen: dict[str, str] = {}
        """Which member each claim is about to take, by the name of its record."""

    @contextmanager
    def taken(self) -> Generator[Choose]:
        """Yield how a claim chooses as long as it runs."""
        records = set[str]()

        def choose(wanted: Wanted, untried: list[JsonObject]) -> Member | None:
            records.add(wanted.record)
            return self._choose(wanted, untried)

        try:
            yield choose
        finally:
            with self._lock:
                for record in records:
                    self._chosen.pop(record, None)

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
