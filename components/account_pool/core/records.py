"""The record of a claim, what its holder is told of it, and what a release must show.

A *record* is a ConfigMap that says which tenant has which member, and who holds it. The member carries its
token, so that the two can be told to belong together (docs/design/claim-protocol.md, objects and keys).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from components.account_pool.core.keys import POOL_RECORD
from components.account_pool.core.model import JsonObject, Member, Partition, Phase, Policy, tenant_label
from components.account_pool.core.tokens import Token
from components.documents import read_json
from components.errors import Misconfigured
from components.labels import HYPERSCALER_TYPE, SHARED, TENANT_NAME

NO_MEMBER: Final = "-"
"""What a record has for the uid of its account before it is bound; a pool's policy refuses it empty."""


@dataclass(frozen=True, slots=True)
class Record:
    """One claim: which member a tenant's slot has, how far the claim has come, and who holds it.

    member_uid: of the account it was bound to; NO_MEMBER before.
    holders: holder id → sequence number, raised by every repeated claim of that holder
    (docs/design/claim-protocol.md, sequence numbers).
    retired: the highest sequence number of a holder who left, so that one who returns never gets it again.
    former_uid: the uid before a restore from a backup, so that fences of that time are still understood.
    moves: the token of the record that had the account under its former name (`moving.py`).
    states: holder → the state of the stack that claimed under that name; absent of others.
    receipts: holder → the rotation whose key all has that it makes of the account; absent before the first.
    """

    name: str
    uid: str
    resource_version: str
    tenant: str
    partition: Partition
    slot: str
    member: str
    member_uid: str
    attempt: int
    phase: Phase
    policy: Policy
    limit: int | None
    holders: Mapping[str, int]
    retired: int = 0
    former_uid: str = ""
    since: str = ""
    states: Mapping[str, str] = field(default_factory=dict[str, str])
    moves: Token | None = None
    receipts: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def token(self) -> Token:
        """What its member carries."""
        return Token(self.name, self.uid, self.attempt)

    @property
    def tenant_label(self) -> str:
        """The label value of its tenant."""
        return tenant_label(self.tenant)

    def is_carried_by(self, member: Member) -> bool:
        """Whether this is the member of the claim, right now."""
        return member.bears(self.token) and (member.shared or member.tenant == self.tenant_label)

    def is_stripped_from(self, member: Member) -> bool:
        """Whether the owner's label of a member was taken off manually while the token of this claim stayed.

        One without a type is not in the pool; or the pool calls its labels otherwise.
        """
        is_known = member.type != "" and not member.shared
        return is_known and member.tenant is None and member.bears(self.token)

    def has_had(self, member: Member) -> bool:
        """Whether it was bound to this member, which bears its token: what is released tells it still."""
        return self.member == member.name and self.member_uid != NO_MEMBER and member.bears(self.token)

    def has_room_for(self, holder: str) -> bool:
        """Whether the limit lets this holder in; one who is in already always fits."""
        return self.limit is None or holder in self.holders or len(self.holders) < self.limit

    def with_holder(self, holder: str, state: str | None = None) -> Record:
        """Return the same claim after one more claim of this holder. state: of its stack."""
        sequence = max(self.holders.get(holder, 0), self.retired) + 1
        states = self.states if state is None else {**self.states, holder: state}
        return replace(self, holders={**self.holders, holder: sequence}, states=states)

    def is_of_another_state(self, holder: str, state: str | None) -> bool:
        """Whether it is held under this name by a stack of another state."""
        return holder in self.holders and self.states.get(holder, state) != state

    def without_holder(self, holder: str) -> Record:
        """Return the same claim after this holder left."""
        rest = {h: n for h, n in self.holders.items() if h != holder}
        states = {h: state for h, state in self.states.items() if h != holder}
        receipts = {h: key for h, key in self.receipts.items() if h != holder}
        retired = max(self.retired, self.holders.get(holder, 0))
        return replace(self, holders=rest, retired=retired, states=states, receipts=receipts)

    def fence(self, holder: str) -> Fence:
        """Return what a release must show that means the claim this holder has now."""
        return Fence(self.uid, self.holders[holder], self.states.get(holder))

    def moved_to(self, member: Member) -> Record:
        """Return the same claim trying another member: a new attempt, so the old token is dead."""
        return replace(self, member=member.name, member_uid=NO_MEMBER, attempt=self.attempt + 1)

    def render(self, namespace: str) -> JsonObject:
        """Render the ConfigMap, with uid and resourceVersion where known (as preconditions)."""
        metadata: JsonObject = {
            "name": self.name,
            "namespace": namespace,
            "labels": {
                POOL_RECORD: "true",
                HYPERSCALER_TYPE: self.partition.type,
                TENANT_NAME: self.tenant_label,
            },
        }
        if self.uid:
            metadata |= {"uid": self.uid, "resourceVersion": self.resource_version}
        data = {
            "tenant": self.tenant,
            "partition": str(self.partition),
            "slot": self.slot,
            "member": self.member,
            "memberUid": self.member_uid,
            "attempt": str(self.attempt),
            "phase": str(self.phase),
            "policy": str(self.policy),
            "holders": json.dumps(self.holders, sort_keys=True),
        }
        further = {
            "limit": None if self.limit is None else str(self.limit),
            "retired": str(self.retired or ""),
            "formerUid": self.former_uid,
            "states": json.dumps(self.states, sort_keys=True) if self.states else None,
            "moves": str(self.moves or ""),
            "receipts": json.dumps(self.receipts, sort_keys=True) if self.receipts else None,
        }
        data |= {key: text for key, text in further.items() if text}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    @classmethod
    def parse(cls, body: JsonObject) -> Record:
        """From its ConfigMap; raises Misconfigured if something else is under its name."""
        meta, data = body["metadata"], dict[str, str](body.get("data") or {})
        try:
            holders: dict[str, Any] = read_json(data["holders"])
            states: dict[str, Any] = read_json(data.get("states", "{}"))
            receipts: dict[str, Any] = read_json(data.get("receipts", "{}"))
            tenant_label(data["tenant"])
            return cls(
                name=meta["name"],
                uid=meta["uid"],
                resource_version=meta["resourceVersion"],
                tenant=data["tenant"],
                partition=_parse_partition(data["partition"]),
                slot=data["slot"],
                member=data["member"],
                member_uid=data["memberUid"],
                attempt=int(data["attempt"]),
                phase=Phase(data["phase"]),
                policy=Policy(data["policy"]),
                limit=int(data["limit"]) if "limit" in data else None,
                holders={holder: int(number) for holder, number in holders.items()},
                retired=int(data.get("retired", "0")),
                former_uid=data.get("formerUid", ""),
                since=str(meta.get("creationTimestamp") or ""),
                states={holder: str(state) for holder, state in states.items()},
                moves=Token.parse(data["moves"], data["member"]) if "moves" in data else None,
                receipts={holder: str(key) for holder, key in receipts.items()},
            )
        except (KeyError, ValueError, TypeError, AttributeError, Misconfigured):
            raise Misconfigured(
                place=f"ConfigMap {meta['name']}",
                problem="it has the name of a claim but does not hold one",
                fix="restore it from a backup, or delete it once the account it named is not in use",
            ) from None


