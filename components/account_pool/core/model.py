"""The models of the account pool: members, partitions and requests; `records.py` has those of claims.

A *member* is a Secret that holds the credential of one account; only its metadata is ever seen here
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
    KEY_OPERATION,
    KEY_PHASE,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
    STATE_BEFORE,
)
from components.account_pool.core.tokens import Token, is_count
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
    def rotation(self) -> str | None:
        """What brought its key into use, while the former one is valid."""
        return self.annotations.get(KEY_OPERATION) if self.key_phase == KeyPhase.DELIVERED else None

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
        try:
            claims: Any = read_json(self.annotations.get(SHARED_CLAIMS, "{}"))
        except ValueError:
            claims = None
        if not isinstance(claims, dict):
            raise Misconfigured(
                place=f"Secret {self.name}",
                problem=f"{SHARED_CLAIMS} is not a JSON object, so its claims cannot be counted",
                fix="restore it, or remove it if the account is not in use",
            )
        return _texts(claims)

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

    def place(self, keys: Iterable[str]) -> Partition:
        """Return the part of a pool with these keys that its labels place it in."""
        return Partition(self.type, tuple((key, self.labels.get(key)) for key in sorted(keys)), self.shared)


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Request of a holder for an account.

    policy, limit: they count only when the claim is new; None means the pool's default, a limit of 0 none.

    slot: one of several accounts of a tenant, or the consumer's id on a shared account.
    holder: the consumer, the same text whenever it runs again, by one process at a time.
    spill: one more account when the limit of those the slot has is reached (`selection.py`).
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
