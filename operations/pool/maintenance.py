"""The commands for operators of a pool; they ask before anything is taken away."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from components.account_pool.core.changes import is_given_up
from components.account_pool.core.consumers import stack_of
from components.account_pool.core.holds import describe_hold, scope_of
from components.account_pool.core.model import Member, Partition
from components.account_pool.core.pool import OPERATOR
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.sweeping import FREED_UNASKED
from components.account_pool.forecast.evacuation import slot_and_generation
from components.errors import ConfigurationError, Misused, Problem, how_many
from operations.cli.answer import CommandResult, Part, as_documents, as_lines
from operations.cli.inputs import ask
from operations.cli.tables import Column, Table
from operations.pool.access import PoolTarget
from operations.pool.claims import check_types
from operations.pool.claims import partition as partition_values


def hold(where: PoolTarget, reason: str, account_type: str | None, partition: Sequence[str]) -> CommandResult:
    """Stop new claims of a pool, or a part of it; without a reason, allow them again.

    Reports the remaining holds. Raises as `PoolOperator.hold`, and Misused for a part without its own hold.
    """
    values = partition_values(partition)
    if values and account_type is None:
        raise ConfigurationError([Problem("--partition", "it is a part of a type", "add --type")])
    pool = where.open(OPERATOR)
    scope, seen = scope_of(account_type, values), pool.look()
    present = dict(seen.holds.all())
    if account_type is not None:
        Partition.of(account_type, values, pool.settings.partition_keys)
        check_types("--type", [account_type] if reason else [], seen.members)
    if scope and not reason and scope not in present:
        held = [
            f"{describe_hold(*each)}; {seen.holds.fix(each[0], where.namespace)}" for each in present.items()
        ]
        raise Misused(
            place=f"--type {scope}",
            problem="it is not held by itself, so there is nothing to resume",
            fix=where.advise("; ".join(held)) or "nothing of the pool is held",
        )
    with pool.flushed():
        left = pool.hold(reason, scope)
    of = f" of {scope}" if scope else ""
    still = [] if reason else [*left.all()]
    ended = f"lost the hold{of}" if still else f"gives new accounts again{of}"
    how = f"gives no new accounts{of}: {reason}" if reason else ended
    return CommandResult(
        {"namespace": where.namespace, "scope": scope or None, "hold": reason or None},
        [
            f"✓ pool {where.namespace} {how}",
            *(
                f"→ {describe_hold(*each)}; {where.advise(left.fix(each[0], where.namespace))}"
                for each in still
            ),
        ],
    )


def quarantine(where: PoolTarget, account: str, reason: str) -> CommandResult:
    """Withhold an account from new holders; raises as `PoolOperator.quarantine`."""
    return _changed(where.open(OPERATOR), lambda pool: pool.quarantine(account, reason))


def unquarantine(where: PoolTarget, account: str, *, decommissioned: bool) -> CommandResult:
    """End the quarantine of an account; raises as `PoolOperator.unquarantine`."""
    ask(f"Account {account} of {where.namespace} was kept away for a reason. Let it back?", yes=where.yes)
    pool = where.open(OPERATOR)
    before = pool.member(account)
    done = _changed(pool, lambda it: it.unquarantine(account, decommissioned=decommissioned))
    if before is not None and before.is_cut_off and before.tokens:
        back = "its tenant gets copies and rights back by `pulumi up --refresh` in the stack that claims it"
        return replace(done, parts=[*done.parts, f"→ {back}"])
    return done


def evacuate(where: PoolTarget, account: str, reason: str) -> CommandResult:
    """Have all holders leave an account, and report them; raises as `PoolOperator.evacuate`."""
    ask(
        f"The holders of account {account} of {where.namespace} go on to another at their next update.",
        yes=where.yes,
    )
    pool = where.open(OPERATOR)
    with pool.flushed():
        pool.evacuate(account, reason)
    held = [
        (record.tenant, slot_and_generation(record.slot)[0], holder)
        for record in sorted(pool.records(), key=lambda each: (each.tenant, each.slot))
        if record.member == account
        for holder in sorted(record.holders)
    ]
    rows = [(*each, _way_on(each[2])) for each in held]
    columns = ("Tenant", "Slot", Column("Holder", folds=True), Column("Goes on", folds=True))
    return CommandResult(
        {
            "secretName": account,
            "namespace": where.namespace,
            "holders": [{"tenant": row[0], "slot": row[1], "holder": row[2]} for row in held],
        },
        [f"✓ account {account} gets no new holder, and is left by:", Table("Holders", columns, rows)],
    )


def _way_on(holder: str) -> str:
    """Return how a holder leaves an account that is being evacuated."""
    if stack := stack_of(holder):
        return f"at the next update of stack {stack}"
    return "manually: claim under another --slot, then release this one"


def decommission(where: PoolTarget, account: str) -> CommandResult:
    """Retire an account without cleaning it; raises as `PoolOperator.decommission`."""
    ask(f"Account {account} of {where.namespace} will be given up without cleaning. Go on?", yes=where.yes)
    return _changed(where.open(OPERATOR), lambda pool: pool.decommission(account))


def mark_dirty(where: PoolTarget, account: str, reason: str) -> CommandResult:
    """Mark an account for cleaning; raises as `PoolOperator.mark_dirty`."""
    return _changed(where.open(OPERATOR), lambda pool: pool.mark_dirty(account, reason))


def take_back(where: PoolTarget, account: str) -> CommandResult:
    """Return a retained account to the pool; raises as `PoolOperator.take_back`."""
    ask(
        f"Account {account} of {where.namespace} will be wiped, then be free for any tenant. Go on?",
        yes=where.yes,
    )
    return _changed(where.open(OPERATOR), lambda pool: pool.take_back(account))


def sweep(where: PoolTarget, *, dry_run: bool) -> CommandResult:
    """Finish crashed operations; report what was done and what needs a human decision."""
    pool = (where.for_a_look() if dry_run else where).open_existing(OPERATOR)
    most = sys.maxsize if where.yes else FREED_UNASKED
    with pool.flushed():
        report = pool.sweep(dry_run=dry_run, most=most)
    findings = [replace(each, fix=where.advise(each.fix)) for each in report.findings]
    free, finish = ("to free", "to finish") if dry_run else ("withheld", "finished")
    rows = [
        *(("freed", each, "its claim is gone") for each in report.freed),
        *((free, each, "its claim is gone") for each in report.withheld),
        *((finish, each, "a release that did not end") for each in report.finished),
        *(("given up", each, "a claim that was given up") for each in report.aborted),
        *(("look at", each.place, f"{each.problem}\n→ {each.fix}") for each in findings),
    ]
    title = "To sweep" if dry_run else "Swept"
    columns = ("What", Column("Which", names=True), Column("Why", folds=True))
    parts: list[Part] = [Table(title, columns, rows, empty="Nothing was left behind.")]
    if report.withheld and not dry_run:
        parts.append(
            f"{how_many(len(report.withheld), 'dead claim')}, and a sweep takes off {most} unasked;"
            " look at them, then add --yes"
        )
    document = {
        "freed": [*report.freed],
        "withheld": [*report.withheld],
        "finished": [*report.finished],
        "aborted": [*report.aborted],
        "findings": as_documents(findings),
    }
    return CommandResult(document, parts, exit_code=int(bool(report.withheld) and not dry_run))


def recover(where: PoolTarget, *, dry_run: bool) -> CommandResult:
    """Bind the claims of a restored pool again, and report those that could not be."""
    if not dry_run:
        ask(f"The claims of {where.namespace} will be bound to its accounts by name. Go on?", yes=where.yes)
    report = PoolOperator.recover(where.told(), where.namespace, dry_run=dry_run)
    told = {"rebound": [*report.rebound], "intact": [*report.intact], "lost": [*report.lost]}
    return CommandResult(
        {**told, "problems": as_documents(report.problems)},
        [
            *(
                f"{len(names)} {what}{': ' if names else ''}{', '.join(names)}"
                for what, names in told.items()
            ),
            *as_lines(report.problems),
        ],
        exit_code=int(bool(report.problems)),
    )


def _changed(pool: PoolOperator, change: Callable[[PoolOperator], Member]) -> CommandResult:
    """Change one account, and report its new state."""
    with pool.flushed():
        member = change(pool)
    state = member.state or "usable"
    return CommandResult(
        {"secretName": member.name, "tenant": member.tenant, "state": state},
        [f"✓ account {member.name} is {'decommissioned' if is_given_up(member) else state} now"],
    )
