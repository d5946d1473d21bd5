"""Models of the account pool: members, partitions and requests; `records.py` has those of claims.

A *member* is a Secret that holds the credential of one account; only its metadata is read here
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
"""Value of STATE_BEFORE on a quarantined account whose holders must move to another account."""


class State(StrEnum):
    """Why a member is not usable; a usable member has no state."""

    DIRTY = "dirty"
    CLEANING = "cleaning"
    QUARANTINED = "quarantined"


class Phase(StrEnum):
    """Phase of a record."""

    PENDING = "Pending"
    BOUND = "Bound"
    RELEASING = "Releasing"


class KeyPhase(StrEnum):
    """Phase of the rotation of an account's key; without a phase, an account has one key.

    PREPARING: the second key is being created. PREPARED: it exists, unused. DELIVERED: it is in use, and the
    former key is still valid. COMPLETING: the key that is not in use is being revoked.
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
    """Origin of a claimed member: free in the pool, or already owned by its tenant.

    RETAINED: from the pool, and its tenant's since a release with policy retain; this stays when it is
    claimed.
    """

    POOL = "pool"
    OWNER = "owner"
    RETAINED = "retained"


def account_key(account_id: str) -> str:
    """Return the comparison key of an account id: Azure ids are GUIDs, and their case is ignored."""
    return account_id.lower() if naming.is_guid(account_id) else account_id


def tenant_label(tenant: str) -> str:
    """Return the label value of a tenant: its name if that is a valid value, otherwise a digest.

    Raises Misconfigured for a tenant that is empty or has surrounding whitespace.
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
    """Part of a pool that serves a request: a type, and a value or absence for each key."""

    type: str
    values: tuple[tuple[str, str | None], ...] = ()
    shared: bool = False

    def __str__(self) -> str:
        """Return the canonical form used in record names: terms sorted by key, absent keys as `!key`."""
        terms = {HYPERSCALER_TYPE: self.type, **dict(self.values)}
        if self.shared:
            terms[SHARED] = "true"
        return ",".join(f"!{key}" if terms[key] is None else f"{key}={terms[key]}" for key in sorted(terms))

    @property
    def given(self) -> dict[str, str]:
        """Values of the keys that are present."""
        return {key: value for key, value in self.values if value is not None}

    @classmethod
    def of(
        cls, account_type: str, values: Mapping[str, str], keys: Iterable[str], *, shared: bool = False
    ) -> Partition:
        """Create the partition of a request; raises Misconfigured for an invalid type, key or value."""
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
    """Return the record name of a tenant's slot; concurrent first claims collide on it."""
    text = json.dumps([str(partition), tenant, slot], separators=(",", ":"), ensure_ascii=False)
    return "claim-" + hashlib.sha256(text.encode()).hexdigest()[:40]


