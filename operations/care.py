"""What those who run a pool do to it, by the core's own operations; asks before anything is taken away."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import typer

from components.account_pool.cleaning import Wiped
from components.account_pool.errors import Misconfigured
from components.account_pool.model import Member
from components.account_pool.pool import CLEANER, OPERATOR, Pool
from components.account_pool.status import Standing
from components.account_pool.sweeping import FREED_UNASKED, SweepReport
from components.labels import hyperscaler_of
from operations.forms import print_json, print_table
from operations.pool_access import Where, open_pool
from operations.questions import ask

_STANDARD_ERROR: Final = 2

T = TypeVar("T")


def programs(terms: Sequence[str]) -> Mapping[str, str]:
    """Read the `TYPE=PROGRAM` terms of a cleaning.

    Raises:
        Misconfigured: For a term without both, or a program that is not there.
    """
    found: dict[str, str] = {}
    for term in terms:
        type_, _, program = term.partition("=")
        if not type_ or not Path(program).is_file():
            raise Misconfigured(
                place=f"--command {term}",
                cause="it is not a type with a program that exists",
                mend="write --command aws=cleaners/aws.sh, once for each type",
            )
        found[type_] = str(Path(program).resolve())
    return found


def clean(
    where: Where,
    cleaners: Mapping[str, str],
    cleaner: str,
    take_over: frozenset[str],
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Wipe every dirty account by the program of its type, and tell what became of each.

    Raises:
        Misconfigured: When a dirty account has no program; then none is touched.
    """
    pool = open_pool(where, manager=CLEANER)
    dirty = [each for each in pool.status().accounts if each.standing is Standing.DIRTY]
    for account in dirty:
        _program(cleaners, account.type, account.secret_name)
    if dirty or take_over:
        ask(f"{len(dirty) + len(take_over)} accounts of {where.namespace} will be wiped. Go on?", yes=yes)

    def wipe(member: Member) -> str | None:
        return _run(_program(cleaners, member.type, member.name), member.name)

    done = _and_flush(pool, lambda: pool.clean(cleaner, wipe, take_over=take_over))
    if as_json:
        print_json(
            {
                "cleaned": [
                    {"secretName": each.member, "outcome": str(each.outcome), "reason": each.reason}
                    for each in done
                ]
            }
        )
    elif done:
        print_table(
            "Cleaned",
            ("Account", "Outcome", "Reason"),
            [(each.member, str(each.outcome), each.reason or "") for each in done],
        )
    else:
        typer.echo("Nothing is dirty.")
    if any(each.outcome is Wiped.QUARANTINED for each in done):
        raise typer.Exit(1)


def _program(cleaners: Mapping[str, str], type_: str, account: str) -> str:
    program = cleaners.get(type_) or cleaners.get(hyperscaler_of(type_) or "")
    if program is None:
        raise Misconfigured(
            place=f"account {account}",
            cause=f"it is dirty, and no program cleans {type_} accounts",
            mend=f"add --command {type_}=PROGRAM",
        )
    return program


def _run(program: str, account: str) -> str | None:
    """Run a cleaner to its end: None, or why it failed. What it says goes to standard error, unkept."""
    try:
        done = subprocess.run([program, account], stdout=_STANDARD_ERROR, check=False)
    except OSError as error:
        return f"{Path(program).name} could not be started: {error.strerror}"
    return None if done.returncode == 0 else f"{Path(program).name} ended with exit code {done.returncode}"


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
    rows = [(what, each) for what, found in sweep_as_json(report).items() for each in found]
    if rows:
        print_table("Swept" if not dry_run else "To sweep", ("What", "Which"), rows)
    else:
        typer.echo("Nothing was left behind.")
    if report.withheld and not dry_run:
        typer.echo(
            f"{len(report.withheld)} dead claims are more than a sweep takes off unasked ({most});"
            " look at them, then add --yes"
        )


def sweep_as_json(report: SweepReport) -> dict[str, list[str]]:
    """Give a sweep for machines: names of accounts and of records, and findings in words."""
    return {
        "freed": [each.member for each in report.freed],
        "withheld": [each.member for each in report.withheld],
        "finished": [*report.finished],
        "aborted": [*report.aborted],
        "findings": [*report.findings],
    }


def adopt(where: Where, holder: str, *, yes: bool, as_json: bool) -> None:
    """Claim every account for the owner its label names; report first."""
    pool = open_pool(where, manager=OPERATOR)
    found = pool.adoptable()
    sound = [each for each in found if each.problem is None]
    if not as_json and found:
        rows = [(each.member, each.tenant, each.slot, each.problem or "") for each in found]
        print_table("Accounts with an owner and no claim", ("Account", "Tenant", "Slot", "Problem"), rows)
    if sound:
        ask(f"{len(sound)} accounts of {where.namespace} will be claimed for their owners. Go on?", yes=yes)
    adopted = _and_flush(pool, lambda: [pool.adopt(each, holder) for each in sound])
    if as_json:
        print_json(
            {
                "adopted": [
                    {"secretName": each.secret_name, "tenant": each.tenant, "slot": each.slot}
                    for each in adopted
                ],
                "problems": [
                    {"secretName": each.member, "tenant": each.tenant, "problem": each.problem}
                    for each in found
                    if each.problem is not None
                ],
            }
        )
    else:
        typer.echo(f"{len(adopted)} accounts were adopted.")


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
