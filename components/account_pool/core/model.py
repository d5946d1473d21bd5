"""The models of the account pool: members, records, tokens, partitions and requests.

A *member* is a Secret that holds the credential of one account; only its metadata is ever seen here. A
*record* is a ConfigMap that says which tenant has which member, and who holds it. A *token* on the member
names the record, so that the two can be told to belong together, and a left-over can be told from a claim
(docs/design/claim-protocol.md, objects and keys).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias, cast

from components import naming
from components.account_pool.core.keys import (
    CLAIM_ORIGIN,
    CLAIM_TOKEN,
    CREATED_AGAIN,
    CUT,
    FREED,
    INTERNAL,
    KEY_PHASE,
    POOL_RECORD,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
    STATE_BEFORE,
)
from components.documents import read_json
from components.errors import Misconfigured
from components.labels import ACCOUNT_ID, HYPERSCALER_TYPE, SHARED, TENANT_NAME

JsonObject: TypeAlias = dict[str, Any]

_TYPE = re.compile(r"[a-z0-9]([-a-z0-9_.]{0,61}[a-z0-9])?")

EVACUATING: Final = "leaving"
"""What a quarantined account says of itself that its holders are to leave."""


class State(StrEnum):
    """Why a member is not usable; a member without a state is."""

    DIRTY = "dirty"
    CLEANING = "cleaning"
    QUARANTINED = "quarantined"


class Phase(StrEnum):
    """How far a record has come."""

    PENDING = "Pending"
    BOUND = "Bound"
    RELEASING = "Releasing"


class KeyPhase(StrEnum):
    """How far the rotation of an account's key is; an account without one has one key.

    PREPARING: a second key is made. PREPARED: it is there, and has no holder. DELIVERED: it is in use, and
    the former one is valid. COMPLETING: the one that is not in use is revoked.
    """

    PREPARING = "preparing"
    PREPARED = "prepared"
    DELIVERED = "delivered"
    COMPLETING = "completing"


class Policy(StrEnum):
    """State of an account of the pool after its last holder left."""

    RETAIN = "retain"
    RELEASE = "release"
    CLEAN = "clean"
    QUARANTINE = "quarantine"


class Origin(StrEnum):
    """Where a member came from that is claimed, or was: free in the pool, or already its tenant's own.

    RETAINED: from the pool, and its tenant's since a release with policy retain; it stays so when claimed.
    """

    POOL = "pool"
    OWNER = "owner"
    RETAINED = "retained"


def is_count(text: str) -> bool:
    """Whether a text is a number that a count can be."""
    return text.isdecimal() and len(text) < 10


def account_key(account_id: str) -> str:
    """Return what ids of accounts are compared by: that of Azure is a GUID, the same one in either case."""
    return account_id.lower() if naming.is_guid(account_id) else account_id


def tenant_label(tenant: str) -> str:
    """Return the label value of a tenant: itself where that is a valid value, else a digest.

    Raises Misconfigured for a tenant that is empty or has blanks around it.
    """
    try:
        return naming.tenant_label(tenant)
    except ValueError as error:
        raise Misconfigured(
            place=f"tenant {tenant!r}",
            problem=f"{error}, else two spellings would be two owners",
            fix="give the tenant a name without blanks around it",
        ) from None


@dataclass(frozen=True, slots=True)
class Token:
    """What a member carries of a record: its name, the uid the server gave it, and the attempt.

    The uid never comes back, and the attempt rises with every change of member, so a token belongs to one
    member and stays dead once its record is gone or has moved on.
    """

    record: str
    uid: str
    attempt: int

    def __str__(self) -> str:
        return f"{self.record}.{self.uid}.{self.attempt}"

    @classmethod
    def parse(cls, text: str, member: str) -> Token:
        """Read the token in an annotation of `member`; raises Misconfigured when it is none."""
        record, _, rest = text.partition(".")
        uid, _, attempt = rest.rpartition(".")
        if not record or not uid or not is_count(attempt):
            raise Misconfigured(
                place=f"Secret {member}",
                problem=f"{CLAIM_TOKEN} {text!r} is not a token of this protocol",
                fix="restore it, or remove it if the account is not in use",
            )
        return cls(record, uid, int(attempt))


@dataclass(frozen=True, slots=True)
class Partition:
    """The part of a pool that serves a request: a type, and a value or absence per key."""

    type: str
    values: tuple[tuple[str, str | None], ...] = ()
    shared: bool = False

    def __str__(self) -> str:
        """Return the canonical text that names records: terms sorted by key, absent keys as `!key`."""
        terms = {HYPERSCALER_TYPE: self.type, **dict(self.values)}
        if self.shared:
            terms[SHARED] = "true"
        return ",".join(f"!{key}" if terms[key] is None else f"{key}={terms[key]}" for key in sorted(terms))

    @property
    def given(self) -> dict[str, str]:
        """The values of those keys that are not absent."""
        return {key: value for key, value in self.values if value is not None}

    @classmethod
    def of(
        cls, account_type: str, values: Mapping[str, str], keys: Iterable[str], *, shared: bool = False
    ) -> Partition:
        """Place a request in a pool with these keys; raises Misconfigured for a bad type, key or value."""
        if not _TYPE.fullmatch(account_type):
            raise Misconfigured(
                place=f"type {account_type!r}",
                problem="types are compared exactly and are lower-case label values, so no account could"
                " match",
                fix="write it in lower case, like aws, azure, gcp or gcp_cf-sa30",
            )
        keys = tuple(keys)
        if unknown := sorted(set(values) - set(keys)):
            raise Misconfigured(
                place=f"partition {unknown[0]}",
                problem=f"the pool is not partitioned by it; its keys are {', '.join(keys) or 'none'}",
                fix="name one of its keys, or add this one to accountPool.partitionKeys",
            )
        for key, value in values.items():
            if not naming.is_label_value(value) or value == "false":
                raise Misconfigured(
                    place=f"partition {key}",
                    problem=f"{value!r} is not a value a member can have (`false` is said by leaving the key"
                    " out)",
                    fix=f"give {key} a label value, or leave it out",
                )
        return cls(account_type, tuple((key, values.get(key)) for key in sorted(keys)), shared)


def record_name(partition: Partition, tenant: str, slot: str) -> str:
    """Return the one name of the record of a tenant's slot, on which two first claims collide."""
    text = json.dumps([str(partition), tenant, slot], separators=(",", ":"), ensure_ascii=False)
    return "claim-" + hashlib.sha256(text.encode()).hexdigest()[:40]


