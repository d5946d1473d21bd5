"""Quotas of consumers: one ConfigMap for each consumer and type, updated by compare-and-swap.

The pool's stack writes the maximum. Claims enter their records, by name and uid, before they bind an account.
Entries of deleted records need no removal, since a uid is never reused: a claim that finds the quota full
reads the records, and drops the entries whose record is gone (docs/design/claim-protocol.md, Quotas).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from components.account_pool.core.calls import Kind, Pause, Replace, Steps
from components.account_pool.core.consumers import Consumer
from components.account_pool.core.keys import POOL_QUOTA
from components.account_pool.core.model import ClaimRequest, JsonObject, Phase
from components.account_pool.core.records import Record
from components.account_pool.core.selection import records_of_type
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.steps import list_all, read, write
from components.documents import read_json
from components.errors import Misconfigured, QuotaReached
from components.labels import HYPERSCALER_TYPE

ENTERED: Final = "entered"
COUNTED_IN: Final = "countedIn"
"""Keys that claims write: the counted records, and the uid of the ConfigMap in which they were counted."""


def quota_name(consumer: str, account_type: str) -> str:
    """Return the ConfigMap name of a quota."""
    text = json.dumps([consumer, account_type], separators=(",", ":"))
    return "quota-" + hashlib.sha256(text.encode()).hexdigest()[:40]


def quota_labels(account_type: str) -> dict[str, str]:
    """Return the ConfigMap labels of a quota."""
    return {POOL_QUOTA: "true", HYPERSCALER_TYPE: account_type}


def quota_data(consumer: str, account_type: str, most: int) -> dict[str, str]:
    """Return the ConfigMap data that the pool's stack declares for a quota."""
    return {"consumer": consumer, "type": account_type, "most": str(most)}


@dataclass(frozen=True, slots=True)
class Room:
    """Quota as it was read, and its live entries.

    `is_whole`: `entries` equal the stored ones; no entry is known to be dead or missing.
    """

    body: JsonObject
    entries: frozenset[str]
    is_whole: bool

    def with_entry(self, entry: str) -> JsonObject:
        """Return the ConfigMap with one more entry, for a write at its resourceVersion."""
        entered = json.dumps(sorted(self.entries | {entry}))
        written = {ENTERED: entered, COUNTED_IN: self.body["metadata"]["uid"]}
        return {**self.body, "data": {**self.body["data"], **written}}


def look(wanted: ClaimRequest, consumer: Consumer, entry: str | None = None) -> Steps[Room]:
    """Q1: check that a claim fits in the quota of its consumer.

    `entry`: of the record, if it exists. Raises QuotaReached, and Misconfigured if the quota is missing or
    unreadable.
    """
    body = yield from read(Kind.RECORD, quota_name(consumer.name, wanted.place.type))
    most, entries = _read(body, wanted, consumer)
    if body is not None and entries is not None and (entry in entries or len(entries) < most):
        return Room(body, entries, is_whole=True)
    found = PoolSnapshot.of((), (yield from list_all(Kind.RECORD, records_of_type(wanted.place.type))))
    counted = {each for each in entries or () if each.partition(".")[0] in found.unreadable}
    having: list[Record] = []
    for record in found.records:
        if entry_of(record) in (entries or ()) or (record.phase is Phase.BOUND and consumer.has(record)):
            counted.add(entry_of(record))
            having.append(record)
    if entry not in counted and len(counted) >= most:
        who = ", ".join(sorted(f"{one.tenant}/{one.slot}" for one in having))
        raise QuotaReached(consumer=consumer.name, account_type=wanted.place.type, most=most, who=who)
    return Room(body or {}, frozenset(counted), is_whole=False)


def enter(wanted: ClaimRequest, consumer: Consumer, record: Record, room: Room | None = None) -> Steps[None]:
    """Q2: enter a record in the quota of its consumer, unless it is there; raises as `look`."""
    entry = entry_of(record)
    for attempt in count():
        if attempt:
            yield Pause(attempt - 1)
        if room is None:
            room = yield from look(wanted, consumer, entry)
        if room.is_whole and entry in room.entries:
            return
        if (yield from write(Replace(Kind.RECORD, room.with_entry(entry)))) is not None:
            return
        room = None
    raise AssertionError


def entry_of(record: Record) -> str:
    """Return the quota entry of a record."""
    return f"{record.name}.{record.uid}"


def _read(
    body: JsonObject | None, wanted: ClaimRequest, consumer: Consumer
) -> tuple[int, frozenset[str] | None]:
    """Return the maximum and the entries; None if the entries belong to another uid of the ConfigMap."""
    name = quota_name(consumer.name, wanted.place.type)
    data: Mapping[str, str] = (body or {}).get("data") or {}
    try:
        most = int(data["most"])
        listed: list[Any] = list[Any]() + read_json(data.get(ENTERED, "[]"))
    except (KeyError, ValueError, TypeError):
        raise Misconfigured(
            place=f"ConfigMap {name}",
            problem=f"it says how many {wanted.place.type} accounts consumer {consumer.name} may have,"
            f" and {'is not there' if body is None else 'cannot be read'}, so no more are given",
            fix="run `pulumi up --refresh` in the stack that declares the pool, which writes it again",
        ) from None
    is_counted = body is not None and data.get(COUNTED_IN) == body["metadata"]["uid"]
    return most, frozenset(map(str, listed)) if is_counted else None