def _parse_partition(text: str) -> Partition:
    terms: dict[str, str | None] = {}
    for term in text.split(","):
        key, _, value = term.partition("=")
        terms[key.removeprefix("!")] = None if term.startswith("!") else value
    account_type = terms.pop(HYPERSCALER_TYPE)
    shared = terms.pop(SHARED, None) is not None
    return Partition(str(account_type), tuple(sorted(terms.items())), shared)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim that is held: the account, and what its holder must show to release it.

    sequence and record_uid are the fence of the replacement. reused: the account was claimed
    already. rotation: what brought its key into use, while the former one is valid.
    """

    tenant: str
    type: str
    slot: str
    secret_name: str
    member_uid: str
    account_id: str | None
    record: str
    record_uid: str
    holder: str
    sequence: int
    holders: int
    policy: Policy
    limit: int | None
    reused: bool
    phase: Phase = Phase.BOUND
    rotation: str | None = None

    @classmethod
    def by(cls, record: Record, member: Member, holder: str, *, reused: bool) -> Claimed:
        """Return what this holder has of this record."""
        return cls(
            tenant=record.tenant,
            type=record.partition.type,
            slot=record.slot,
            secret_name=member.name,
            member_uid=member.uid,
            account_id=member.account_id,
            record=record.name,
            record_uid=record.uid,
            holder=holder,
            sequence=record.holders[holder],
            holders=len(record.holders),
            policy=record.policy,
            limit=record.limit,
            reused=reused,
            rotation=member.rotation,
        )

    @property
    def fence(self) -> Fence:
        """What a later release by this holder must show."""
        return Fence(self.record_uid, self.sequence)


@dataclass(frozen=True, slots=True)
class Fence:
    """Which claim a release means: a later claim of the same holder, or of another state, is not touched."""

    record_uid: str
    sequence: int
    state: str | None = None

    def is_overtaken(self, record: Record, holder: str) -> bool:
        """Whether the holder claimed again since, on this record or on one made after it."""
        if self.record_uid not in (record.uid, record.former_uid):
            return True
        if record.is_of_another_state(holder, self.state):
            return True
        return record.holders.get(holder, 0) > self.sequence
