"""Members that a stack declares, and changes to them that a new configuration must not make.

A blocked member must not be removed, renamed, replaced, retyped or taken from its tenant: the tenant would
lose the account, or the next tenant would find the resources left in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from components.account_pool.core.cleaning import undecided
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.consumers import held_by, stack_of
from components.account_pool.core.discrepancies import releases
from components.account_pool.core.identity import cloud_account, find_other, mark_twins
from components.account_pool.core.keys import INTERNAL, SHARED_CAPACITY, TENANT_ID
from components.account_pool.core.model import Member, State, tenant_label
from components.account_pool.core.records import Record
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.tokens import Token
from components.errors import Misconfigured, Problem, first_named, how_many
from components.labels import ACCOUNT_ID, BRING_YOUR_OWN, EXPIRES_AT, HYPERSCALER_TYPE, SHARED, TENANT_NAME
from components.naming import config_path


@dataclass(frozen=True, slots=True)
class DeclaredMember:
    """Declared account, without data: its type, id, tenant, labels, and annotations.

    `labels`, `annotations`: of its Secret, in addition to type, account id and owner.
    """

    type: str
    account_id: str
    tenant: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(
        cls,
        account_type: str,
        account_id: str,
        *,
        tenant: str | None = None,
        partition: Mapping[str, str] | None = None,
        shared_capacity: int | None = None,
        internal: bool = False,
        expires_at: str | None = None,
    ) -> DeclaredMember:
        """Create a declared member from configuration values.

        `shared_capacity`: maximum number of concurrent claims, None for an exclusive account. `internal`:
        only its own tenant can claim it. `expires_at`: when its key expires.
        """
        labels, annotations = dict(partition or {}), dict[str, str]()
        if tenant is not None:
            annotations[BRING_YOUR_OWN] = "true"
        if shared_capacity is not None:
            labels[SHARED] = "true"
            annotations[SHARED_CAPACITY] = str(shared_capacity)
        if internal:
            labels[INTERNAL] = "true"
        if expires_at is not None:
            annotations[EXPIRES_AT] = expires_at
        return cls(account_type, account_id, tenant, labels, annotations)

    @property
    def capacity(self) -> int | None:
        """Maximum number of concurrent claims; None for an exclusive account."""
        stated = self.annotations.get(SHARED_CAPACITY)
        return None if stated is None else int(stated)

    def as_member(self, name: str) -> Member:
        """Return the member as it will be once its Secret is created."""
        owner = {} if self.tenant is None else {TENANT_NAME: tenant_label(self.tenant)}
        labels = {**self.labels, HYPERSCALER_TYPE: self.type, **owner}
        return Member(name, "", "", labels, {**self.annotations, ACCOUNT_ID: self.account_id})


@dataclass(frozen=True, slots=True)
class Declaration:
    """Pool of a stack: its namespace, its members by Secret name, and its settings.

    `renamed`: former tenant name → new name.
    """

    namespace: str
    members: Mapping[str, DeclaredMember]
    settings: PoolConfigMap = field(default_factory=PoolConfigMap)
    allow_destroy: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])

    def applied_to(self, snapshot: PoolSnapshot) -> PoolSnapshot:
        """Return the snapshot with the members and key expiry times that this update adds."""
        present = {member.name for member in snapshot.members}
        coming = (one.as_member(name) for name, one in self.members.items() if name not in present)
        ends = {name: one.annotations.get(EXPIRES_AT) for name, one in self.members.items()}
        members = mark_twins((*snapshot.members, *coming))
        timed = (self.settings.clock.declared(member, ends.get(member.name)) for member in members)
        return replace(snapshot, members=tuple(timed))


KEEP_COPIES: Final = (
    "keep copies of them, set accountPool.allowDestroy: true and run `pulumi up`, then this again"
)
"""Fix for credentials that exist only in the cluster."""


def list_new_twins(
    known: Mapping[str, DeclaredMember], new: Declaration, snapshot: PoolSnapshot
) -> Iterator[Problem]:
    """Yield a problem for each new member whose account another, undeclared Secret of the pool already holds.

    `known`: members declared before in this namespace.
    """
    strangers = [each for each in snapshot.members if each.name not in {*new.members, *known}]
    for name, member in new.members.items():
        before = known.get(name)
        account = cloud_account(member.type, member.account_id)
        other = find_other(name, account, strangers)
        if other and (before is None or cloud_account(before.type, before.account_id) != account):
            owner = f" of tenant {other.annotations.get(TENANT_ID, other.tenant)}" if other.tenant else ""
            yield Problem(
                config_path("accountPool", "members", name, "accountId"),
                f"the pool has this account already, as Secret {other.name}{owner}, so it would be given away"
                " twice",
                "take the entry out, or that Secret out of the pool first",
            )


def is_touched(old: Declaration, new: Declaration) -> bool:
    """Return whether a change might affect accounts in use, so that the pool must be read."""
    was, now = old.settings, new.settings
    said = (was.partition_keys, was.scheme.names) != (now.partition_keys, now.scheme.names)
    return said or any(_losses(old, new)) or any(_disowned(old, new)) or any(_narrowed(old, new))


def refusals(old: Declaration, new: Declaration, snapshot: PoolSnapshot) -> Iterator[Problem]:
    """Yield what the new declaration would take from current users; `snapshot`: of the old namespace."""
    recorded = len(snapshot.records) + len(snapshot.unreadable)
    if old.settings.partition_keys != new.settings.partition_keys and recorded:
        yield Problem(
            config_path("accountPool", "partitionKeys"),
            f"{how_many(recorded, 'claim')} recorded under the former keys would not be found again",
            "put the keys back, or release every claim first",
        )
    in_use = [member for member in snapshot.members if member.tenant or member.state or member.shared]
    if old.settings.scheme.names != new.settings.scheme.names and (recorded or in_use):
        yield Problem(
            config_path("accountPool", "labels"),
            f"{how_many(recorded, 'claim')} recorded and {how_many(len(in_use), 'account')} with an owner, a"
            " state or claims under the former labels, which would not be read any more",
            "put the labels back, or release every claim and clean every account first",
        )
    if old.namespace != new.namespace and not new.allow_destroy and (lost := describe_lost(snapshot)):
        yield Problem(config_path("accountPool", "namespace"), f"{lost}: it would be lost", KEEP_COPIES)
    live, held = {member.name: member for member in snapshot.members}, _holders(snapshot, old.namespace)
    for name, loss in _losses(old, new):
        owner = None if name in new.members else old.members[name].tenant
        reason = _blocked(live.get(name), held, old.namespace, allow_destroy=new.allow_destroy)
        if reason is not None:
            fix = "put the member back as it was until then"
            if owner is not None:
                fix = (
                    f"put it back, and tenant {owner} without the slot that holds it; update, and remove both"
                )
            yield Problem(config_path("accountPool", "members", name), f"{loss}, but {reason}", fix)
    for name, tenant, other in _disowned(old, new):
        if other is not None and new.renamed.get(tenant) == other:
            problem = _left_behind(live.get(name), tenant, other)
        else:
            problem = _uncleaned(live.get(name), held, tenant, other, old.namespace)
        if problem is not None:
            yield problem
    for name, capacity in _narrowed(old, new):
        place = config_path("accountPool", "members", name, "sharedCapacity")
        if name in live:
            yield from _crowded(live[name], capacity, place, "it", snapshot)


def narrowed_all(former: int, capacity: int, snapshot: PoolSnapshot) -> Iterator[Problem]:
    """Yield problems of accounts that use the pool's default capacity, when that default shrinks."""
    place = config_path("accountPool", "sharedCapacity")
    for member in snapshot.members:
        if member.shared and member.annotations.get(SHARED_CAPACITY) == str(former):
            yield from _crowded(member, capacity, place, f"account {member.name}", snapshot)


