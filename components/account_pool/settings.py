"""Models of `credfleet:accountPool` and of a tenant's `accounts`: members, subjects, claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from components.account_pool.core import consumers
from components.account_pool.core.clock import NOTICE, Clock
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.declared import DeclaredMember
from components.account_pool.core.holds import Holds, scope_of
from components.account_pool.core.keys import INTERNAL, POOL_STATE
from components.account_pool.core.label_scheme import NAMED, LabelScheme
from components.account_pool.core.model import ClaimRequest, Policy
from components.account_pool.member_data import OWNER
from components.account_pool.rules import ANY, PLANS, Fault, Pool, Request, Ruleset, read_rules
from components.config.field_types import (
    ClusterUid,
    ConfigModel,
    Count,
    Duration,
    FilePath,
    Flag,
    FormerNames,
    LabelKey,
    Moment,
    Name,
    NamespaceName,
    ObjectName,
    PartitionKey,
    PartitionValue,
    PoolType,
    Positive,
    Region,
    Text,
    as_named,
    config_error,
    exactly_one,
    must,
    optional,
    refused_if,
)
from components.config.section import Written
from components.labels import EU_ACCESS, HYPERSCALER_TYPE, HYPERSCALERS, SHARED, TENANT_NAME
from components.naming import config_path, is_namespace, is_object_name
from components.projection.model import HANDED_OVER
from components.projection.settings import CredentialGiven, CredentialSource, Delivery

Partition = Mapping[PartitionKey, PartitionValue]
Cloud = Annotated[
    str,
    must(
        lambda text: text in (*HYPERSCALERS, ANY),
        f"it is not a cloud that is known: {', '.join(HYPERSCALERS)}",
        f"name one of them, or {ANY} where who asks chooses",
    ),
]


class Slot(ConfigModel):
    """One account of a tenant: a claim on a pool, chosen by type or by the rules for a plan."""

    _is_chosen_one_way = exactly_one(
        "an account is asked for by its type or by a plan, not by both", "give type or plan", "type", "plan"
    )
    _has_no_region_of_a_plan = refused_if(
        lambda one: one.type and (one.region or one.hyperscaler_region or one.hyperscaler),
        "region, hyperscalerRegion and hyperscaler choose a pool for a plan, and do nothing here",
        "leave them out, or give plan instead of type",
    )
    previously: FormerNames = ()
    type: PoolType | None = optional("Type of the account, such as aws or gcp_cf-sa30.")
    plan: Text | None = optional("Plan; accountPool.rules choose the type.")
    region: Region | None = optional("Platform region of the plan (PR in rules).")
    hyperscaler_region: Region | None = optional("Hyperscaler region of the plan (HR in rules).")
    hyperscaler: Text | None = optional("Cloud, for a plan that runs on any.")
    partition: Partition = optional("Values of the pool's partition keys; an absent key means without.", {})
    release_policy: Policy | None = optional("State of the account after its release.")
    limit: Count | None = optional("Maximum consumers of the claim.")
    spill: Flag = optional(
        "Whether it gets one more account when the limit of those it has is reached.", False
    )
    required: Flag = optional(
        "Whether an update fails when it cannot be served, instead of going on without it.", False
    )
    deliver_to: Annotated[
        Delivery | None, BeforeValidator(as_named, json_schema_input_type=Delivery | str | None)
    ] = optional("Copy of its Secret in the tenant's namespace, or just its name.")

    def pool(self, rules: Ruleset) -> Pool | Fault:
        """Return the pool that serves it, or why there is none."""
        if self.type is not None:
            return Pool(self.type, eu_access=False, shared=False)
        return rules.choose(Request(self.plan or "", self.region, self.hyperscaler_region, self.hyperscaler))

    def partition_in(self, pool: Pool) -> dict[str, str]:
        """Return its partition, including what the rules add."""
        return {**self.partition, **({EU_ACCESS: "true"} if pool.eu_access else {})}

    def claim_on(self, pool: Pool, tenant: str, slot: str, holder: str) -> ClaimRequest:
        """Return the claim of a tenant's slot on the pool that serves it."""
        return ClaimRequest(
            tenant=tenant,
            type=pool.type,
            slot=slot,
            partition=self.partition_in(pool),
            shared=pool.shared,
            holder=holder,
            policy=self.release_policy,
            limit=self.limit,
            spill=self.spill,
            required=self.required,
        )


