"""Forecast of a program's claims: one read of the pool, before any claim is declared.

Only the program knows all its claims, even if an update is targeted or several processes serve its providers.
It therefore reads the pool, and passes each claim its part as an input that no diff compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pulumi

from components.account_pool.core.clock import ending_lines
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.declared import Declaration
from components.account_pool.core.judgement import explain_cut
from components.account_pool.core.keys import KEY_ID
from components.account_pool.core.model import ClaimRequest
from components.account_pool.core.moving import as_moved
from components.account_pool.core.pool import Pool
from components.account_pool.core.rebirth import Marks, keep_away, marks_of_records
from components.account_pool.core.records import Record
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.forecast import evacuation, forecast
from components.account_pool.forecast.claims import leaving, vacancies
from components.account_pool.forecast.forecast import ForecastInput
from components.account_pool.forecast.skipping import forecast_reason, skips
from components.account_pool.roster import PoolRoster
from components.config.shards import Stacks
from components.connection import ClusterTarget
from components.dynamic import WARNING
from components.errors import CredfleetError, Misconfigured, NotAllowed, NotSignedIn
from components.naming import former_stack
from components.waiting import apply_to_unknowns


@dataclass(frozen=True, slots=True)
class KeyInUse:
    """Key of an account that a claim had when the program started, if it is or was rotated.

    `operation`: the rotation that put it in use; None if none is running. `is_received`: the claim has a
    receipt for it.
    """

    holder: str
    record: str
    account: str
    operation: str | None
    key: str | None
    is_received: bool


@dataclass(frozen=True, slots=True)
class ClaimForecasts:
    """Forecasts of the claims of a program by tenant and slot, and the messages about them.

    A pool that cannot be read has no forecasts: its claims are tried. `seen`: the pool, None if it was not
    read. `born`: marks of members without Secrets, from records. `missing`: those that no record names.
    """

    claims: Mapping[forecast.Claim, ForecastInput] = field(
        default_factory=dict[forecast.Claim, ForecastInput]
    )
    lines: Sequence[str] = ()
    seen: PoolSnapshot | None = None
    born: Mapping[str, Marks] = field(default_factory=dict[str, Marks])
    missing: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        target: ClusterTarget,
        declared: Declaration,
        claims: Sequence[ClaimRequest],
        *,
        elsewhere: bool = False,
    ) -> ClaimForecasts:
        """Read the pool. `elsewhere`: another stack declares it.

        Raises RunError if the pool was read and is invalid, which fails a preview.
        """
        if not claims and not declared.members:
            return cls()
        settings = declared.settings
        try:
            if elsewhere:
                settings = Pool.settings_of(target, declared.namespace) or PoolConfigMap()
            seen = Pool.snapshot(target, declared.namespace, None if elsewhere else settings.clock)
        except (Misconfigured, NotSignedIn) as error:
            raise pulumi.RunError(str(error)) from None
        except CredfleetError as error:
            return cls(lines=[*forecast.unseen_lines(declared.namespace, str(error))] if claims else ())
        missing = declared.members.keys() - {member.name for member in seen.members}
        of_missing = {name: declared.members[name] for name in missing}
        named = {
            name: keep_away(marks_of_records(name, one, seen.records), one, seen.quarantines.get(name))
            for name, one in of_missing.items()
        }
        born = {name: marks for name, marks in named.items() if marks is not None}
        snapshot = declared.applied_to(_as_moved(seen, claims, settings.partition_keys))
        members = (born.get(member.name, Marks()).on(member) for member in snapshot.members)
        snapshot = replace(snapshot, members=tuple(members))
        if not elsewhere:
            holds = replace(snapshot.holds, declared=settings.holds.declared)
            snapshot = replace(snapshot, consumers=settings.consumers, holds=holds)
        claims = sorted(claims, key=lambda claim: not claim.required)  # required ones first
        is_ours = Stacks.read(Path.cwd()).tenants_of(pulumi.get_stack())
        gone = leaving((each for each in snapshot.records if is_ours(each.tenant)), claims)
        moves = evacuation.plan_moves(snapshot, claims, settings.partition_keys, gone)
        held = {h: record.states.get(h, "") for record in snapshot.records for h in record.holders}
        skipped = {
            move.forecast
            for move in moves
            if skips(move.forecast.refusal, required=move.claim.required or move.claim.holder in held)
        }
        asked = [move.asked for move in moves]
        holders = {claim.holder for claim in claims}
        used = {one.member for one in snapshot.records if not holders.isdisjoint(one.holders)}
        told = [one for one in snapshot.members if not elsewhere or one.name in used]
        cut_off = _cut_off(snapshot, moves, declared.namespace)
        lines = (
            *(f"{WARNING}{one.place}: {one.problem}\n→ {one.fix}" for one in snapshot.problems),
            *(f"{WARNING}{line}" for line in ending_lines(told)),
            *forecast.lines(
                [move.forecast for move in moves],
                vacancies(snapshot, asked, settings.partition_keys),
                skipped,
            ),
            *(f"{WARNING}{tenant}/{slot}: {why}" for (tenant, slot), why in cut_off.items()),
            *forecast.joint_lines(snapshot, asked, settings.partition_keys),
        )
        return cls(
            {
                (claim := (move.claim.tenant, move.claim.slot)): {
                    **({"held": held[move.claim.holder]} if move.claim.holder in held else {}),
                    **_forecast(declared.namespace, move, is_skipped=move.forecast in skipped),
                    **({"cut": cut_off[claim]} if claim in cut_off else {}),
                }
                for move in moves
            },
            lines,
            seen,
            born,
            frozenset(missing - born.keys()),
        )

    def keys_of(self, claims: Sequence[ClaimRequest]) -> Mapping[str, KeyInUse]:
        """Return the accounts' keys that are or were rotated, by tenant/slot."""
        if self.seen is None:
            return {}
        members = {member.name: member for member in self.seen.members}
        held = {holder: record for record in self.seen.records for holder in record.holders}
        found: dict[str, KeyInUse] = {}
        for claim in claims:
            record = held.get(claim.holder)
            member = None if record is None else members.get(record.member)
            if record is None or member is None:
                continue
            operation, receipt = member.rotation, record.receipts.get(claim.holder)
            if operation is not None or receipt is not None:
                key = member.annotations.get(KEY_ID)
                is_received = operation in (None, receipt)
                found[f"{claim.tenant}/{claim.slot}"] = KeyInUse(
                    claim.holder, record.name, member.name, operation, key, is_received
                )
        return found

    def claims_after(self, roster: PoolRoster) -> Mapping[forecast.Claim, pulumi.Input[ForecastInput | None]]:
        """Return the forecasts, without values if the roster finds lost accounts."""
        if not self.missing:
            return self.claims
        return {
            claim: apply_to_unknowns(partial(self._unless_lost, known), roster.lost)
            for claim, known in self.claims.items()
        }

    def _unless_lost(self, known: ForecastInput, lost: Any) -> ForecastInput | None:
        return None if self.names_lost(lost) else known

    def names_lost(self, lost: Any) -> bool:
        """Return whether the roster names a missing member; False while unknown in a preview."""
        return isinstance(lost, dict) and not self.missing.isdisjoint(cast("dict[str, str]", lost))

    def tell_after(self, roster: PoolRoster, owner: str) -> None:
        """Report the forecasts once the roster has rejected nothing.

        `owner`: holder id of the program. If the roster has another stack's name, the claims report the
        error: to a renamed stack, its own accounts look like those of another stack.
        """

        def tell(former: Any, lost: Any) -> None:
            is_told = former_stack(former, owner) is None and not self.names_lost(lost)
            for line in self.lines if is_told else ():
                if line.startswith(WARNING):
                    pulumi.log.warn(line.removeprefix(WARNING), roster)
                else:
                    pulumi.log.info(line, roster)

        apply_to_unknowns(tell, roster.owner, roster.lost)


