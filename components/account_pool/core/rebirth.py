"""Initial labels of a member whose Secret was lost, so that a recreated account is not taken for new.

Claim records and the stack's state remember an account that the cluster lost. If a record names it, it is
created with that claim; if the state knows its owner, with the owner. Otherwise its users are unknown: it is
created dirty, and is not cleaned until its claim takes it back or an operator marks it as unused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from components.account_pool.core import keys
from components.account_pool.core.declared import Declaration, DeclaredMember
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.model import (
    WRITERS_OF_STACKS,
    Member,
    Origin,
    Phase,
    State,
    account_key,
    tenant_label,
)
from components.account_pool.core.records import Record
from components.account_pool.core.snapshot import PoolSnapshot
from components.errors import first_named, how_many
from components.labels import TENANT_NAME

RUNBOOK: Final = "docs/runbooks.md#the-namespace-is-gone-and-there-is-no-backup"
_REASON: Final = "created again after its Secret was lost; it is not known who uses the account"


@dataclass(frozen=True, slots=True)
class Marks:
    """Labels and annotations of a member in addition to the declared ones, under credfleet's keys."""

    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])

    def on(self, member: Member) -> Member:
        """Return a member with these marks added."""
        labels, annotations = {**member.labels, **self.labels}, {**member.annotations, **self.annotations}
        return replace(member, labels=labels, annotations=annotations)

    def as_declared(self, member: Member) -> Marks:
        """Add the `REMEMBERED` annotation, without which the policy pack rejects such marks.

        `member`: as declared by the stack, which sets the owner of a brought account itself.
        """
        own = self.labels.keys() - member.labels.keys() or self.annotations.keys() - member.annotations.keys()
        remembered = {keys.REMEMBERED: "true"} if own else {}
        return replace(self, annotations={**self.annotations, **remembered})


def find_lost(old: Declaration, new: Declaration, snapshot: PoolSnapshot) -> Mapping[str, str]:
    """Return new members without a Secret whose accounts were declared before → their former names.

    Excludes a member that replaces another one of which nothing is known except that it is free.
    """
    present = {member.name: member for member in snapshot.members}
    former: dict[tuple[str, str], str] = {}
    for name, one in old.members.items():
        there = present.get(name)
        is_owned = there is not None and there.tenant is not None and one.tenant is None and not there.shared
        if there is None or there.state is not None or is_owned:
            former[_identity(one)] = name
    return {
        name: former[_identity(one)]
        for name, one in new.members.items()
        if name not in present and _identity(one) in former
    }


def _identity(member: DeclaredMember) -> tuple[str, str]:
    return member.type, account_key(member.account_id)


def marks_of_records(name: str, declared: DeclaredMember, records: Sequence[Record]) -> Marks | None:
    """Return the initial marks of a member that a record names; None if no record does."""
    named = [record for record in records if record.member == name]
    bound = [record for record in named if record.phase is Phase.BOUND]
    if declared.capacity is not None:
        places = {str(record.token): record.slot for record in bound if record.partition.shared}
        return Marks(annotations={keys.SHARED_CLAIMS: json.dumps(places, sort_keys=True)}) if places else None
    for record in bound:
        of_claim = {keys.CLAIM_TOKEN: str(record.token), keys.CLAIM_POLICY: str(record.policy)}
        owned = _marks_of_owner(record.tenant, declared)
        return replace(
            owned, annotations={keys.CLAIM_ORIGIN: str(Origin.OWNER), **owned.annotations, **of_claim}
        )
    return marks_of_lost(None, declared) if named else None


def keep_away(marks: Marks | None, declared: DeclaredMember, why: Mapping[str, str] | None) -> Marks | None:
    """Add an operator's quarantine, unless nothing is known about a dedicated account.

    `why`: annotations of the quarantine; None if there was none.
    """
    if why is None or (declared.capacity is None and (marks is None or keys.POOL_STATE in marks.labels)):
        return marks
    known = marks or Marks()
    return Marks({**known.labels, keys.POOL_STATE: str(State.QUARANTINED)}, {**known.annotations, **why})


def marks_of_lost(owner: str | None, declared: DeclaredMember) -> Marks:
    """Return the initial marks of a member known only from the state. `owner`: its former tenant."""
    if owner is not None:
        return _marks_of_owner(owner, declared)
    if declared.capacity is not None:
        return Marks()
    return Marks(
        {keys.POOL_STATE: str(State.DIRTY)}, {keys.CREATED_AGAIN: "true", keys.STATE_REASON: _REASON}
    )


def _marks_of_owner(tenant: str, declared: DeclaredMember) -> Marks:
    origin = {keys.CLAIM_ORIGIN: str(Origin.POOL)} if declared.tenant is None else {}
    return Marks({TENANT_NAME: tenant_label(tenant)}, {keys.TENANT_ID: tenant, **origin})


def kept_marks(member: Member, scheme: LabelScheme) -> Marks:
    """Return the marks that stacks wrote according to managedFields: an apply without them removes them.

    Marks that a claim, a cleaner or an operator has written since then belong to those writers.
    """
    booked = [
        entry.get("fieldsV1", {}).get("f:metadata", {})
        for entry in member.managed
        if str(entry.get("manager")).startswith(WRITERS_OF_STACKS)
    ]

    def is_booked(kind: str, key: str) -> bool:
        return any(f"f:{key}" in fields.get(f"f:{kind}", {}) for fields in booked)

    return Marks(
        {
            key: member.labels[key]
            for key in keys.REMEMBERED_LABELS
            if key in member.labels and is_booked("labels", scheme.renamed.get(key, key))
        },
        {
            key: member.annotations[key]
            for key in keys.REMEMBERED_ANNOTATIONS
            if key in member.annotations and is_booked("annotations", key)
        },
    )


def birth_lines(namespace: str, births: Mapping[str, Marks]) -> Iterator[str]:
    """Report the accounts that an update recreates, and their owners or states."""
    if not births:
        return
    owned = [
        f"{name} ({tenant})"
        for name, marks in births.items()
        if (tenant := marks.annotations.get(keys.TENANT_ID)) is not None
    ]
    dirty = [name for name, marks in births.items() if keys.CREATED_AGAIN in marks.annotations]
    kept = f"; {first_named(owned)} stay with their tenants" if owned else ""
    unknown = f"; {first_named(dirty)} will be dirty, except for the claims that had them" if dirty else ""
    yield (
        f"pool {namespace}: the Secrets of {how_many(len(births), 'account')} are gone{kept}{unknown}"
        f"\n→ unless this update creates them, run `pulumi refresh`, then `pulumi up`; see {RUNBOOK}"
    )
