"""`credfleet pool explain`: why a claim gets the account it gets, or none; nothing is written."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import typer

from components.account_pool.explain import Candidate, Explanation, explain
from components.account_pool.model import ClaimRequest, Record
from components.account_pool.outlook import Census
from operations.cli.answer import print_json, print_table
from operations.pool.access import open_pool
from operations.pool.claims import Wanted, placed
from operations.pool.outlook import BAD

_SHOWN: Final = 20
"""Accounts told one by one in a table; JSON tells all."""


def show(wanted: Wanted, *, as_json: bool) -> None:
    """Tell what a claim would come to now, and why; raises as `claims.placed` and `Pool.open`."""
    request, rule = placed(wanted)
    pool = open_pool(wanted.where)
    members = pool.members()
    explanation = explain(Census(members, pool.records()), request, pool.settings.partition_keys)
    if as_json:
        print_json(explanation_as_json(wanted.where.namespace, request, rule, explanation))
        return
    expected = explanation.expected
    mark = typer.style("✗", fg="red") if expected.prospect in BAD else typer.style("✓", fg="green")
    asked = f"tenant {request.tenant}, slot {request.slot}, {_asked(request, rule)}"
    typer.echo(f"{mark} {asked}: {expected.text}")
    typer.echo(_claim(explanation))
    for other in explanation.others:
        typer.echo(f"The tenant has {other.member} under slot {other.slot} ({other.partition}).")
    _show_candidates(explanation.candidates)


def explanation_as_json(
    namespace: str, request: ClaimRequest, rule: str | None, explanation: Explanation
) -> dict[str, Any]:
    """Give an explanation for machines; `claim` is null when there is none yet, `rule` without a plan."""
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
            "prospect": str(explanation.expected.prospect),
            "secretName": explanation.expected.member,
            "text": explanation.expected.text,
        },
        "record": explanation.record,
        "claim": None if explanation.claim is None else _claim_as_json(explanation.claim),
        "otherSlots": [
            {"slot": each.slot, "partition": str(each.partition), "secretName": each.member}
            for each in explanation.others
        ],
        "candidates": [
            {"secretName": each.member, "taken": each.taken, "reason": each.reason}
            for each in explanation.candidates
        ],
    }


def _claim_as_json(claim: Record) -> dict[str, Any]:
    return {
        "phase": str(claim.phase),
        "secretName": claim.member,
        "holders": sorted(claim.holders),
        "releasePolicy": str(claim.policy),
        "limit": claim.limit,
        "since": claim.since or None,
    }


def _asked(request: ClaimRequest, rule: str | None) -> str:
    kind = f"shared {request.type}" if request.shared else request.type
    return kind if rule is None else f"{kind} (chosen by the rule `{rule}`)"


def _claim(explanation: Explanation) -> str:
    claim = explanation.claim
    if claim is None:
        return f"There is no claim yet (it would be {explanation.record})."
    limit = "without a limit" if claim.limit is None else f"limit {claim.limit}"
    holders = ", ".join(sorted(claim.holders)) or "nobody"
    return f"{claim.name} is {claim.phase} since {claim.since}, held by {holders} ({claim.policy}, {limit})."


def _show_candidates(candidates: tuple[Candidate, ...]) -> None:
    if not candidates:
        typer.echo("The pool has no accounts of this type.")
        return
    rows = [("→" if each.taken else "", each.member, each.reason) for each in candidates[:_SHOWN]]
    print_table("Candidates", ("", "Account", "Why"), rows)
    rest = Counter(each.reason for each in candidates[_SHOWN:])
    if rest:
        typer.echo(f"… and {rest.total()} more; --output json tells all")
