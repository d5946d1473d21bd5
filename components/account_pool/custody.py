"""What an operator decides about one member: out of the pool, back into it, or given up."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from components.account_pool import changes
from components.account_pool.calls import Patch, Pause, Steps
from components.account_pool.errors import Misconfigured, NotAllowed
from components.account_pool.model import Member, State
from components.account_pool.steps import change_member, get_member


def quarantine(name: str, reason: str) -> Steps[Member]:
    """Keep a member from new holders; those who hold it keep it, and after them nobody gets it."""
    return (yield from _decide(name, lambda member: changes.quarantine(member, reason)))


def unquarantine(name: str) -> Steps[Member]:
    """Let a quarantined member back: to the cleaner if a tenant had it since it was clean, else into use.

    Raises NotAllowed for a member that is not quarantined.
    """

    def back(member: Member) -> Patch:
        if member.state != State.QUARANTINED:
            raise NotAllowed(
                place=f"Secret {name}",
                cause=f"it is not quarantined ({member.state or 'usable'}), so there is nothing to take back",
                mend="look at it with `credfleet pool status`",
            )
        return changes.unquarantine(member)

    return (yield from _decide(name, back))


def decommission(name: str) -> Steps[Member]:
    """Give a member up without cleaning it, so that whoever declares it may remove it.

    Raises NotAllowed while somebody claims or cleans it.
    """

    def given_up(member: Member) -> Patch:
        if member.tokens or member.state == State.CLEANING:
            raise NotAllowed(
                place=f"Secret {name}",
                cause="it is claimed or being cleaned, so somebody may still use the account",
                mend="release the claim, or wait for the cleaner, and run again",
            )
        return changes.quarantine(member, "decommissioned by an operator; never used again")

    return (yield from _decide(name, given_up))


def _decide(name: str, patch_of: Callable[[Member], Patch]) -> Steps[Member]:
    for attempt in count():
        if attempt:
            yield Pause(attempt - 1)
        member = yield from get_member(name)
        if member is None:
            raise Misconfigured(
                place=f"Secret {name}",
                cause="the pool has no such account",
                mend="look for its name with `credfleet pool status`",
            )
        changed = yield from change_member(patch_of(member))
        if changed is not None:
            return changed
    raise AssertionError
