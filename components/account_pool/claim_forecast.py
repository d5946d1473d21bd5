"""What the claims of a program can expect: one look at the pool, before any of them is declared.

The program alone knows all of its claims, whatever part of it an update is limited to and however many
processes serve its providers. So it looks, and each claim gets its part as an input that no diff compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pulumi

from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.declared import Declaration
from components.account_pool.core.model import ClaimRequest
from components.account_pool.core.pool import Pool
from components.account_pool.forecast import evacuation, forecast
from components.account_pool.forecast.claims import leaving, vacancies
from components.account_pool.forecast.forecast import ForecastInput
from components.account_pool.forecast.skipping import forecast_reason, skips
from components.account_pool.roster import PoolRoster
from components.config.shards import Stacks
from components.connection import ClusterTarget
from components.dynamic import WARNING
from components.errors import CredfleetError, Misconfigured, NotSignedIn
from components.naming import former_stack


@dataclass(frozen=True, slots=True)
class ClaimForecasts:
    """What the claims of a program can expect, by tenant and slot, and what is said of it.

    Nothing is expected of a pool that cannot be seen: its claims are tried.
    """

    claims: Mapping[forecast.Claim, ForecastInput] = field(
        default_factory=dict[forecast.Claim, ForecastInput]
    )
    lines: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        target: ClusterTarget,
        declared: Declaration,
        claims: Sequence[ClaimRequest],
        *,
        elsewhere: bool = False,
    ) -> ClaimForecasts:
        """Look at the pool. elsewhere: another stack declares it.

        Raises RunError for one that was seen and makes no sense: that is a reason to refuse a preview.
        """
        if not claims:
            return cls()
        try:
            if elsewhere:
                settings = Pool.settings_of(target, declared.namespace) or PoolConfigMap()
                declared = replace(declared, partition_keys=settings.partition_keys)
            snapshot = declared.applied_to(Pool.snapshot(target, declared.namespace))
        except (Misconfigured, NotSignedIn) as error:
            raise pulumi.RunError(str(error)) from None
        except CredfleetError as error:
            return cls(lines=[*forecast.unseen_lines(declared.namespace, str(error))])
        if not elsewhere:
            snapshot = replace(snapshot, consumers=declared.consumers)
        claims = sorted(claims, key=lambda claim: not claim.required)  # what fails the update comes first
        is_ours = Stacks.read(Path.cwd()).tenants_of(pulumi.get_stack())
        gone = leaving((each for each in snapshot.records if is_ours(each.tenant)), claims)
        moves = evacuation.plan_moves(snapshot, claims, declared.partition_keys, gone)
        holders = {holder for record in snapshot.records for holder in record.holders}
        skipped = [
            skips(move.forecast.refusal, required=claim.required or claim.holder in holders)
            for claim, move in zip(claims, moves, strict=True)
        ]
        asked = [evacuation.here(claim, move.generation) for claim, move in zip(claims, moves, strict=True)]
        expected = [move.forecast for move in moves]
        lines = (
            *(f"{WARNING}{one.place}: {one.problem}\n→ {one.fix}" for one in snapshot.problems),
            *forecast.lines(
                expected,
                vacancies(snapshot, asked, declared.partition_keys),
                [each for each, is_skipped in zip(expected, skipped, strict=True) if is_skipped],
            ),
            *forecast.joint_lines(snapshot, asked, declared.partition_keys),
        )
        return cls(
            {
                (claim.tenant, claim.slot): _forecast(declared.namespace, move, is_skipped=is_skipped)
                for claim, move, is_skipped in zip(claims, moves, skipped, strict=True)
            },
            lines,
        )

    def tell_after(self, roster: PoolRoster, owner: str) -> None:
        """Say it once the roster has found nothing to refuse.

        owner: in whose name the program claims; a roster of another stack's name is left to the claims, which
        refuse: to a stack that was renamed, its own accounts look like those of another.
        """

        def tell(known: Any) -> None:
            for line in self.lines if former_stack(known, owner) is None else ():
                if line.startswith(WARNING):
                    pulumi.log.warn(line.removeprefix(WARNING), roster)
                else:
                    pulumi.log.info(line, roster)

        roster.owner.apply(tell, run_with_unknowns=True)


def _forecast(namespace: str, move: evacuation.Move, *, is_skipped: bool) -> ForecastInput:
    known = {} if move.generation is None else {"generation": move.generation}
    if move.forecast.refusal is None:
        return known
    if is_skipped:
        return {**known, "skipped": forecast_reason(namespace, move.forecast)}
    return {**known, "doomed": move.forecast.text}
