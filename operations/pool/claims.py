"""Claim and release from the command line, by the very protocol the program's claims run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import typer
from pulumi_sandbox.services.progress import Step

from components.account_pool.errors import Exhausted, Misconfigured
from components.account_pool.model import Claimed, ClaimRequest
from components.account_pool.protocol import Outcome, Released
from components.account_pool.rules import Request
from operations.cli.answer import print_json
from operations.cli.ask import ask
from operations.cli.progress import ProgressLine
from operations.pool.access import Where, open_pool

CLI_HOLDER: Final = "cli"
"""Who holds what is claimed by hand (decision 19)."""

_UNITS: Final = {"s": 1, "m": 60, "h": 3600}
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 15.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line; `holder` is None when it was left out."""

    where: Where
    tenant: str
    type: str | None
    plan: Request | None
    slot: str
    partition: Sequence[str]
    holder: str | None
    stack: str


class Claimable(Protocol):
    """What waiting for an account needs of a pool."""

    def claim(self, request: ClaimRequest) -> Claimed:
        """Claim once; raises Exhausted when no account is free."""
        ...


def claim(wanted: Wanted, *, wait: str | None, as_json: bool) -> None:
    """Claim an account, waiting for a free one as long as allowed, and say which it is.

    Raises:
        PoolError: as `Pool.open` and `Pool.claim`; Misconfigured for a request that makes no sense.
    """
    patience = seconds(wait) if wait else 0.0
    request = as_request(wanted)
    pool = open_pool(wanted.where)
    try:
        with ProgressLine() as progress:
            claimed = claim_within(pool, request, patience, progress)
    finally:
        pool.flush()
    if as_json:
        print_json(claim_as_json(claimed, wanted.where.namespace))
        return
    how = "already has" if claimed.reused else "now has"
    typer.echo(
        f"✓ tenant {claimed.tenant} {how} {claimed.type} account {claimed.secret_name}"
        f" (slot {claimed.slot}, namespace {wanted.where.namespace}, holder {claimed.holder})"
    )


def claim_within(
    pool: Claimable,
    request: ClaimRequest,
    patience: float,
    progress: Callable[[Step], None],
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Claimed:
    """Claim again and again until an account is free or `patience` (seconds) is over; then Exhausted."""
    began = clock()
    pause = _FIRST_PAUSE
    while True:
        try:
            return pool.claim(request)
        except Exhausted:
            elapsed = clock() - began
            if elapsed >= patience:
                raise
            progress(Step(f"waiting for a free {request.type} account", elapsed))
            sleep(min(pause, patience - elapsed))
            pause = min(pause * 2, _LONGEST_PAUSE)


def release(wanted: Wanted, *, yes: bool, as_json: bool) -> None:
    """Give an account back and say what was done.

    Raises:
        CredfleetError: code `not-confirmed`, for another's claim without `--yes`; or as `Pool.release`.
    """
    request = as_request(wanted)
    if request.holder != CLI_HOLDER:
        ask(
            f"{request.holder} may still use the {request.type} account of tenant {request.tenant}"
            f" (slot {request.slot}). Release it in its place?",
            yes=yes,
        )
    pool = open_pool(wanted.where)
    record = pool.record_of(request)
    try:
        released = pool.release(record, request.holder)
    finally:
        pool.flush()
    if as_json:
        print_json(release_as_json(request, released, wanted.where.namespace))
    elif released.outcome is Outcome.RELEASED:
        others = "" if released.last else "; others still use it"
        typer.echo(f"✓ {request.holder} released account {released.member}{others}")
    else:
        others = [holder for each in pool.records() if each.name == record for holder in sorted(each.holders)]
        typer.echo(f"{request.holder} holds no such claim, nothing was released")
        for holder in others:
            typer.echo(f"  {holder} does: add --holder {holder} --yes to release it in its place")


def as_request(wanted: Wanted) -> ClaimRequest:
    """Make the request of the protocol; raises as `placed`."""
    return placed(wanted)[0]


def placed(wanted: Wanted) -> tuple[ClaimRequest, str | None]:
    """Make the request of the protocol, and tell which rule of the stack chose the pool of a plan.

    Raises:
        Misconfigured: Unless either a type or a plan is given, and a plan has a pool.
    """
    values = partition(wanted.partition)
    request = ClaimRequest(
        tenant=wanted.tenant,
        type=wanted.type or "",
        slot=wanted.slot,
        partition=values,
        holder=wanted.holder or CLI_HOLDER,
    )
    if wanted.type is not None and wanted.plan is None:
        return request, None
    if wanted.type is None and wanted.plan is not None:
        from operations.config.settings import pool_of_plan

        served = pool_of_plan(wanted.stack, wanted.plan)
        values = {**served.implied, **values}
        request = replace(request, type=served.type, partition=values, shared=served.shared)
        return request, served.rule
    raise Misconfigured(
        place="--type or --plan",
        cause="an account is asked for by its type or by a plan, by one of the two",
        mend="give --type aws, or --plan trial",
    )


def seconds(text: str, *, option: str = "--wait") -> float:
    """Read the length of time of an option: `30s`, `10m`, `2h`, or several of them, as `1h30m`.

    Raises:
        Misconfigured: When it is none.
    """
    if not re.fullmatch(r"(\d+[smh])+", text):
        raise Misconfigured(
            place=f"{option} {text}",
            cause="it is no length of time",
            mend="give a number with its unit: 30s, 10m or 2h",
        )
    return float(sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([smh])", text)))


def partition(terms: Sequence[str]) -> Mapping[str, str]:
    """Read the `KEY=VALUE` terms of a partition.

    Raises:
        Misconfigured: For a term without both, or a key given twice.
    """
    values: dict[str, str] = {}
    for term in terms:
        key, equals, value = term.partition("=")
        if not (key and equals and value) or key in values:
            raise Misconfigured(
                place=f"--partition {term}",
                cause="it is not a key with its value, given once",
                mend="write --partition eu-access=true, once for each key the account has",
            )
        values[key] = value
    return values


def claim_as_json(claimed: Claimed, namespace: str) -> dict[str, Any]:
    """Give a claim for machines; `uid` is that of the account's Secret."""
    return {
        "tenant": claimed.tenant,
        "type": claimed.type,
        "slot": claimed.slot,
        "secretName": claimed.secret_name,
        "namespace": namespace,
        "uid": claimed.member_uid,
        "phase": str(claimed.phase),
        "reused": claimed.reused,
    }


def release_as_json(request: ClaimRequest, released: Released, namespace: str) -> dict[str, Any]:
    """Give a release for machines; `secretName` is null when the holder had no account."""
    return {
        "tenant": request.tenant,
        "type": request.type,
        "slot": request.slot,
        "secretName": released.member,
        "namespace": namespace,
        "holder": request.holder,
        "outcome": str(released.outcome),
        "lastHolder": released.last,
    }
