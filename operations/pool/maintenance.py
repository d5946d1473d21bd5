"""What those who run a pool decide about it; asks before anything is taken away."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import typer

from components.account_pool.adoption import Adoption
from components.account_pool.model import Claimed, Member
from components.account_pool.pool import OPERATOR, Pool
from components.account_pool.sweeping import FREED_UNASKED, SweepReport
from operations.cli.answer import print_json, print_table
from operations.cli.ask import ask
from operations.pool.access import Where, open_pool

T = TypeVar("T")


def quarantine(where: Where, account: str, reason: str, *, as_json: bool) -> None:
    """Keep an account from new holders; raises as `Pool.quarantine`."""
    pool = open_pool(where, manager=OPERATOR)
    _tell_member(_and_flush(pool, lambda: pool.quarantine(account, reason)), as_json=as_json)


def unquarantine(where: Where, account: str, *, yes: bool, as_json: bool) -> None:
    """Let an account back; raises as `Pool.unquarantine`."""
    ask(f"Account {account} of {where.namespace} was kept away for a reason. Let it back?", yes=yes)
    pool = open_pool(where, manager=OPERATOR)
    _tell_member(_and_flush(pool, lambda: pool.unquarantine(account)), as_json=as_json)


def decommission(where: Where, account: str, *, yes: bool, as_json: bool) -> None:
    """Give an account up; raises as `Pool.decommission`."""
    ask(f"Account {account} of {where.namespace} will be given up without cleaning. Go on?", yes=yes)
    pool = open_pool(where, manager=OPERATOR)
    _tell_member(_and_flush(pool, lambda: pool.decommission(account)), as_json=as_json)


def sweep(where: Where, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Finish what crashes left, and tell what was done and what only people can judge."""
    pool = open_pool(where, manager=OPERATOR)
    most = sys.maxsize if yes else FREED_UNASKED
    report = _and_flush(pool, lambda: pool.sweep(dry_run=dry_run, most=most))
    if as_json:
        print_json(sweep_as_json(report))
        return
    free, finish = ("to free", "to finish") if dry_run else ("withheld", "finished")
    rows = [
        *(("freed", each.member, "its claim is gone") for each in report.freed),
        *((free, each.member, "its claim is gone") for each in report.withheld),
        *((finish, each, "a release that nobody ended") for each in report.finished),
        *(("given up", each, "a claim that nobody pursues") for each in report.aborted),
        *(("look at", each.place, f"{each.cause}\n→ {each.mend}") for each in report.findings),
    ]
    if rows:
        print_table("Swept" if not dry_run else "To sweep", ("What", "Which", "Why"), rows)
    else:
        typer.echo("Nothing was left behind.")
    if report.withheld and not dry_run:
        typer.echo(
            f"{len(report.withheld)} dead claims are more than a sweep takes off unasked ({most});"
            " look at them, then add --yes"
        )


def sweep_as_json(report: SweepReport) -> dict[str, Any]:
    """Give a sweep for machines: names of accounts and of records, and what only people can judge."""
    return {
        "freed": [each.member for each in report.freed],
        "withheld": [each.member for each in report.withheld],
        "finished": [*report.finished],
        "aborted": [*report.aborted],
        "findings": [
            {"place": each.place, "cause": each.cause, "mend": each.mend} for each in report.findings
        ],
    }


def adopt(where: Where, holder: str, *, yes: bool, as_json: bool) -> None:
    """Report the accounts that bear an owner and no claim; with `yes`, claim each for its owner."""
    pool = open_pool(where, manager=OPERATOR)
    found = pool.adoptable()
    sound = [each for each in found if each.problem is None]
    adopted = _and_flush(pool, lambda: [pool.adopt(each, holder) for each in sound]) if yes else []
    if as_json:
        print_json(adoption_as_json(found, adopted))
        return
    if not found:
        typer.echo("Every account with an owner has its claim.")
        return
    rows = [(each.member, each.tenant, each.slot, each.problem or "") for each in found]
    print_table("Accounts with an owner and no claim", ("Account", "Tenant", "Slot", "Problem"), rows)
    if yes:
        typer.echo(f"✓ {len(adopted)} of them were claimed for their owners by holder {holder}")
    else:
        typer.echo(f"Nothing was written; --yes claims {len(sound)} of them for their owners.")


def adoption_as_json(found: Sequence[Adoption], adopted: Sequence[Claimed]) -> dict[str, Any]:
    """Give an adoption for machines; `adopted` is empty when it was only reported."""
    return {
        "found": [
            {"secretName": each.member, "tenant": each.tenant, "slot": each.slot, "problem": each.problem}
            for each in found
        ],
        "adopted": [
            {"secretName": each.secret_name, "tenant": each.tenant, "slot": each.slot} for each in adopted
        ],
    }


def recover(where: Where, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Bind the claims of a restored pool again, and tell which could not be."""
    if not dry_run:
        ask(f"The claims of {where.namespace} will be bound to its accounts by name. Go on?", yes=yes)
    report = Pool.recover(where.target(), where.namespace, dry_run=dry_run)
    told = {"rebound": [*report.rebound], "intact": [*report.intact], "lost": [*report.lost]}
    if as_json:
        print_json(told)
    else:
        for what, names in told.items():
            typer.echo(f"{len(names)} {what}{': ' if names else ''}{', '.join(names)}")


def _tell_member(member: Member, *, as_json: bool) -> None:
    state = member.state or "usable"
    if as_json:
        print_json({"secretName": member.name, "tenant": member.tenant, "state": state})
    else:
        typer.echo(f"✓ account {member.name} is {state} now")


def _and_flush(pool: Pool, act: Callable[[], T]) -> T:
    """Act, and wait for the Events about it however it ends."""
    try:
        return act()
    finally:
        pool.flush()
