"""Receipts: each holder records that everything it derives from an account uses the current key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from components.account_pool.core.calls import Pause, Steps
from components.account_pool.core.keys import KEY_OPERATION
from components.account_pool.core.model import Member
from components.account_pool.core.steps import get_member, get_record, record_of, replace_record


@dataclass(frozen=True, slots=True)
class Lagging:
    """Holder that might still use the former key of an account, and why."""

    holder: str
    why: str


def list_lagging(member: Member) -> Steps[Sequence[Lagging]]:
    """Return the holders of an account without a receipt for the key in use."""
    found: list[Lagging] = []
    for token in member.tokens:
        record, is_alive = yield from record_of(token)
        if record is None or not is_alive:
            found.append(Lagging(token.record, "its claim is gone, and the account was not released"))
            continue
        where = f"tenant {record.tenant}, slot {record.slot}"
        in_use = member.annotations.get(KEY_OPERATION)
        found += (
            Lagging(holder, where)
            for holder in sorted(record.holders)
            if record.receipts.get(holder) != in_use
        )
    return found


def give_receipt(name: str, holder: str, operation: str, namespace: str) -> Steps[bool]:
    """Record that everything a holder derives from the account uses the key of this rotation.

    `operation`: rotation that put the key in use, read before anything was derived. Returns False and writes
    nothing if another key is in use, or the holder no longer has the account.
    """
    for attempt in count():
        record = yield from get_record(name)
        member = None if record is None else (yield from get_member(record.member))
        if record is None or holder not in record.holders or member is None:
            return False
        if member.rotation != operation:
            return False
        if record.receipts.get(holder) == operation:
            return True
        given = replace(record, receipts={**record.receipts, holder: operation})
        if (yield from replace_record(given, namespace)) is not None:
            return True
        yield Pause(attempt)
    raise AssertionError