def _crowded(
    member: Member, capacity: int, place: str, what: str, snapshot: PoolSnapshot
) -> Iterator[Problem]:
    try:
        tokens = member.tokens
    except Misconfigured as unreadable:
        yield Problem(place, unreadable.problem, unreadable.fix)
        return
    if len(tokens) > capacity:
        records = {record.token: f"{record.tenant}/{record.slot}" for record in snapshot.records}
        holding = ", ".join(sorted(records.get(token, f"unknown ({token.record})") for token in tokens))
        yield Problem(
            place,
            f"{what} would take {capacity} at most, but {how_many(len(tokens), 'claim')} took a place:"
            f" {holding}",
            f"leave it at {len(tokens)} or more, or release some of them first",
        )


def _narrowed(old: Declaration, new: Declaration) -> Iterator[tuple[str, int]]:
    """Yield each shared member whose capacity shrinks, and the new capacity."""
    for name, before in old.members.items():
        capacity = new.members[name].capacity if name in new.members else None
        if before.capacity is not None and capacity is not None and capacity < before.capacity:
            yield name, capacity


def _disowned(old: Declaration, new: Declaration) -> Iterator[tuple[str, str, str | None]]:
    """Yield each member that its tenant brought and would lose: name, tenant, and the new tenant if any."""
    for name, before in old.members.items():
        after = new.members.get(name)
        if before.tenant is not None and after is not None and after.tenant != before.tenant:
            yield name, before.tenant, after.tenant