class Member(ConfigModel):
    """An account of the pool: a Secret that the stack declares, with data."""

    _is_shared_or_somebodys = refused_if(
        lambda one: one.shared_capacity is not None and (one.tenant is not None or one.internal),
        "a shared account has no owner and is not kept back",
        "leave tenant and internal out",
    )
    _hands_over_an_entry = refused_if(
        lambda one: one.hand_over and one.credentials_from.entry is None,
        "only the Secret of an entry of credentials is handed over",
        "leave handOver out",
    )
    type: PoolType = Field(description="Type of the account: label hyperscaler-type.")
    account_id: Text = Field(description="Id of the account at its cloud; no two members have the same.")
    credentials_from: CredentialGiven = Field(
        description="A JSON object of texts: name of an entry of credentials, or where it is."
    )
    hand_over: Flag = optional(
        "Whether its Secret stays when the entry goes, for a reference to take.", False
    )
    tenant: Name | None = optional("Its tenant, for a bring-your-own account.")
    partition: Partition = optional("Values of the pool's partition keys.", {})
    shared_capacity: Positive | None = optional("Maximum claims of a shared account.")
    internal: Flag = optional("Kept out of the pool; only its own tenant may claim it.", False)
    expires_at: Moment | None = optional('When its credential ends: "2027-01-31", or a time with its zone.')

    @property
    def declared(self) -> DeclaredMember:
        """Member without its data."""
        member = DeclaredMember.of(
            self.type,
            self.account_id,
            tenant=self.tenant,
            partition=self.partition,
            shared_capacity=self.shared_capacity,
            internal=self.internal,
            expires_at=self.expires_at,
        )
        left = {HANDED_OVER: OWNER} if self.hand_over else {}
        return replace(member, annotations={**member.annotations, **left})


class Labels(ConfigModel):
    """What the accounts of a pool call their labels; Kyma's pools call them otherwise than credfleet."""

    type: LabelKey = Field(default=HYPERSCALER_TYPE, description="Type of the account.")
    tenant: LabelKey = Field(default=TENANT_NAME, description="Its owner.")
    dirty: LabelKey | None = optional("`true` if the account must be cleaned; absent: only credfleet's own.")
    shared: LabelKey = Field(default=SHARED, description="`true` if many tenants share the account.")
    eu_access: LabelKey = Field(
        default=EU_ACCESS, description="`true` with EU access: partition key eu-access."
    )
    internal: LabelKey = Field(default=INTERNAL, description="`true` if the account is kept out of the pool.")

    @model_validator(mode="after")
    def _are_told_apart(self) -> Self:
        given = [key for _, key in self if key is not None]
        own = {*NAMED.values(), POOL_STATE}
        if len(set(given)) < len(given) or not own.isdisjoint(self.names.values()):
            raise config_error(
                "one label would have two meanings",
                "give each its own key, which credfleet does not use for another purpose",
            )
        return self

    @property
    def names(self) -> Mapping[str, str]:
        """Labels whose key differs from credfleet's, by setting name."""
        given = self.model_dump(by_alias=True)
        return {name: key for name, key in given.items() if key is not None and key != NAMED.get(name)}


class Subject(ConfigModel):
    """A person, group or ServiceAccount that gets a Role."""

    _has_a_namespace_if_it_lives_in_one = refused_if(
        lambda one: (one.kind == "ServiceAccount") != (one.namespace is not None),
        "a ServiceAccount lives in a namespace, and only it does",
        "give namespace to it alone",
    )
    _has_a_name_of_its_kind = refused_if(
        lambda one: one.kind == "ServiceAccount" and not is_object_name(one.name),
        "Kubernetes has no ServiceAccount of such a name",
        "write the name alone, such as ci",
    )
    kind: Literal["User", "Group", "ServiceAccount"]
    name: Text
    namespace: NamespaceName | None = optional("Namespace of a ServiceAccount.")