def list_data_writes(managed: Iterable[JsonObject]) -> list[JsonObject]:
    """Return who has written the data of a Secret as it is: entries of `managedFields`."""
    return [each for each in managed if "f:data" in (each.get("fieldsV1") or {})]


WRITERS_OF_STACKS: Final = ("pulumi", "credfleet-projection")
"""How the names begin under which an update writes Secrets."""


def _texts(value: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in cast("dict[str, Any]", value or {}).items()}


def written_at(meta: JsonObject, key: str, part: str = "labels") -> str:
    """Return when a label was last written, as `managedFields` has it; empty where they do not tell.

    part: where the key is, among the labels or the annotations.
    """
    if key not in (meta.get(part) or {}):
        return ""
    times = (
        str(entry.get("time") or "")
        for entry in meta.get("managedFields") or ()
        if f"f:{key}" in ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get(f"f:{part}", {})
    )
    return min(filter(None, times), default="")


@dataclass(frozen=True, slots=True)
class Member:
    """A Secret of the pool, metadata only, as one answer of the API server showed it.

    unfit: what of its labels means nothing in the words of its pool. state_since: when its state was last
    written, by the API server's clock; empty without a state, or where it was not kept. managed: who wrote
    which field, as the API server books it. freed_at: when it became free, if it was in use before.
    rests_until: when it may be claimed again. key_ends: when its key ends, as far as it is known.
    needs_new_key: whether it is free only with another key than its last tenant had.
    """

    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    unfit: str = ""
    state_since: str = ""
    managed: tuple[JsonObject, ...] = field(default=(), compare=False, repr=False)
    freed_at: str = ""
    rests_until: str = ""
    key_ends: str = ""
    key_ends_soon: bool = False
    needs_new_key: bool = False

    @classmethod
    def parse(cls, body: JsonObject) -> Member:
        """From a Secret or its PartialObjectMetadata, in credfleet's words (`label_scheme.py`)."""
        meta = body["metadata"]
        since = str(meta["stateSince"]) if "stateSince" in meta else written_at(meta, POOL_STATE)
        return cls(
            meta["name"],
            meta["uid"],
            meta["resourceVersion"],
            _texts(meta.get("labels")),
            _texts(meta.get("annotations")),
            str(meta.get("unfit") or ""),
            since,
            tuple(meta.get("managedFields") or ()),
            written_at(meta, FREED, "annotations"),
            str(meta.get("restsUntil") or ""),
            str(meta.get("keyEnds") or ""),
            bool(meta.get("keyEndsSoon")),
            bool(meta.get("needsNewKey")),
        )

    @property
    def type(self) -> str:
        """Its hyperscaler type, empty when it has none."""
        return self.labels.get(HYPERSCALER_TYPE, "")

    @property
    def tenant(self) -> str | None:
        """The label value of its owner, None without one."""
        return self.labels.get(TENANT_NAME)

    @property
    def state(self) -> str | None:
        """Why it is not usable, as it stands; None when it is."""
        return self.labels.get(POOL_STATE)

    @property
    def is_declared(self) -> bool:
        """Whether a stack says what is in it; of one that was imported or brought, only the cluster knows."""
        booked = list_data_writes(self.managed)
        return any(str(each.get("manager")).startswith(WRITERS_OF_STACKS) for each in booked)

    @property
    def is_to_be_left(self) -> bool:
        """Whether its holders must go on to another account."""
        return self.state == State.QUARANTINED and self.annotations.get(STATE_BEFORE) == EVACUATING

    @property
    def is_cut_off(self) -> bool:
        """Whether not even who holds it may read its credential."""
        return self.state == State.QUARANTINED and CUT in self.annotations

    @property
    def key_phase(self) -> str | None:
        """How far the rotation of its key is, as it stands; None where none is under way."""
        return self.labels.get(KEY_PHASE)

    @property
    def is_created_again(self) -> bool:
        """Whether its Secret was lost: it is not known who uses the account, so it is not even cleaned."""
        return self.state == State.DIRTY and CREATED_AGAIN in self.annotations

    @property
    def shared(self) -> bool:
        """Whether many tenants use it at once."""
        return SHARED in self.labels

    @property
    def internal(self) -> bool:
        """Whether it is kept out of the pool: only a tenant whose label it bears may claim it."""
        return INTERNAL in self.labels

    @property
    def token(self) -> Token | None:
        """The token of the dedicated claim it carries; raises Misconfigured when unreadable."""
        text = self.annotations.get(CLAIM_TOKEN)
        return None if text is None else Token.parse(text, self.name)

    @property
    def shared_claims(self) -> Mapping[str, str]:
        """Of a shared member: token text → consumer; raises Misconfigured when unreadable."""
        return _json_texts(self.annotations.get(SHARED_CLAIMS, "{}"), f"Secret {self.name}", SHARED_CLAIMS)

    @property
    def shared_capacity(self) -> int:
        """Of a shared member: how many claims it takes; raises Misconfigured when it does not say."""
        text = self.annotations.get(SHARED_CAPACITY, "")
        if not is_count(text):
            raise Misconfigured(
                place=f"Secret {self.name}",
                problem=f"a shared account says in {SHARED_CAPACITY} how many claims it takes, here {text!r}",
                fix="set the annotation to a number",
            )
        return int(text)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Every token it carries, dedicated or shared."""
        if self.shared:
            return tuple(Token.parse(text, self.name) for text in self.shared_claims)
        return () if self.token is None else (self.token,)

    @property
    def origin(self) -> str | None:
        """Where it came from, as it stands; None for one not claimed since it was made or cleaned."""
        return self.annotations.get(CLAIM_ORIGIN)

    @property
    def account_id(self) -> str | None:
        """The id of the account at its cloud, if the pool owner said it."""
        return self.annotations.get(ACCOUNT_ID)

    def bears(self, token: Token) -> bool:
        """Whether this very token is on it."""
        if self.shared:
            return str(token) in self.shared_claims
        return self.annotations.get(CLAIM_TOKEN) == str(token)

    def carries(self, record: Record) -> bool:
        """Whether it is the member of this claim, right now."""
        return self.bears(record.token) and (self.shared or self.tenant == record.tenant_label)

    def is_stripped_of(self, record: Record) -> bool:
        """Whether its owner's label was taken off manually while the token of this claim stayed.

        One without a type is not in the pool; or the pool calls its labels otherwise.
        """
        is_known = self.type != "" and not self.shared
        return is_known and self.tenant is None and self.bears(record.token)

    def place(self, keys: Iterable[str]) -> Partition:
        """Return the part of a pool with these keys that its labels place it in."""
        return Partition(self.type, tuple((key, self.labels.get(key)) for key in sorted(keys)), self.shared)


def _json_texts(text: str, place: str, key: str) -> dict[str, str]:
    try:
        value: Any = read_json(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Misconfigured(
            place=place,
            problem=f"{key} is not a JSON object, so its claims cannot be counted",
            fix="restore it, or remove it if the account is not in use",
        )
    return _texts(value)


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
        if self.limit is not None:
            data["limit"] = str(self.limit)
        if self.retired:
            data["retired"] = str(self.retired)
        if self.former_uid:
            data["formerUid"] = self.former_uid
        if self.states:
            data["states"] = json.dumps(self.states, sort_keys=True)
        if self.moves is not None:
            data["moves"] = str(self.moves)
        if self.receipts:
            data["receipts"] = json.dumps(self.receipts, sort_keys=True)
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    @classmethod
    def parse(cls, body: JsonObject) -> Record:
        """From its ConfigMap; raises Misconfigured if something else is under its name."""
        meta, data = body["metadata"], _texts(body.get("data"))
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
class ClaimRequest:
    """Request of a holder for an account.

    policy, limit: they count only when the claim is new; None means the pool's default, a limit of 0 none.

    slot: one of several accounts of a tenant, or the consumer's id on a shared account.
    holder: the consumer, the same text whenever it runs again, by one process at a time.
    spill: one more account when the limit of those the slot has is reached (`spilling.py`).
    required: a stack's update fails when it cannot be served, instead of going on without it (`skipping.py`).
    former: the account that the claim had before its record was lost; it is asked for first. state: of the
    stack that claims, None of others. takes_over: it claims what another state holds under its name.
    previously: the holders as which it was claimed under former names of its tenant or slot.

    Once placed, namespace and place say in which part of which pool. only: the one member to take, for an
    adoption; else any. avoid: others not to take, as far as is known when they are chosen.
    """

    tenant: str
    type: str
    slot: str = "0"
    partition: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    shared: bool = False
    holder: str = "cli"
    policy: Policy | None = None
    limit: int | None = None
    spill: bool = False
    required: bool = field(default=False, compare=False)
    former: str | None = None
    state: str | None = None
    takes_over: bool = False
    previously: tuple[str, ...] = ()
    namespace: str = ""
    place: Partition = Partition("")
    only: str | None = None
    avoid: Container[str] = field(default=frozenset[str](), compare=False, repr=False)

    def under(self, holder: str) -> ClaimRequest:
        """Return the claim as it was under a former name. holder: who held it then."""
        tenant, slot = holder.rsplit("/", 2)[1:]
        return replace(self, tenant=tenant, slot=slot, holder=holder, previously=())

    @classmethod
    def at(cls, namespace: str, place: Partition, tenant: str, slot: str, holder: str) -> ClaimRequest:
        """Return a request on a part of a pool."""
        asked = cls(tenant, place.type, slot, place.given, place.shared, holder, Policy.CLEAN)
        return replace(asked, namespace=namespace, place=place)

    def placed(
        self, namespace: str, keys: Iterable[str], policy: Policy = Policy.CLEAN, limit: int | None = None
    ) -> ClaimRequest:
        """Place it in a pool with these keys, and with this policy and limit where it names none.

        Raises Misconfigured for a request that no pool could serve.
        """
        for what, text in (("slot", self.slot), ("holder", self.holder)):
            if not text or text != text.strip():
                raise Misconfigured(
                    place=f"{what} {text!r}",
                    problem=f"a {what} is empty or has blanks around it, so it could not be"
                    " distinguished from another",
                    fix=f"give the {what} a name without blanks around it",
                )
        tenant_label(self.tenant)
        return replace(
            self,
            namespace=namespace,
            place=Partition.of(self.type, self.partition, keys, shared=self.shared),
            policy=self.policy or policy,
            limit=(limit if self.limit is None else self.limit) or None,
        )

    @property
    def record(self) -> str:
        """The name of its record, once it is placed."""
        return record_name(self.place, self.tenant, self.slot)

    @property
    def owner(self) -> str:
        """The label value of its tenant."""
        return tenant_label(self.tenant)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim that is held: the account, and what its holder must show to release it.

    sequence and record_uid are the fence of the replacement. reused: the account was claimed
    already.
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
