"""`credfleet pool explain`: why a claim gets its account, or none; nothing is written."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from components.account_pool.core.model import ClaimRequest
from components.account_pool.forecast.explanation import Candidate, Explanation, explain
from operations.cli.answer import CommandResult, Part, VerdictLine
from operations.cli.tables import Column, Table
from operations.pool.access import PoolTarget
from operations.pool.claims import DEFAULT_SLOT, in_its_slot, named_slots, place_request
from operations.pool.options import ClaimOptions

_SHOWN: Final = 20
"""Maximum number of accounts in a table; JSON has all."""


def explain_claim(asked: ClaimOptions, where: PoolTarget) -> CommandResult:
    """Return the result of a claim if made now, and why; raises as `place_request` and `Pool.open`."""
    request, rule = place_request(asked, where.stack)
    pool = where.open()
    look = pool.look()
    named = named_slots(request, look.records) if request.slot == DEFAULT_SLOT else ()
    if asked.slot is None and len(named) == 1:
        request = replace(request, slot=named[0])
    request = in_its_slot(asked, request, look.records)
    explanation = explain(look, request, pool.settings.partition_keys)
    expected = explanation.expected
    about = f"tenant {request.tenant}, slot {request.slot}, {_asked(request, rule)}"
    return CommandResult(
        as_document(where.namespace, request, rule, explanation),
        [
            VerdictLine(expected.refusal is None, f"{about}: {expected.text}"),
            _claim(explanation),
            *(
                f"The tenant has {other.member} under slot {other.slot} ({other.partition})."
                for other in explanation.others
            ),
            *_candidates(explanation.candidates),
        ],
    )


def as_document(
    namespace: str, request: ClaimRequest, rule: str | None, explanation: Explanation
) -> dict[str, Any]:
    """Return an explanation as a JSON document; `claim` is null without one, `rule` without a plan."""
    claim = explanation.claim
    return {
        "namespace": namespace,
        "tenant": request.tenant,
        "type": request.type,
        "slot": request.slot,
        "partition": dict(request.partition),
        "shared": request.shared,
        "holder": request.holder,
        "rule": rule,
        "expected": {
            "prospect": str(explanation.expected.kind),
            "secretName": explanation.expected.member,
            "text": explanation.expected.text,
        },
        "record": explanation.record,
        "claim": claim
        and {
            "phase": str(claim.phase),
            "secretName": claim.member,
            "holders": sorted(claim.holders),
            "releasePolicy": str(claim.policy),
            "limit": claim.limit,
            "since": claim.since or None,
        },
        "otherSlots": [
            {"slot": each.slot, "partition": str(each.partition), "secretName": each.member}
            for each in explanation.others
        ],
        "candidates": [
            {"secretName": each.member, "taken": each.taken, "reason": each.reason}
            for each in explanation.candidates
        ],
    }


def _asked(request: ClaimRequest, rule: str | None) -> str:
    kind = f"shared {request.type}" if request.shared else request.type
    return kind if rule is None else f"{kind} (chosen by the rule `{rule}`)"


def _claim(explanation: Explanation) -> str:
    claim = explanation.claim
    if claim is None:
        return f"There is no claim yet (it would be {explanation.record})."
    limit = "without a limit" if claim.limit is None else f"limit {claim.limit}"
    holders = ", ".join(sorted(claim.holders)) or "none"
    return f"{claim.name} is {claim.phase} since {claim.since}, held by {holders} ({claim.policy}, {limit})."


def _candidates(candidates: tuple[Candidate, ...]) -> Iterator[Part]:
    if not candidates:
        yield "The pool has no accounts of this type."
        return
    rows = [("→" if each.taken else "", each.member, each.reason) for each in candidates[:_SHOWN]]
    yield Table("Candidates", ("", Column("Account", names=True), Column("Why", folds=True)), rows)
    if len(candidates) > _SHOWN:
        yield f"… and {len(candidates) - _SHOWN} more; --output json lists all"
