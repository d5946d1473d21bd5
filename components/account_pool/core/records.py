"""Record of a claim, the claim as its holder sees it, and the fence of a release.

A *record* is a ConfigMap with the tenant, the member and the holders of a claim. The member carries the
record's token, which links the two (docs/design/claim-protocol.md, objects and keys).
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
"""Uid of the account in a record that is not bound yet; the admission policy rejects an empty uid."""


@dataclass(frozen=True, slots=True)
class Record:
    """One claim: the member of a tenant's slot, the phase of the claim, and its holders.

    `member_uid`: uid of the bound account; NO_MEMBER before. `holders`: holder id → sequence number,
    increased by every repeated claim of that holder (docs/design/claim-protocol.md, sequence numbers).
    `retired`: highest sequence number of a former holder, so that none is reused. `former_uid`: uid before a
    restore from a backup, so that older fences still match. `moves`: token of the record that had the account
    under its former name (`moving.py`). `states`: holder → state id of the claiming stack; other holders are
    absent. `receipts`: holder → rotation whose key all its copies use; absent before the first rotation.
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
        """Token that its member carries."""
        return Token(self.name, self.uid, self.attempt)

    @property
    def tenant_label(self) -> str:
        """Label value of its tenant."""
        return tenant_label(self.tenant)

    def is_carried_by(self, member: Member) -> bool:
        """Return whether this member carries the claim and its owner label."""
        return member.bears(self.token) and (member.shared or member.tenant == self.tenant_label)

    def is_stripped_from(self, member: Member) -> bool:
        """Return whether a member's owner label was removed manually while the token of this claim stayed.

        A member without a type is not in the pool, or the pool uses other label names.
        """
        is_known = member.type != "" and not member.shared
        return is_known and member.tenant is None and member.bears(self.token)

    def has_had(self, member: Member) -> bool:
        """Return whether it was bound to this member, which carries its token; also true while releasing."""
        return self.member == member.name and self.member_uid != NO_MEMBER and member.bears(self.token)

    def has_room_for(self, holder: str) -> bool:
        """Return whether the limit admits this holder; a present holder always fits."""
        return self.limit is None or holder in self.holders or len(self.holders) < self.limit

    def with_holder(self, holder: str, state: str | None = None) -> Record:
        """Return the claim after one more claim of this holder. `state`: of its stack."""
        sequence = max(self.holders.get(holder, 0), self.retired) + 1
        states = self.states if state is None else {**self.states, holder: state}
        return replace(self, holders={**self.holders, holder: sequence}, states=states)

    def is_of_another_state(self, holder: str, state: str | None) -> bool:
        """Return whether a stack with another state holds it under this name."""
        return holder in self.holders and self.states.get(holder, state) != state

    def without_holder(self, holder: str) -> Record:
        """Return the claim without this holder."""
        rest = {h: n for h, n in self.holders.items() if h != holder}
        states = {h: state for h, state in self.states.items() if h != holder}
        receipts = {h: key for h, key in self.receipts.items() if h != holder}
        retired = max(self.retired, self.holders.get(holder, 0))
        return replace(self, holders=rest, retired=retired, states=states, receipts=receipts)

    def fence(self, holder: str) -> Fence:
        """Return the fence for a release of this holder's present claim."""
        return Fence(self.uid, self.holders[holder], self.states.get(holder))

    def moved_to(self, member: Member) -> Record:
        """Return the claim on another member: a new attempt, so the old token is dead."""
        return replace(self, member=member.name, member_uid=NO_MEMBER, attempt=self.attempt + 1)

    def render(self, namespace: str) -> JsonObject:
        """Render the ConfigMap, with uid and resourceVersion as preconditions if known."""
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
        """Parse a ConfigMap; raises Misconfigured if it is not a claim."""
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
    """Held claim: the account, and the fence for its release.

    `sequence`, `record_uid`: the fence. `reused`: the account was already claimed. `rotation`: operation that
    put its key in use, while the former key is valid.
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
        """Return the claimed account as this holder gets it."""
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
        """Fence for a later release by this holder."""
        return Fence(self.record_uid, self.sequence)


@dataclass(frozen=True, slots=True)
class Fence:
    """Identifies the claim to release: later claims of the holder, or of another state, stay."""

    record_uid: str
    sequence: int
    state: str | None = None

    def is_overtaken(self, record: Record, holder: str) -> bool:
        """Return whether the holder claimed again since then, on this record or a later one."""
        if self.record_uid not in (record.uid, record.former_uid):
            return True
        if record.is_of_another_state(holder, self.state):
            return True
        return record.holders.get(holder, 0) > self.sequence