class Consumer(ConfigModel):
    """Who may claim from a pool that names its consumers, and what."""

    holders: Annotated[tuple[Text, ...], Field(min_length=1)] = Field(
        description="Prefixes of its holders, such as pulumi/ORGANIZATION/PROJECT, or cli."
    )
    types: tuple[PoolType, ...] = optional("Types it may claim; none: all.", ())
    partitions: tuple[Partition, ...] = optional(
        "Parts of the pool it may claim from, as slots name them; none: all.", ()
    )
    quotas: Mapping[PoolType, Count] = optional(
        "Type → accounts of it that the consumer has at most; shared ones do not count.", {}
    )


class PoolCluster(ConfigModel):
    """The cluster of a pool that is another one than the stack's."""

    context: Text = Field(description="Context of the kubeconfig. No other one is used.")
    kubeconfig: FilePath | None = optional("Path of the kubeconfig; absent means KUBECONFIG.")
    uid: ClusterUid | None = optional("uid of namespace kube-system. Another cluster is rejected.")


class Elsewhere(ConfigModel):
    """The pool of another stack."""

    namespace: NamespaceName = Field(description="Namespace of the pool, as its own stack names it.")
    cluster: PoolCluster | None = optional("Where the pool is; absent means the cluster of the stack.")


class HeldPart(ConfigModel):
    """A part of the pool, or all of it, that gives no new accounts."""

    _has_a_type_with_a_partition = refused_if(
        lambda one: one.partition and one.type is None,
        "a partition is held of a type, and none is named",
        "add type",
    )
    type: PoolType | None = optional("Type that is held; absent: the whole pool.")
    partition: Partition = optional("Values of partition keys, with type.", {})
    reason: Text = Field(description="Reason, shown to rejected claims.")


OF_CONSUMERS: Final = ("from", "labels", "plans", "rules", "protect")
"""Keys that a stack can set if it claims from the pool of another stack."""