def _left_behind(member: Member | None, tenant: str, now: str) -> Problem | None:
    """Return why a member would not follow its renamed tenant: it moves with its claim, and has none."""
    if member is None or member.tenant != tenant_label(tenant) or member.tokens:
        return None
    return Problem(
        config_path("accountPool", "members", member.name, "tenant"),
        f"no slot of {tenant} claims it, so it would stay {tenant}'s",
        f"let {tenant} claim it in an update of its own, then call it {now}",
    )


def _uncleaned(
    member: Member | None, held: Mapping[Token, str], tenant: str, other: str | None, namespace: str
) -> Problem | None:
    """Return why a member cannot be taken from its tenant; a dirty one can: it is cleaned before use."""
    if member is None or member.tenant is None:
        return None
    loss = f"it would be taken from {tenant}, who brought it along"
    used = _blocked(member, held, namespace, allow_destroy=True)
    if used is None and member.state == State.DIRTY and other is None:
        return None
    first = "" if other is None else f"leave `tenant` out before {other} gets it; for that, "
    command = f"credfleet pool mark-dirty {member.name} --reason 'taken from its tenant' -n {namespace}"
    return Problem(
        config_path("accountPool", "members", member.name, "tenant"),
        f"{loss}, but {used or 'what is in it was not cleaned'}",
        "put the tenant back until then" if used else f"{first}run `{command}`, then this again",
    )


def list_blocked(snapshot: PoolSnapshot, namespace: str, *, allow_destroy: bool) -> Iterator[tuple[str, str]]:
    """Yield the members that must stay, each with the reason."""
    held = _holders(snapshot, namespace)
    for member in snapshot.members:
        reason = _blocked(member, held, namespace, allow_destroy=allow_destroy)
        if reason is not None:
            yield member.name, reason


def describe_lost(snapshot: PoolSnapshot) -> str:
    """Return which members' only credential would be deleted with the pool; empty if none."""
    names = [member.name for member in snapshot.members if not member.is_declared]
    return f"no stack has the credential of {first_named(names)}, imported or brought" if names else ""


def _holders(snapshot: PoolSnapshot, namespace: str) -> Mapping[Token, str]:
    """Return the holders of each claim token; if none is a stack, also how to release the claim."""

    def describe(record: Record) -> str:
        holders = held_by(record, snapshot.consumers)
        return (
            holders if any(map(stack_of, record.holders)) else f"{holders}: run {releases(record, namespace)}"
        )

    return {record.token: describe(record) for record in snapshot.records if record.holders}


def _blocked(
    member: Member | None, held: Mapping[Token, str], namespace: str, *, allow_destroy: bool
) -> str | None:
    if member is None:
        return None
    try:
        reason = blocked_reason(member, namespace, allow_destroy=allow_destroy)
        return reason and "; ".join(
            (reason, *(f"held by {held[token]}" for token in member.tokens if token in held))
        )
    except Misconfigured as unreadable:
        return f"{unreadable.problem}; {unreadable.fix}"


def _losses(old: Declaration, new: Declaration) -> Iterator[tuple[str, str]]:
    """Yield each member that changes or is removed, and how."""
    for name, before in old.members.items():
        after = new.members.get(name)
        if old.namespace != new.namespace:
            yield name, f"it would move from namespace {old.namespace} to {new.namespace}"
        elif after is None:
            other = next((it for it, one in new.members.items() if one.account_id == before.account_id), None)
            yield name, "it would be removed" if other is None else f"it would be renamed to {other}"
        elif after.type != before.type:
            yield name, f"it would become {after.type} instead of {before.type}"
        elif after.account_id != before.account_id:
            yield name, "it would be another account under the same name"
        elif after.labels != before.labels:
            yield name, "it would move to another part of the pool"


def blocked_reason(member: Member, namespace: str, *, allow_destroy: bool = False) -> str | None:
    """Return why a member must stay unchanged, or None. An owner label alone does not block.

    `allow_destroy`: for disposable stacks; dirty members can be removed without cleaning.
    """
    if member.tokens:
        owner = f" by tenant {member.tenant}" if member.tenant else ""
        return f"it is claimed{owner}; release the claim first"
    if member.state == State.CLEANING:
        return "it is being cleaned; wait until it is done"
    if member.state == State.DIRTY and not allow_destroy:
        why = undecided(member, namespace)
        clean = why.fix if why else f"run `credfleet pool clean -n {namespace}`"
        give_up = f"`credfleet pool decommission {member.name} -n {namespace}`"
        return f"its last tenant's resources may still be in it; {clean}, or {give_up} to give it up"
    return None
