"""Rename of a claim: its account moves to the new name, and nothing is claimed or released.

N1 creates the record of the new name as Bound, with the token that it takes the account from. N2 replaces
that token by its own on the member, in one write. N3 ends the former record. If a process dies in between,
both names lead to the account, and the next run completes the move (docs/design/claim-protocol.md, Moves).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count

from components.account_pool.core import changes, held_claims
from components.account_pool.core.calls import Create, Get, Kind, Pause, Steps
from components.account_pool.core.consumers import holder_in_words
from components.account_pool.core.model import ClaimRequest, Phase
from components.account_pool.core.records import Claimed, Record
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.steps import change_member, get_member, read_both, replace_record, write
from components.errors import NotAllowed, Withheld


def move(wanted: ClaimRequest, former: str, holder: str) -> Steps[Claimed | None]:
    """Return the claim under its new name; None if the holder has none under the former name.

    `former`: name of its former record. `holder`: its former holder. Raises NotAllowed, Withheld, LostMember.
    """
    for attempt in count():
        if attempt:
            yield Pause(attempt - 1)
        bodies = yield from read_both(Get(Kind.RECORD, former), Get(Kind.RECORD, wanted.record))  # N0
        old, new = (None if body is None else Record.parse(body) for body in bodies)
        is_held = old is not None and old.phase is Phase.BOUND and holder in old.holders
        if new is None and old is not None and is_held:
            held_claims.refuse_other_state(None if wanted.takes_over else old, holder, wanted.state)
            _refuse_others(old, wanted, holder)
            member = yield from get_member(old.member)
            if member is None or not member.bears(old.token):
                return None
            if old.limit == 1 or (yield from replace_record(replace(old, limit=1), wanted.namespace)):
                # N1: from here on no other holder can join the claim under its former name.
                yield from write(Create(Kind.RECORD, _renamed(old, wanted).render(wanted.namespace)))
            continue
        if new is not None and new.phase is Phase.RELEASING:
            yield from held_claims.finish(new)
            continue
        if new is None or new.moves is None or (is_held and old is not None and old.token != new.moves):
            if is_held and new is not None:
                raise _taken(new)
            return None
        held_claims.refuse_other_state(None if wanted.takes_over else new, wanted.holder, wanted.state)
        member = yield from get_member(new.member)
        if member is not None and member.bears(new.moves):
            yield from change_member(changes.follow(member, new))  # N2
            continue
        if wanted.holder not in new.holders:
            return None
        if member is None or not new.is_carried_by(member):
            raise held_claims.lost(new, member)
        if old is not None and old.token == new.moves:
            yield from held_claims.release(former, holder, wanted.namespace)  # N3
        claimed = Claimed.by(new, member, wanted.holder, reused=True)
        amended = held_claims.Amendment(wanted.holder, new.policy, new.limit, wanted.state, takes_over=True)
        takeover = held_claims.update(new.name, wanted.holder, amended, wanted.namespace)
        return (yield from takeover) if new.is_of_another_state(wanted.holder, wanted.state) else claimed
    raise AssertionError


def _renamed(old: Record, wanted: ClaimRequest) -> Record:
    return replace(
        old,
        name=wanted.record,
        uid="",
        resource_version="",
        tenant=wanted.tenant,
        slot=wanted.slot,
        attempt=1,
        limit=wanted.limit,
        holders={wanted.holder: 1},
        retired=0,
        former_uid="",
        states={} if wanted.state is None else {wanted.holder: wanted.state},
        moves=old.token,
    )


def _refuse_others(old: Record, wanted: ClaimRequest, holder: str) -> None:
    """Raise NotAllowed if others hold the account under its former name and would lose it."""
    if others := sorted(holder_in_words(each) for each in old.holders if each != holder):
        raise NotAllowed(
            place=f"claim {old.tenant}/{old.slot}",
            problem=f"{', '.join(others)} holds account {old.member} under this name as well, and would lose"
            f" it if it were called {wanted.tenant}/{wanted.slot}",
            fix="keep the name while others hold the account",
        )


def _taken(new: Record) -> Withheld:
    return Withheld(
        place=f"claim {new.tenant}/{new.slot}",
        problem=f"it has account {new.member} already, so nothing can be moved to this name",
        fix="release that claim first, or take `previously` out",
    )


def as_moved(snapshot: PoolSnapshot, claims: Iterable[ClaimRequest], keys: Sequence[str]) -> PoolSnapshot:
    """Return the pool as it will be after all renamed claims have moved.

    Raises NotAllowed if others hold one of them.
    """
    records = {record.name: record for record in snapshot.records}
    members = {member.name: member for member in snapshot.members}
    for claim in claims:
        for holder in claim.previously:
            for old in [each for each in records.values() if holder in each.holders]:
                tenant_slot = claim.under(holder)
                slot = claim.slot + old.slot.removeprefix(tenant_slot.slot)
                wanted = replace(claim, slot=slot).placed(snapshot.namespace, keys)
                if old.phase is not Phase.BOUND or old.partition != wanted.place:
                    continue
                _refuse_others(old, wanted, holder)
                new = records.get(wanted.record) or replace(_renamed(old, wanted), uid=old.uid)
                del records[old.name]
                records[new.name] = new
                member = members.get(new.member)
                if member is not None and new.moves is not None and member.bears(new.moves):
                    members[member.name] = changes.apply(member, changes.follow(member, new))
    return replace(snapshot, records=tuple(records.values()), members=tuple(members.values()))