class AccountPool(ConfigModel):
    """The accounts tenants claim, in one namespace, and who may claim and clean them."""

    from_: Elsewhere | None = Field(
        default=None,
        alias="from",
        description="The pool of another stack, which alone declares it; this one only claims.",
    )
    namespace: NamespaceName = Field(
        default="account-pool", description="Namespace of the pool; a tenant never has rights in it."
    )
    partition_keys: tuple[PartitionKey, ...] = optional("Labels that divide the members of a type.", ())
    labels: Labels = Field(
        default=Labels(), description="Keys of the labels on the accounts, where they are not credfleet's."
    )
    shared_capacity: Positive | None = optional("Default capacity of shared accounts.")
    release_policy: Policy = Field(default=Policy.CLEAN, description="Default of claims.")
    limits: Mapping[Text, Count] = optional(
        "Type, or default → maximum consumers of a claim. 0: default.", {}
    )
    rest_for: Duration | None = optional(
        "How long an account that became free rests before the next claim, as 24h."
    )
    key_max_age: Duration | None = optional("Maximum age of an account's credential, as 2160h.")
    key_notice: Duration | None = optional(
        f"How long before its end a credential is given to no new holder; absent: {NOTICE}."
    )
    consumers: Mapping[Name, Consumer] = optional(
        "The only holders that can claim. Without any, every claimer can.", {}
    )
    claimers: tuple[Subject, ...] = optional("Who may claim; trusted with every credential of the pool.", ())
    cleaners: tuple[Subject, ...] = optional("Who may clean released accounts.", ())
    bringers: Mapping[Name, tuple[Subject, ...]] = optional(
        "Tenant → who may bring accounts of its own; needs admissionPolicy.", {}
    )
    plans: Mapping[Text, Cloud] = optional(
        "Plan → its cloud, or any; beside the plans of Kyma, which are known.", {}
    )
    rules: tuple[Text, ...] = optional("Plan → pool: gcp(PR=cf-sa30) -> PR; the most specific wins.", ())
    hold: tuple[HeldPart, ...] = optional("Parts of the pool that are held, in addition to `pool hold`.", ())
    members: Mapping[ObjectName, Member] = optional("Secret → account.", {})
    members_from: FilePath | None = optional(
        "CSV of members, or a folder of such; rows without credentialsFrom exist."
    )
    allow_destroy: Flag = optional(
        "Whether dirty members may be deleted uncleaned, and credentials that only the pool has.", False
    )
    protect: Flag = optional(
        "Whether Pulumi refuses to delete members, the pool's namespace and the tenants'.", False
    )
    admission_policy: Flag = optional("Whether admission policies enforce the rules of claims.", False)
    cleaning: Mapping[PoolType, Annotated[tuple[Text, ...], Field(min_length=1)]] = optional(
        "Type or cloud → command that cleans an account, as a list: program, then arguments.", {}
    )
    keys: Mapping[PoolType, Annotated[tuple[Text, ...], Field(min_length=1)]] = optional(
        "Type or cloud → your program for keys, as a list: rotates and identifies them.", {}
    )
    new_keys: tuple[PoolType, ...] = optional(
        "Types or clouds whose accounts get a new key before their next tenant.", ()
    )
    protected: tuple[Text, ...] = optional(
        "Ids of accounts that are never a member, and for which no command is ever run.", ()
    )

    @model_validator(mode="before")
    @classmethod
    def _leaves_the_pool_to_its_stack(cls, given: Any) -> Any:
        """Take the namespace from the other stack's pool; its own keys are not allowed here."""
        if not isinstance(given, dict) or "from" not in given:
            return given
        if others := sorted(key for key in given if key not in OF_CONSUMERS):
            raise config_error(
                f"from leaves the pool to another stack, and {', '.join(others)} would declare it here",
                f"keep them in the stack that declares the pool; here are {', '.join(OF_CONSUMERS)}",
            )
        elsewhere = given["from"]
        named = elsewhere.get("namespace") if isinstance(elsewhere, dict) else None
        return {**given, "namespace": named} if isinstance(named, str) and is_namespace(named) else given

    @property
    def config_map(self) -> PoolConfigMap:
        """Settings of the pool for its ConfigMap."""
        return PoolConfigMap(
            self.partition_keys,
            self.release_policy,
            self.limits,
            LabelScheme(self.labels.names, self.shared_capacity),
            Holds(declared={scope_of(one.type, one.partition): one.reason for one in self.hold}),
            tuple(
                consumers.Consumer(name, one.holders, one.types, one.partitions, one.quotas)
                for name, one in sorted(self.consumers.items())
            ),
            self.protected,
            Clock(self.rest_for or "", self.key_max_age or "", self.key_notice or ""),
            self.new_keys,
        )

    @property
    def is_in_other_cluster(self) -> bool:
        """Whether it is in a cluster other than the stack's."""
        return self.from_ is not None and self.from_.cluster is not None

    @property
    def ruleset(self) -> Ruleset:
        """Parsed rules; empty if one is invalid."""
        return self.read_rules()[0]

    def read_rules(self) -> tuple[Ruleset, tuple[Fault, ...]]:
        """Parse the rules, for Kyma's plans and the pool's own, and return their faults."""
        return read_rules(self.rules, {**PLANS, **self.plans})

    @property
    def owners(self) -> Mapping[str, str]:
        """Namespaces of the pool and of ServiceAccounts with rights in it → owner."""
        may_bring = {f"tenant {name}": subjects for name, subjects in self.bringers.items()}
        may = may_bring | {"who may clean accounts": self.cleaners, "who may claim accounts": self.claimers}
        found = {each.namespace: whose for whose, those in may.items() for each in those if each.namespace}
        return found | {self.namespace: "the account pool"}

    def written(self) -> Iterator[Written]:
        """Yield the Secrets of the members."""
        for name in self.members:
            yield self.namespace, name, config_path("accountPool", "members", name)

    def sources(self) -> Iterator[tuple[str, CredentialSource]]:
        """Yield the credential sources of the members."""
        for name, member in self.members.items():
            yield config_path("accountPool", "members", name, "credentialsFrom"), member.credentials_from