def list_data_writes(managed: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the `managedFields` entries of the writers of a Secret's data."""
    return [each for each in managed if "f:data" in (each.get("fieldsV1") or {})]


WRITERS_OF_STACKS: Final = ("pulumi", "credfleet-projection")
"""Prefixes of the field managers under which updates write Secrets."""


def _texts(value: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in cast("dict[str, Any]", value or {}).items()}


def written_at(meta: JsonObject, key: str, part: str = "labels") -> str:
    """Return when a label was last written, according to `managedFields`; empty if unknown.

    `part`: `labels` or `annotations`.
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
    """Secret of the pool, metadata only, as one answer of the API server showed it.

    `unfit`: why its labels are invalid in this pool. `state_since`: when its state was last written, by the
    API server's clock; empty without a state, or if unknown. `managed`: its managedFields. `freed_at`: when
    it became free, if it was in use before. `rests_until`: when it can be claimed again. `key_ends`: when its
    key expires, if known. `needs_new_key`: whether it becomes free only after its last tenant's key was
    replaced.
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
        """Parse a Secret or its PartialObjectMetadata, under credfleet's keys (`label_scheme.py`)."""
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
        """Its hyperscaler type; empty if it has none."""
        return self.labels.get(HYPERSCALER_TYPE, "")

    @property
    def tenant(self) -> str | None:
        """Label value of its owner; None without an owner."""
        return self.labels.get(TENANT_NAME)

    @property
    def state(self) -> str | None:
        """State label, unparsed; None if the member is usable."""
        return self.labels.get(POOL_STATE)

    @property
    def is_declared(self) -> bool:
        """Whether a stack wrote its data; only the cluster has the data of an imported or brought member."""
        booked = list_data_writes(self.managed)
        return any(str(each.get("manager")).startswith(WRITERS_OF_STACKS) for each in booked)

    @property
    def is_to_be_left(self) -> bool:
        """Whether its holders must move to another account."""
        return self.state == State.QUARANTINED and self.annotations.get(STATE_BEFORE) == EVACUATING

    @property
    def is_cut_off(self) -> bool:
        """Whether even its holders must not read its credential."""
        return self.state == State.QUARANTINED and CUT in self.annotations

    @property
    def key_phase(self) -> str | None:
        """Phase of its key rotation, unparsed; None if none is running."""
        return self.labels.get(KEY_PHASE)

    @property
    def rotation(self) -> str | None:
        """Operation that put its key in use, while the former key is still valid."""
        return self.annotations.get(KEY_OPERATION) if self.key_phase == KeyPhase.DELIVERED else None

    @property
    def is_created_again(self) -> bool:
        """Whether its Secret was lost and recreated: its users are unknown, so it is not even cleaned."""
        return self.state == State.DIRTY and CREATED_AGAIN in self.annotations

    @property
    def shared(self) -> bool:
        """Whether several tenants can use it concurrently."""
        return SHARED in self.labels

    @property
    def internal(self) -> bool:
        """Whether it is excluded from the pool: only the tenant in its label can claim it."""
        return INTERNAL in self.labels

    @property
    def token(self) -> Token | None:
        """Token of its dedicated claim; raises Misconfigured if unreadable."""
        text = self.annotations.get(CLAIM_TOKEN)
        return None if text is None else Token.parse(text, self.name)

    @property
    def shared_claims(self) -> Mapping[str, str]:
        """Token → consumer of a shared member; raises Misconfigured if unreadable."""
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
        """Number of claims that a shared member accepts; raises Misconfigured if not set."""
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
        """All tokens it carries, dedicated or shared."""
        if self.shared:
            return tuple(Token.parse(text, self.name) for text in self.shared_claims)
        return () if self.token is None else (self.token,)

    @property
    def origin(self) -> str | None:
        """Origin annotation, unparsed; None if it was not claimed since it was created or cleaned."""
        return self.annotations.get(CLAIM_ORIGIN)

    @property
    def account_id(self) -> str | None:
        """Id of the account at its cloud, if the pool owner set it."""
        return self.annotations.get(ACCOUNT_ID)

    def bears(self, token: Token) -> bool:
        """Return whether it carries exactly this token."""
        if self.shared:
            return str(token) in self.shared_claims
        return self.annotations.get(CLAIM_TOKEN) == str(token)

    def place(self, keys: Iterable[str]) -> Partition:
        """Return its partition in a pool with these keys, according to its labels."""
        return Partition(self.type, tuple((key, self.labels.get(key)) for key in sorted(keys)), self.shared)


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Request of a holder for an account.

    `policy`, `limit`: used only for a new claim; None means the pool's default, and a limit of 0 means no
    limit. `slot`: one of several accounts of a tenant, or the consumer's id on a shared account. `holder`:
    the consumer; the same string in every run, used by one process at a time. `spill`: take one more account
    when the slot's accounts have reached their limit (`selection.py`). `required`: an update fails if the
    claim cannot be served, instead of skipping it (`skipping.py`). `former`: the account that the claim had
    before its record was lost; tried first. `state`: id of the claiming stack's state; None for other
    holders. `takes_over`: take a claim that another state holds under this name. `previously`: holders under
    former names of the tenant or slot. `namespace`, `place`: set by `placed`. `only`: the one member to take,
    for an adoption. `avoid`: members not to take, as known when choosing.
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
        """Return the claim under a former name. `holder`: its holder at that time."""
        tenant, slot = holder.rsplit("/", 2)[1:]
        return replace(self, tenant=tenant, slot=slot, holder=holder, previously=())

    @classmethod
    def at(cls, namespace: str, place: Partition, tenant: str, slot: str, holder: str) -> ClaimRequest:
        """Return a request for a partition of a pool."""
        asked = cls(tenant, place.type, slot, place.given, place.shared, holder, Policy.CLEAN)
        return replace(asked, namespace=namespace, place=place)

    def placed(
        self, namespace: str, keys: Iterable[str], policy: Policy = Policy.CLEAN, limit: int | None = None
    ) -> ClaimRequest:
        """Return the request for a pool with these keys; `policy` and `limit` are its defaults.

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
        """Name of its record; requires `place`."""
        return record_name(self.place, self.tenant, self.slot)

    @property
    def owner(self) -> str:
        """Label value of its tenant."""
        return tenant_label(self.tenant)
