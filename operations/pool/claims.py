"""Claim and release from the command line, with the same protocol as the program."""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pulumi_sandbox.progress_line import ProgressLine
from pulumi_sandbox.services.progress import Step

from components.account_pool.core.consumers import stack_of
from components.account_pool.core.held_claims import Outcome
from components.account_pool.core.model import ClaimRequest, Member
from components.account_pool.core.pool import Pool
from components.account_pool.core.records import Claimed, Record
from components.account_pool.forecast.evacuation import among, slot_and_generation
from components.account_pool.rules import Fault, Request
from components.config.document import nearest
from components.errors import Exhausted, Misconfigured, Misused, how_many
from components.labels import EU_ACCESS, HYPERSCALERS, hyperscaler_of
from components.naming import HELD_AS
from operations.cli.answer import CommandResult
from operations.cli.inputs import ask
from operations.cli.tables import Column, Table
from operations.pool.access import DEFAULT_STACK, PoolTarget
from operations.pool.options import ClaimOptions, ReleaseOptions
from operations.stack.yaml_file import load_yaml

CLI_HOLDER: Final = "cli"
"""Holder of manually claimed accounts."""

DEFAULT_SLOT: Final = "main"
"""Default slot; tenant files also use this name for a tenant's only account."""
FORMER_SLOT: Final = "0"
"""Former name of the default slot; claims under it are still found."""

_UNITS: Final = {"s": 1, "m": 60, "h": 3600}
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 15.0


def claim(asked: ClaimOptions, where: PoolTarget, wait: str | None) -> CommandResult:
    """Claim an account, waiting for a free one if requested.

    Raises as `Pool.open` and `Pool.claim`, and Misused for an invalid request.
    """
    patience = seconds(wait) if wait else 0.0
    request, _ = place_request(asked, where.stack)
    if where.stack is not None:
        _refuse_strangers(request, where.stack)
    pool = where.open()
    request = in_its_slot(asked, request, pool.records())
    with pool.flushed(), ProgressLine() as progress:
        claimed = claim_within(pool.claim, request, patience, progress)
    how = "already has" if claimed.reused else "now has"
    return CommandResult(
        {
            "tenant": claimed.tenant,
            "type": claimed.type,
            "slot": claimed.slot,
            "secretName": claimed.secret_name,
            "namespace": where.namespace,
            "uid": claimed.member_uid,
            "phase": str(claimed.phase),
            "reused": claimed.reused,
        },
        [
            f"✓ tenant {claimed.tenant} {how} {claimed.type} account {claimed.secret_name}"
            f" (slot {claimed.slot}, namespace {where.namespace}, holder {claimed.holder})"
        ],
    )


