"""Which accounts are not given out because of time: those that rest, and those whose key ends soon.

By the API server's clock. A time judges a claim only: it frees no account, and takes none from anybody.
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
"""In the metadata of an account: the Date of the answer that showed it."""

NOTICE: Final = "168h"
"""How long before its end a key is told of, and given to no new holder, where a pool does not say so."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The durations of a pool, empty where it says none.

    rest_for: how long an account rests after it became free. key_max_age: how old a key may become.
    key_notice: how long before its end a key is given to no new holder.
    """

    rest_for: str = ""
    key_max_age: str = ""
    key_notice: str = ""

    def render(self) -> dict[str, str]:
        """Return what the pool says of it."""
        said = {"restFor": self.rest_for, "keyMaxAge": self.key_max_age, "keyNotice": self.key_notice}
        return {key: text for key, text in said.items() if text}

    @classmethod
    def of(cls, data: Mapping[str, str]) -> Clock:
        """Read what a pool says; raises ValueError."""
        texts = [data.get(key, "") for key in ("restFor", "keyMaxAge", "keyNotice")]
        if not all(DURATION.fullmatch(text) for text in texts if text):
            raise ValueError(texts)
        return cls(*texts)

    def over(self, api: PoolApi) -> PoolApi:
        """Return an API that says of each account until when it rests, and when its key ends."""
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
        """Return a member as it is once its key ends when the stack says so from now on."""
        if expires_at is None:
            return member
        end = moment(expires_at)
        is_soon = self._is_soon(end, datetime.now(UTC))
        return replace(member, key_ends=_text(end), key_ends_soon=is_soon)


def data_written_at(managed: Iterable[JsonObject]) -> datetime | None:
    """Return when the data of a Secret was last written, as the API server booked it."""
    times = [str(entry["time"]) for entry in list_data_writes(managed) if entry.get("time")]
    return datetime.fromisoformat(max(times)) if times else None


def ending_lines(members: Iterable[Member]) -> Iterator[str]:
    """Say which keys end soon, and of whose accounts."""
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
    """Return when an answer was given; of a server that does not say so, when it is read."""
    try:
        return _read(date)
    except ValueError:
        return datetime.now(UTC)
