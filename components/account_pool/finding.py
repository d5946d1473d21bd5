"""`find` of the claim protocol: a member this claim may take, and the report when there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from components.account_pool import changes
from components.account_pool.calls import Kind, Steps
from components.account_pool.errors import Exhausted, Misconfigured, PoolError
from components.account_pool.model import (
    JsonObject,
    Member,
    Partition,
    Policy,
    State,
    Token,
    record_name,
    tenant_label,
)
from components.account_pool.selection import (
    by_hash,
    least_used,
    members_free,
    members_of_type,
    members_owned,
    members_shared,
    misconfiguration,
)
from components.account_pool.steps import change_member, list_all, list_side_by_side, record_of


class Again(Enum):
    """Somebody, perhaps an earlier run of ours, is at work on this very claim: look at its record again."""

    AGAIN = "again"


AGAIN = Again.AGAIN
Choice: TypeAlias = Member | Again | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request placed in its pool: which record it means, and what that record says when it is new.

    only: the one member to take, for an adoption; else any.
    """

    namespace: str
    partition: Partition
    tenant: str
    slot: str
    holder: str
    policy: Policy
    limit: int | None
    only: str | None = None

    @property
    def record(self) -> str:
        """The name of its record."""
        return record_name(self.partition, self.tenant, self.slot)


def find(wanted: Wanted, page: list[Member]) -> Steps[Choice]:
    """Choose a member to take at the resourceVersion it was listed; None when not one is free.

    page: members of an earlier answer not tried yet; refilled here. Using an old entry is safe, since every
    use is a CAS, but only a fresh look at all of them may say that there is none.
    """
    if page:
        return page.pop(0)
    if wanted.partition.shared:
        return (yield from _find_shared(wanted, page))
    own, some = yield from list_side_by_side(*_selectors(wanted))
    choice = yield from _own(wanted, own)
    if choice is not None:
        return choice
    page[:] = _free(wanted, some)
    if page:
        return page.pop(0)
    # The pages were read in any order; "none" needs the tenant's own first and then all the free.
    owned, free = _selectors(wanted)
    choice = yield from _own(wanted, (yield from list_all(Kind.MEMBER, owned)))
    if choice is not None:
        return choice
    page[:] = _free(wanted, (yield from list_all(Kind.MEMBER, free)))
    return page.pop(0) if page else None


def _selectors(wanted: Wanted) -> tuple[str, str]:
    return members_owned(wanted.partition, tenant_label(wanted.tenant)), members_free(wanted.partition)


def _allowed(wanted: Wanted, bodies: Iterable[JsonObject]) -> list[Member]:
    members = (Member.parse(body) for body in bodies)
    return by_hash(wanted.record, (m for m in members if wanted.only in (None, m.name)))


def _free(wanted: Wanted, bodies: Iterable[JsonObject]) -> list[Member]:
    return [member for member in _allowed(wanted, bodies) if member.is_free]


def _own(wanted: Wanted, bodies: Iterable[JsonObject]) -> Steps[Choice]:
    """Choose an unused member of the tenant's own; AGAIN when a dead claim was removed from one."""
    members = _allowed(wanted, bodies)
    for member in members:
        if member.token and member.state is None:
            again = yield from _look_behind(wanted, member, member.token)
            if again:
                return AGAIN
    label = tenant_label(wanted.tenant)
    return next((member for member in members if member.is_own_unused(label)), None)


def _look_behind(wanted: Wanted, member: Member, token: Token) -> Steps[bool]:
    """Whether the token on a member changes what this claim has to do: it was dead, or it is this claim's."""
    record, alive = yield from record_of(token)
    if not alive:
        yield from change_member(changes.remove(member, token, record))
        return True
    return token.record == wanted.record


def _find_shared(wanted: Wanted, page: list[Member]) -> Steps[Choice]:
    bodies = yield from list_all(Kind.MEMBER, members_shared(wanted.partition))
    members = [member for member in _allowed(wanted, bodies) if misconfiguration(member, ()) is None]
    for member in members:
        for token in member.tokens:
            if token.record == wanted.record and member.state is None:
                again = yield from _look_behind(wanted, member, token)
                if again:
                    return AGAIN
    page[:] = least_used(wanted.record, members)
    return page.pop(0) if page else None


def refusal(wanted: Wanted) -> Steps[PoolError]:
    """Why nothing could be claimed, told from everything of the type."""
    account_type = wanted.partition.type
    bodies = yield from list_all(Kind.MEMBER, members_of_type(account_type))
    members = [Member.parse(body) for body in bodies]
    if not members:
        return Misconfigured(
            place=f"pool {wanted.namespace}",
            cause=f"it has no {account_type} accounts at all",
            mend="check the type and the namespace, or add accounts of this type",
        )
    keys = [key for key, _ in wanted.partition.values]
    for member in members:
        if wrong := misconfiguration(member, keys):
            return Misconfigured(
                place=f"Secret {member.name}",
                cause=f"{wrong}; nobody can use this account, and no other is free",
                mend="correct its labels and run again",
            )
    in_use = "full" if wanted.partition.shared else "owned"
    census = Counter(m.state or in_use for m in members if m.in_partition(wanted.partition))
    counted = ", ".join(f"{census[name]} {name}" for name in (in_use, *State))
    return Exhausted(
        pool=wanted.namespace, account_type=account_type, partition=str(wanted.partition), census=counted
    )
