"""Accounts withheld because of time: those that rest, and those whose key expires soon.

Uses the API server's clock. Time only affects new claims: it frees no account and takes none from a holder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final

from components.account_pool.core.calls import PoolApi
from components.account_pool.core.keys import FREED
from components.account_pool.core.label_scheme import show_each
from components.account_pool.core.model import JsonObject, Member, list_data_writes, written_at
from components.durations import DURATION, moment, period
from components.errors import first_named, how_many
from components.labels import EXPIRES_AT

SEEN_AT: Final = "seenAt"
"""Key added to the metadata of an account: the Date header of the response that contained it."""

NOTICE: Final = "168h"
"""Default of `keyNotice`: how long before its end a key is reported, and assigned to no new holder."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Durations of a pool; empty if not set.

    `rest_for`: how long an account rests after it became free. `key_max_age`: maximum age of a key.
    `key_notice`: how long before its expiry a key is no longer given to new holders.
    """

    rest_for: str = ""
    key_max_age: str = ""
    key_notice: str = ""

    def render(self) -> dict[str, str]:
        """Return the keys that are set, as ConfigMap data."""
        said = {"restFor": self.rest_for, "keyMaxAge": self.key_max_age, "keyNotice": self.key_notice}
        return {key: text for key, text in said.items() if text}

    @classmethod
    def of(cls, data: Mapping[str, str]) -> Clock:
        """Parse ConfigMap data; raises ValueError."""
        texts = [data.get(key, "") for key in ("restFor", "keyMaxAge", "keyNotice")]
        if not all(DURATION.fullmatch(text) for text in texts if text):
            raise ValueError(texts)
        return cls(*texts)

    def over(self, api: PoolApi) -> PoolApi:
        """Return an API that adds to each account until when it rests, and when its key expires."""
        return show_each(api, self._show)

    def _show(self, body: JsonObject) -> JsonObject:
        metadata: JsonObject = body["metadata"]
        notes: Mapping[str, str] = metadata.get("annotations") or {}
        now, told = _moment(str(metadata.get(SEEN_AT) or "")), dict[str, object]()
        if freed := self.rest_for and written_at(metadata, FREED, "annotations"):
            until = datetime.fromisoformat(freed) + period(self.rest_for)
            told |= {"restsUntil": _text(until)} if now < until else {}
        written = data_written_at(metadata.get("managedFields") or ()) if self.key_max_age else None
        try:
            end = self._end(notes.get(EXPIRES_AT), written)
        except (ValueError, OverflowError):
            told["unfit"] = metadata.get("unfit") or f"{EXPIRES_AT} {notes[EXPIRES_AT]!r} is not a time"
        else:
            told |= {} if end is None else {"keyEnds": _text(end), "keyEndsSoon": self._is_soon(end, now)}
        return {**body, "metadata": {**metadata, **told}} if told else body

    def _end(self, expires_at: str | None, written: datetime | None) -> datetime | None:
        ends = [moment(expires_at)] if expires_at else []
        ends += [written + period(self.key_max_age)] if written else []
        return min(ends, default=None)

    def _is_soon(self, end: datetime, now: datetime) -> bool:
        return now >= end - period(self.key_notice or NOTICE)

    def declared(self, member: Member, expires_at: str | None) -> Member:
        """Return a member as it will be after the stack sets this `expiresAt`."""
        if expires_at is None:
            return member
        end = moment(expires_at)
        is_soon = self._is_soon(end, datetime.now(UTC))
        return replace(member, key_ends=_text(end), key_ends_soon=is_soon)


def data_written_at(managed: Iterable[JsonObject]) -> datetime | None:
    """Return when the data of a Secret was last written, according to its managedFields."""
    times = [str(entry["time"]) for entry in list_data_writes(managed) if entry.get("time")]
    return datetime.fromisoformat(max(times)) if times else None


def ending_lines(members: Iterable[Member]) -> Iterator[str]:
    """Return a line that reports the keys that expire soon, with their tenants."""
    soon = sorted((member for member in members if member.key_ends_soon), key=lambda one: one.key_ends)
    if soon:
        named = [f"{one.name} ({one.key_ends}{f', of {one.tenant}' if one.tenant else ''})" for one in soon]
        yield (
            f"{how_many(len(soon), 'account')} whose key ends soon, not given out: {first_named(named)}"
            "\n→ replace each key, and say in expiresAt when the new one ends"
        )


def _text(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


@lru_cache(maxsize=1)
def _read(date: str) -> datetime:
    return parsedate_to_datetime(date).astimezone(UTC)


def _moment(date: str) -> datetime:
    """Return the time of an answer; the current time if the server sent no Date."""
    try:
        return _read(date)
    except ValueError:
        return datetime.now(UTC)
