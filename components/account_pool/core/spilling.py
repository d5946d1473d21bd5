"""Which claim of a slot that spills a consumer uses: where it is, the fullest with room, or one more.

Such a slot is a series of claims, `main`, `main+1`, `main+2` and so on, each an ordinary record with an
account and a limit of its own. The limit is tested by the write that adds the holder, so who was too late
looks again, and who finds all of them full makes the next, whose fixed name is where two of them collide
(docs/design/claim-protocol.md, spilling).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from itertools import count

from components.account_pool.core.model import ClaimRequest, Record


def find_place(wanted: ClaimRequest, records: Iterable[Record], closed: Container[str] = ()) -> ClaimRequest:
    """Return the request at the slot of its series it goes to.

    records: of the tenant, as they were listed at one moment. closed: slots of accounts without new holders.
    """
    there = {record.slot: record for record in records if _is_in_series(record, wanted)}
    ordered = sorted(there, key=lambda slot: (len(slot), slot))
    held = next((slot for slot in ordered if wanted.holder in there[slot].holders), None)
    rooms = [slot for slot in ordered if slot not in closed and there[slot].has_room_for(wanted.holder)]
    fullest = max(rooms, key=lambda slot: len(there[slot].holders), default=None)
    one_more = next(slot for slot in _series(wanted.slot) if slot not in there)
    return replace(wanted, slot=held or fullest or one_more)


def _series(slot: str) -> Iterator[str]:
    yield slot
    yield from (f"{slot}+{number}" for number in count(1))


def _is_in_series(record: Record, wanted: ClaimRequest) -> bool:
    _, plus, number = record.slot.removeprefix(wanted.slot).rpartition("+")
    is_next = record.slot == f"{wanted.slot}+{number}" and number.isdecimal() and bool(plus)
    return (record.tenant, record.partition) == (wanted.tenant, wanted.place) and (
        record.slot == wanted.slot or is_next
    )
