"""Evacuation: the next generation of a slot gets another account before the present one is released.

An operator marks an account. The next update of a stack that claims it claims another account under the next
generation of the slot, moves all dependents to it, and releases the marked one at its end. A generation is an
ordinary slot with its own record: `main`, `main~1`, `main~2` (docs/adr/0008-evacuation-by-generations.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from components.account_pool.core.model import ClaimRequest, Member
from components.account_pool.core.records import Record
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.forecast.claims import ClaimForecast, ForecastKind, forecast_claims

_SEPARATOR: Final = "~"

_Place: TypeAlias = tuple[str, str, frozenset[tuple[str, str]], str]
"""Tenant, account type, partition and slot: the same slot name in two partitions is two slots."""


def slot_of(slot: str, generation: int) -> str:
    """Return the name of a slot's generation in the pool."""
    return f"{slot}{_SEPARATOR}{generation}" if generation else slot


def slot_and_generation(named: str) -> tuple[str, int]:
    """Return the slot and generation of a name in the pool."""
    slot, separator, number = named.rpartition(_SEPARATOR)
    return (slot, int(number)) if separator and slot and number.isdecimal() else (named, 0)


@dataclass(frozen=True, slots=True)
class SlotStanding:
    """Generation of a claim's slot.

    `generation`: the one to use, None if the slot has none. `leaves`: the account it would leave for that.
    `present`: the generation that its holder has, None if it has none.
    """

    generation: int | None = None
    leaves: str | None = None
    present: int | None = None


@dataclass(frozen=True, slots=True)
class Generations:
    """Generations of all slots. `leaving`: the accounts to be left."""

    records: Mapping[_Place, Sequence[tuple[int, Record]]]
    leaving: frozenset[str] = frozenset()

    @classmethod
    def of(cls, records: Sequence[Record], members: Sequence[Member] = ()) -> Generations:
        """Collect them from a read of the pool."""
        found: dict[_Place, list[tuple[int, Record]]] = defaultdict(list)
        for record in records:
            slot, generation = slot_and_generation(record.slot)
            if not (part := record.partition).shared:
                place = record.tenant, part.type, frozenset(part.given.items()), slot
                found[place].append((generation, record))
        return cls(found, frozenset(member.name for member in members if member.is_to_be_left))

    def standing(self, claim: ClaimRequest) -> SlotStanding:
        """Return a claim's generation: its holder's, otherwise that of others; the next if that must be left.

        A claim that is shared or spills has no generations.
        """
        is_whole = claim.shared or claim.spill
        place = claim.tenant, claim.type, frozenset(claim.partition.items()), claim.slot
        found = () if is_whole else self.records.get(place, ())
        if not found:
            return SlotStanding()
        held = [each for each in found if claim.holder in each[1].holders]
        stays = [each for each in found if each[1].member not in self.leaving]
        if stays:
            best = [each for each in stays if each in held] or stays
            return SlotStanding(max(number for number, _ in best))
        latest, record = max(held or found, key=lambda each: each[0])
        return SlotStanding(max(number for number, _ in found) + 1, record.member, latest if held else None)


def here(claim: ClaimRequest, generation: int | None) -> ClaimRequest:
    """Return the claim under its name in the pool."""
    return replace(claim, slot=slot_of(claim.slot, generation or 0))


def among(claim: ClaimRequest, records: Sequence[Record]) -> ClaimRequest:
    """Return the claim under the name it has in these records: its holder's, otherwise that of others."""
    return here(claim, Generations.of(records).standing(claim).generation)


@dataclass(frozen=True, slots=True)
class Move:
    """Forecast of a claim, and the generation of its slot; None if unknown."""

    claim: ClaimRequest
    forecast: ClaimForecast
    generation: int | None

    @property
    def asked(self) -> ClaimRequest:
        """Claim under its name in the pool."""
        return here(self.claim, self.generation)


def plan_moves(
    snapshot: PoolSnapshot,
    claims: Sequence[ClaimRequest],
    partition_keys: Sequence[str],
    leaving: Iterable[Record] = (),
) -> Sequence[Move]:
    """Return the forecasts of all claims together, including those that must leave their account.

    A claim that would get no other account keeps its present one. `leaving`: claims released by the update.
    """
    generations = Generations.of(snapshot.records, snapshot.members)
    stands = [generations.standing(claim) for claim in claims]
    asked = [here(claim, one.generation) for claim, one in zip(claims, stands, strict=True)]
    first = forecast_claims(snapshot, asked, partition_keys, leaving)
    return [_move(*each) for each in zip(claims, stands, first, strict=True)]


def _move(claim: ClaimRequest, standing: SlotStanding, forecast: ClaimForecast) -> Move:
    told = replace(forecast, slot=claim.slot)
    if standing.leaves is not None and told.refusal is None:
        told = replace(told, text=f"leaves {standing.leaves}: {told.text}")
    elif standing.leaves is not None and standing.present is not None:
        text = f"keeps {standing.leaves}, which is to be left: {told.text}"
        kept = replace(told, kind=ForecastKind.REUSE, text=text, member=standing.leaves, refusal=None)
        return Move(claim, kept, standing.present)
    return Move(claim, told, standing.generation)