def claim_within(
    claim: Callable[[ClaimRequest], Claimed],
    request: ClaimRequest,
    patience: float,
    progress: Callable[[Step], None],
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Claimed:
    """Retry a claim until an account is free; raises Exhausted after `patience` seconds."""
    began = clock()
    pause = _FIRST_PAUSE
    while True:
        try:
            return claim(request)
        except Exhausted:
            elapsed = clock() - began
            if elapsed >= patience:
                raise
            progress(Step(f"waiting for a free {request.type} account", elapsed))
            sleep(min(pause, patience - elapsed))
            pause = min(pause * 2, _LONGEST_PAUSE)


def release(asked: ReleaseOptions, where: PoolTarget) -> CommandResult:
    """Release an account, or all accounts of a stack.

    Raises CredfleetError `not-confirmed` for another's claim without `--yes`, or as `Pool.release`.
    """
    if asked.stack_gone is not None:
        return _release_of_stack(asked.stack_gone, asked, where)
    request, _ = place_request(asked, where.stack)
    holder = request.holder
    if holder != CLI_HOLDER:
        ask(
            f"{holder} may still use the {request.type} account of tenant {request.tenant}"
            f" (slot {request.slot}). Release it in its place?",
            yes=where.yes,
        )
    pool = where.open_existing()
    request = in_its_slot(asked, request, pool.records())
    record = pool.record_of(request)
    with pool.flushed():
        released = pool.release(record, holder)
    document = {
        "tenant": request.tenant,
        "type": request.type,
        "slot": request.slot,
        "secretName": released.member,
        "namespace": where.namespace,
        "holder": holder,
        "outcome": str(released.outcome),
        "lastHolder": released.last,
    }
    if released.outcome is Outcome.RELEASED:
        stay = "" if released.last else "; others still use it"
        return CommandResult(document, [f"✓ {holder} released account {released.member}{stay}"])
    others = [
        (each, other)
        for each in pool.records()
        if (each.tenant, each.partition.type, each.slot) == (request.tenant, request.type, request.slot)
        for other in sorted(each.holders)
    ]
    return CommandResult(
        document,
        [
            f"{holder} holds no such claim, nothing was released",
            *(f"  {_how_it_is_held(each, other, record)}" for each, other in others),
        ],
        exit_code=int(bool(others)),
    )


def _how_it_is_held(record: Record, holder: str, asked: str) -> str:
    """Return who holds an account of the slot, and how to release it."""
    if record.name == asked:
        return f"{holder} does: add --holder {holder} --yes to release it in its place"
    return f"{holder} holds {record.member} under another partition: {record.partition}"


def _release_of_stack(stack: str, asked: ReleaseOptions, where: PoolTarget) -> CommandResult:
    """Report what a stack holds; with `--yes`, release it, except what was claimed again meanwhile.

    stack: its name, with project and organization if ambiguous. Raises Misused if it is ambiguous or `asked`
    also names an account, or as `Pool.release`.
    """
    if asked != ReleaseOptions(stack_gone=stack):
        raise Misused(
            place="--stack-gone",
            problem="it means all that a stack holds, and an account is named beside it",
            fix="give one of the two",
        )
    yes = where.yes
    pool = (where if yes else where.for_a_look()).open_existing()
    by_stack = _held_by_stacks(pool.records())
    names = [name for name in by_stack if f"/{name}".endswith(f"/{stack}")]
    if len(names) > 1:
        raise Misused(
            place=f"--stack-gone {stack}",
            problem=f"several stacks have this name: {', '.join(names)}",
            fix="write it as ORGANIZATION/PROJECT/STACK",
        )
    held = [each for name in names for each in by_stack[name]]
    sharing = _holding_as(names[0]) if names else ()
    if yes and sharing:
        raise Misused(
            place=f"--stack-gone {stack}",
            problem=f"{', '.join(sharing)} hold accounts under its name (heldAs), and they are not gone",
            fix="release what each tenant of it held by itself: --tenant, --type, --slot and --holder",
        )
    with pool.flushed():
        ended = [_ended(pool, record, holder) if yes else (None, None) for record, holder in held]
    document = {
        "stack": names[0] if names else None,
        "namespace": where.namespace,
        "held": [
            {
                "tenant": record.tenant,
                "type": record.partition.type,
                "slot": record.slot,
                "secretName": record.member,
                "holder": holder,
                "outcome": outcome,
                "problem": problem,
            }
            for (record, holder), (outcome, problem) in zip(held, ended, strict=True)
        ],
    }
    if not held:
        others = f"; these do: {', '.join(by_stack)}" if by_stack else ""
        told = f"No stack {stack} holds a claim of {where.namespace}{others}"
        return CommandResult(document, [told], exit_code=1)
    rows = [
        (record.tenant, record.slot, record.partition.type, record.member, problem or outcome or "held")
        for (record, _), (outcome, problem) in zip(held, ended, strict=True)
    ]
    columns = ("Tenant", "Slot", Column("Type", leaves=1), Column("Account", names=True), "")
    table = Table(f"Stack {names[0]}", columns, rows)
    left = sum(problem is not None for _, problem in ended)
    done = f"✓ {how_many(len(held) - left, 'claim')}" + (f", {left} could not be" if left else "")
    told = done if yes else f"Nothing was written; --yes releases {how_many(len(held), 'claim')}."
    return CommandResult(document, [table, told], exit_code=int(left > 0))


def _holding_as(stack: str) -> Sequence[str]:
    """Return the files of stacks here that hold accounts under this stack's name."""
    name = stack.rpartition("/")[2]
    files = sorted(Path.cwd().glob("Pulumi.*.yaml"))
    return [
        file.name
        for file in files
        if (load_yaml(file).get("config") or {}).get(f"credfleet:{HELD_AS}") == name
    ]


def _ended(pool: Pool, record: Record, holder: str) -> tuple[str, str | None]:
    """Release a claim; return the outcome, and the problem of a misconfigured account (not raised)."""
    try:
        return str(pool.release(record.name, holder, fence=record.fence(holder)).outcome), None
    except Misconfigured as error:
        return error.code, f"{error.problem} → {error.fix}"


def _held_by_stacks(records: Iterable[Record]) -> Mapping[str, Sequence[tuple[Record, str]]]:
    """Return the claims of each stack, by `ORGANIZATION/PROJECT/STACK`."""
    held: dict[str, list[tuple[Record, str]]] = defaultdict(list)
    for record in sorted(records, key=lambda each: (each.tenant, each.slot, each.name)):
        for holder in sorted(record.holders):
            if stack := stack_of(holder):
                held[stack].append((record, holder))
    return dict(sorted(held.items()))


def named_slots(request: ClaimRequest, records: Iterable[Record]) -> Sequence[str]:
    """Return a tenant's slots of a type; empty if the default slot is one of them."""
    slots = _slots_of(request, records)
    return () if slots & {DEFAULT_SLOT, FORMER_SLOT} else sorted(slots)


def _slots_of(request: ClaimRequest, records: Iterable[Record]) -> set[str]:
    return {
        slot_and_generation(each.slot)[0]
        for each in records
        if (each.tenant, each.partition.type) == (request.tenant, request.type)
    }


def refuse_unnamed_slot(request: ClaimRequest, named: Sequence[str]) -> None:
    """Raise Misused if several slots could be meant."""
    if named:
        raise Misused(
            place="--slot",
            problem=f"tenant {request.tenant} has {request.type} accounts in slots {', '.join(named)}, and"
            " none is named",
            fix=f"add --slot {named[0]}, or --slot {DEFAULT_SLOT} for another account",
        )


def in_its_slot(asked: ClaimOptions, request: ClaimRequest, records: Sequence[Record]) -> ClaimRequest:
    """Return the request in the pool's slot: that of the holder, otherwise that of other holders.

    Raises as `refuse_unnamed_slot`.
    """
    if asked.slot is None and request.slot == DEFAULT_SLOT:
        refuse_unnamed_slot(request, named_slots(request, records))
        if {DEFAULT_SLOT, FORMER_SLOT} & _slots_of(request, records) == {FORMER_SLOT}:
            request = replace(request, slot=FORMER_SLOT)
    return among(request, records)


def _slot_in_stack(request: ClaimRequest, stack: str) -> str:
    """Return the slot in which a stack declares the requested account; raises Misused for several."""
    from operations.config.settings import pool_of, settings_of

    settings = settings_of(stack)
    rules = pool_of(settings, stack).ruleset
    tenant = settings.tenants.get(request.tenant)
    pools = {} if tenant is None else {slot: each.pool(rules) for slot, each in tenant.accounts.items()}
    slots = [
        slot
        for slot, pool in pools.items()
        if not isinstance(pool, Fault) and (pool.type, pool.shared) == (request.type, request.shared)
    ]
    if DEFAULT_SLOT in slots or not slots:
        return DEFAULT_SLOT
    refuse_unnamed_slot(request, slots[1:] and slots)
    return slots[0]


def _refuse_strangers(request: ClaimRequest, stack: str) -> None:
    """Raise Misused for a tenant that the stack does not declare: it would never use the account."""
    from operations.config.settings import settings_of

    if request.tenant not in settings_of(stack).tenants:
        raise Misused(
            place="--tenant",
            problem=f"stack {stack} has no tenant {request.tenant}, so no update of it would use the account",
            fix="add it to the stack's tenants, or name the pool by --namespace instead of --stack",
        )


def place_request(asked: ClaimOptions, stack: str | None) -> tuple[ClaimRequest, str | None]:
    """Return the request in its slot of the stack, and the rule that selected the pool of a plan.

    Raises Misused unless either a type or a plan is given, if no pool serves it, or for an ambiguous slot.
    """
    request, rule = _chosen(asked, stack)
    if stack is None or asked.slot is not None:
        return request, rule
    return replace(request, slot=_slot_in_stack(request, stack)), rule


def _chosen(asked: ClaimOptions, stack: str | None) -> tuple[ClaimRequest, str | None]:
    """Return the request in the given slot, or the default one, and the rule."""
    values = partition(asked.partition or ())
    request = ClaimRequest(
        tenant=asked.tenant,
        type=asked.type or "",
        slot=DEFAULT_SLOT if asked.slot is None else asked.slot,
        partition=values,
        shared=asked.shared,
        holder=asked.holder or CLI_HOLDER,
        spill=asked.spill,
    )
    if not asked.tenant:
        raise Misused(
            place="--tenant",
            problem="an account is that of a tenant, and none is named",
            fix="add --tenant acme",
        )
    if asked.type is not None and not asked.plan:
        return request, None
    if asked.type is None and asked.plan:
        from operations.config.settings import pool_of_plan

        planned = Request(asked.plan, asked.region, asked.hyperscaler_region, asked.hyperscaler)
        served, rule = pool_of_plan(stack or DEFAULT_STACK, planned)
        values = {**({EU_ACCESS: "true"} if served.eu_access else {}), **values}
        shared = asked.shared or served.shared
        return replace(request, type=served.type, partition=values, shared=shared), rule
    raise Misused(
        place="--type or --plan",
        problem="an account is asked for by its type or by a plan, not by both",
        fix="give --type aws, or --plan trial",
    )


def check_types(option: str, given: Iterable[str], members: Iterable[Member]) -> None:
    """Raise Misused for a type that is of no known cloud and that no account has."""
    known = {each.type for each in members}
    for account_type in given:
        if account_type not in known and hyperscaler_of(account_type) is None:
            raise Misused(
                place=f"{option} {account_type}",
                problem="the pool has no account of this type",
                fix=nearest(account_type, known | {*HYPERSCALERS}),
            )


def seconds(text: str, *, option: str = "--wait", least: int = 0) -> float:
    """Return the seconds of a duration option: `30s`, `10m`, `2h`, or a combination like `1h30m`.

    Raises Misused if it is not a duration, or has fewer than `least` seconds.
    """
    if not re.fullmatch(r"(\d+[smh])+", text):
        raise Misused(
            place=f"{option} {text}",
            problem="it is not a duration",
            fix="give a number with its unit: 30s, 10m or 2h",
        )
    total = sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([smh])", text))
    if total < least:
        raise Misused(place=f"{option} {text}", problem="it leaves no time", fix=f"give at least {least}s")
    return float(total)


def partition(terms: Sequence[str]) -> Mapping[str, str]:
    """Parse the `KEY=VALUE` terms of a partition.

    Raises Misused for an incomplete term or a duplicate key.
    """
    values: dict[str, str] = {}
    for term in terms:
        key, equals, value = term.partition("=")
        if not (key and equals and value) or key in values:
            raise Misused(
                place=f"--partition {term}",
                problem="it is not a key with its value, given once",
                fix="write --partition eu-access=true, once for each key the account has",
            )
        values[key] = value
    return values
