"""Which free accounts are not given out yet: by what the API server says of then and now.

A time judges a claim only. It frees no account: one that rests is free already, and waits for nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final

from components.account_pool.core.calls import PoolApi
from components.account_pool.core.keys import FREED
from components.account_pool.core.label_scheme import show_each
from components.account_pool.core.model import JsonObject, written_at

SEEN_AT: Final = "seenAt"
"""In the metadata of an account: the Date of the answer that showed it."""


@dataclass(frozen=True, slots=True)
class Rest:
    """How long an account rests after it became free, before it is given out again."""

    length: timedelta = timedelta()

    def over(self, api: PoolApi) -> PoolApi:
        """Return an API that says of each account until when it rests."""
        return show_each(api, self._show) if self.length else api

    def _show(self, body: JsonObject) -> JsonObject:
        metadata: JsonObject = body["metadata"]
        freed = written_at(metadata, FREED, "annotations")
        until = datetime.fromisoformat(freed) + self.length if freed else None
        if until is None or until <= _moment(str(metadata.get(SEEN_AT) or "")):
            return body
        return {**body, "metadata": {**metadata, "restsUntil": f"{until:%Y-%m-%dT%H:%M:%SZ}"}}


@lru_cache(maxsize=1)
def _read(date: str) -> datetime:
    return parsedate_to_datetime(date).astimezone(UTC)


def _moment(date: str) -> datetime:
    """Return when an answer was given; of a server that does not say so, when it is read."""
    try:
        return _read(date)
    except ValueError:
        return datetime.now(UTC)