def _as_moved(seen: PoolSnapshot, claims: Sequence[ClaimRequest], keys: Sequence[str]) -> PoolSnapshot:
    """Raise RunError before anything changes if others hold a claim that would be renamed."""
    try:
        return as_moved(seen, claims, keys)
    except NotAllowed as error:
        raise pulumi.RunError(str(error)) from None


def _cut_off(
    snapshot: PoolSnapshot, moves: Sequence[evacuation.Move], namespace: str
) -> Mapping[forecast.Claim, str]:
    """Return the claims whose accounts are cut off from their tenants, each with the reason."""
    away = {member.name: member for member in snapshot.members if member.is_cut_off}
    cut = [record for record in snapshot.records if record.member in away]
    return {
        (move.claim.tenant, move.claim.slot): explain_cut(away[one.member], namespace)
        for move in moves
        for one in cut
        if _is_held(one, move.asked)
    }


def _is_held(record: Record, claim: ClaimRequest) -> bool:
    """Return whether a record is what the claim's holder has under the slot that it will have."""
    asked = (claim.tenant, claim.type, dict(claim.partition))
    is_there = asked == (record.tenant, record.partition.type, record.partition.given)
    return is_there and claim.holder in record.holders and (claim.spill or claim.slot == record.slot)


def _forecast(namespace: str, move: evacuation.Move, *, is_skipped: bool) -> ForecastInput:
    known = {} if move.generation is None else {"generation": move.generation}
    if move.forecast.refusal is None:
        return known
    if is_skipped:
        return {**known, "skipped": forecast_reason(namespace, move.forecast)}
    return {**known, "doomed": move.forecast.text}
