"""Which holders of an account have the key in use: each says in its record that all it makes has it."""

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
    """Who may still use the former key of an account, and why."""

    holder: str
    why: str


def list_lagging(member: Member) -> Steps[Sequence[Lagging]]:
    """Return who holds an account and has not said that all it makes of it has the key in use."""
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
    """Write into the record of a claim that all that its holder made of the account has the key in use.

    operation: what brought that key into use, as it was before any of it was made. False: nothing is written,
    since another key is in use by now, or the holder has the account no more.
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
