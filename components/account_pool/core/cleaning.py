"""Steps of cleaners (dirty → cleaning → usable), and decisions of operators about accounts.

Cleaners might crash, overlap or be late. A cleaner's id is stable; each run adds its own suffix and the
process that holds the account, so that a later run takes over only accounts whose run is seen to have ended.
Only the run that holds the current cleaning token frees the member. Operators quarantine, readmit or
decommission an account at the resourceVersion that was read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import count
from typing import TypeAlias

from components.account_pool.core import changes
from components.account_pool.core.calls import Kind, Patch, Pause, Steps
from components.account_pool.core.discrepancies import in_use, releases
from components.account_pool.core.holders import Look, cleaner_of, holder_of
from components.account_pool.core.identity import describe_twins, find_twins
from components.account_pool.core.keys import CLEANING_TOKEN, POOL_STATE
from components.account_pool.core.model import KeyPhase, Member, State
from components.account_pool.core.records import Record
from components.account_pool.core.selection import MEMBERS, RECORDS
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.steps import change_member, get_member, list_all
from components.errors import Misconfigured, Problem


def survey(
    cleaner: str, take_over: frozenset[str] = frozenset(), look: Look = lambda _: None
) -> Steps[tuple[list[Member], list[Left]]]:
    """K1: find dirty unclaimed members, and members of this cleaner's runs that are seen to have ended.

    Other dirty members are skipped, each with a reason. A member with an unreleased claim is skipped even if
    it carries no token: records are read after members. `take_over`: members, named by an operator, of runs
    that cannot be observed from here. The new run must rotate their credentials, since nothing stops the old
    run from wiping the account.
    """
    found: list[Member] = []
    left: list[Left] = []
    bodies = yield from list_all(Kind.MEMBER, MEMBERS)
    listed = [(Member.parse(body), body) for body in bodies]
    twins = find_twins(member for member, _ in listed)
    members = [each for each in listed if each[0].state is not None]
    snapshot = PoolSnapshot.of((), (yield from list_all(Kind.RECORD, RECORDS)) if members else ())
    for member, body in members:
        try:
            if not _is_for(member, cleaner, take_over):
                continue
        except Misconfigured as error:
            left.append((member, Wiped.UNREADABLE, Problem(error.place, error.problem, error.fix)))
            continue
        if (held := _held(member, take_over, look)) is not None:
            left.append((member, *held))
        elif member.name in twins:
            left.append((member, Wiped.IN_USE, _doubled(member, twins[member.name])))
        elif (record := in_use(member, snapshot.records)) is not None:
            left.append((member, Wiped.IN_USE, _used(member, record, snapshot.namespace)))
        elif (why := undecided(member, body["metadata"].get("namespace", ""))) is not None:
            left.append((member, Wiped.IN_USE, why))
        else:
            found.append(member)
    return found, left


def protected(member: Member) -> Problem:
    """Return why no command is run for a protected member."""
    return Problem(
        f"Secret {member.name}",
        f"account {member.account_id} is one of accountPool.protected, for which no command is ever run",
        "quarantine it, or take it out of the pool",
    )


def _doubled(member: Member, others: Sequence[str]) -> Problem:
    return Problem(
        f"Secret {member.name}",
        describe_twins(member, others),
        "keep one of them, and quarantine or decommission the others; then clean again",
    )


def _used(member: Member, record: Record, namespace: str) -> Problem:
    return Problem(
        f"Secret {member.name}",
        f"tenant {record.tenant}, slot {record.slot}, has an unreleased claim on it, so it may still"
        " use the account",
        f"release it with {releases(record, namespace)}, then clean again",
    )


def undecided(member: Member, namespace: str) -> Problem | None:
    """Return why a dirty member that was recreated, or has a second key, is skipped; otherwise None.

    A cleaning that creates new keys ends a rotation. A command that changes the key itself cannot record it.
    """
    if member.key_phase is not None and not changes.owes_new_key(member):
        option = "--abort" if member.key_phase in (KeyPhase.PREPARING, KeyPhase.PREPARED) else "--complete"
        return Problem(
            f"Secret {member.name}",
            f"its key is being rotated ({member.key_phase}), so it has a second one",
            f"run `credfleet pool rotate {member.name} {option} -n {namespace}`, then clean again",
        )
    if not member.is_created_again:
        return None
    command = f"credfleet pool mark-dirty {member.name} --reason 'not in use' -n {namespace}"
    return Problem(
        f"Secret {member.name}",
        "its Secret was lost and created again, so it is not known who uses the account",
        f"run `up` in every stack that claims from the pool, then `{command}`",
    )


def _is_for(member: Member, cleaner: str, take_over: frozenset[str]) -> bool:
    if member.state == State.CLEANING:
        is_mine = cleaner_of(member.annotations.get(CLEANING_TOKEN, "")) == cleaner
        return is_mine or member.name in take_over
    return member.state == State.DIRTY and not member.tokens


def _held(member: Member, take_over: frozenset[str], look: Look) -> tuple[Wiped, Problem] | None:
    """Return why a member is left to the run that its token names, or None. Age alone never frees it."""
    if CLEANING_TOKEN not in member.annotations:
        return None
    place, holder = f"Secret {member.name}", holder_of(member)
    alive = look(holder) if holder else None
    if alive:
        fix = "wait for it, or end it there; then clean again"
        return Wiped.RUNNING, Problem(place, f"still running on {holder}", fix)
    if alive is None and member.name not in take_over:
        who = f"on {holder}" if holder else "by an earlier version"
        fix = (
            f"clean again there; if that is impossible, add --take-over {member.name}, with a new credential"
        )
        return Wiped.UNSEEN, Problem(
            place, f"begun {who}, and whether that runs cannot be seen from here", fix
        )
    return None


def begin(member: Member, cleaning_token: str) -> Steps[Member | None]:
    """K2: take a member at the resourceVersion it was listed with; None if another run was first."""
    taken = yield from change_member(changes.start_cleaning(member, cleaning_token))
    if taken is not None:
        return taken
    now = yield from get_member(member.name)
    return now if now is not None and _is_held(now, cleaning_token) else None


class Wiped(StrEnum):
    """Outcome for a member selected for cleaning.

    UNREADABLE: skipped, because its claim annotations cannot be parsed; nothing was written. IN_USE: skipped,
    because it has an unreleased claim whose token was removed manually, or a second key. RUNNING: skipped,
    because another run is wiping it. UNSEEN: skipped, because that cannot be observed from here. OVERTAKEN:
    another run has it now, or the answer to the last write was lost; nothing more was written. This run might
    have wiped it under its present holder. POSTPONED: skipped, because the run's time was over; the next run
    takes it.
    """

    CLEANED = "cleaned"
    QUARANTINED = "quarantined"
    RUNNING = "running"
    UNSEEN = "unseen"
    OVERTAKEN = "overtaken"
    UNREADABLE = "unreadable"
    IN_USE = "in-use"
    POSTPONED = "postponed"


Left: TypeAlias = tuple[Member, Wiped, Problem]
"""A member that cleaning skips, and why."""


def succeed(member: Member, cleaning_token: str) -> Steps[Wiped]:
    """K4: free the member at the resourceVersion it was taken with, never at a later one of another run.

    A member that requires a new key is quarantined if this run did not change the key.
    """
    return (yield from _settle(member, cleaning_token, changes.finish_cleaning))


def fail(member: Member, cleaning_token: str, reason: str) -> Steps[Wiped]:
    """K3: quarantine the member and record the reason."""
    return (yield from _settle(member, cleaning_token, lambda now: changes.fail_cleaning(now, reason)))


def _settle(member: Member, cleaning_token: str, patch_of: Callable[[Member], Patch]) -> Steps[Wiped]:
    for attempt in count():
        is_held = member.state == State.CLEANING
        patch = patch_of(member) if is_held else changes.end_cleaning(member)
        if (changed := (yield from change_member(patch))) is not None:
            settled = Wiped.CLEANED if changed.state is None else Wiped.QUARANTINED
            return settled if is_held else Wiped.OVERTAKEN
        now = yield from get_member(member.name)
        if now is None or now.state is None or now.annotations.get(CLEANING_TOKEN) != cleaning_token:
            return Wiped.OVERTAKEN
        member = now
        yield Pause(attempt)
    raise AssertionError


def _is_held(member: Member, cleaning_token: str) -> bool:
    return member.state == State.CLEANING and member.annotations.get(CLEANING_TOKEN) == cleaning_token


def no_account(name: str, namespace: str) -> Misconfigured:
    """Return the error for an account that is not in the pool."""
    return Misconfigured(
        place=f"Secret {name}",
        problem="the pool has no such account",
        fix=f"look for its name with `credfleet pool status -n {namespace}`",
    )


Decision: TypeAlias = Callable[[str, Member], Patch]
"""Returns the patch for an operator's decision about a member of a pool's namespace; see `changes.py`."""


def decide(namespace: str, name: str, decision: Decision) -> Steps[Member]:
    """Write a decision; after a lost answer, it is done if the member shows it or is being cleaned.

    Raises Misconfigured if the member is not found, and whatever the decision raises.
    """
    asked: Patch | None = None
    for attempt in count():
        if attempt:
            yield Pause(attempt - 1)
        member = yield from get_member(name)
        if member is not None and asked is not None:
            is_cleaned = asked.body["metadata"]["labels"].get(POOL_STATE) == State.DIRTY
            if changes.apply(member, asked) == member or (is_cleaned and member.state == State.CLEANING):
                return member
        if member is None:
            raise no_account(name, namespace)
        asked = decision(namespace, member)
        changed = yield from change_member(asked)
        if changed is not None:
            return changed
    raise AssertionError
