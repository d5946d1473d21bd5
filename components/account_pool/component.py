"""The account pool of a stack, and the accounts that a tenant claims from a pool.

Owns the pool's namespace, its declared members with their data, its settings, the Roles of claimers and
cleaners, and the roster and seal that protect members in use. Members of a CSV without credentials are not
declared: other processes created them. A claimer can read every credential of the pool, so a tenant must
never be one. A tenant can read only the Secret of its claim, as long as it holds the claim. Owner, state and
token keys of a member belong to the claim protocol: nothing here declares or ignores them, so updates,
refreshes and rotations leave claims unchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Final, Literal, TypedDict

import pulumi
from pulumi.resource import DependencyResource
from pulumi_kubernetes.admissionregistration.v1 import (
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from pulumi_kubernetes.core.v1 import ConfigMap, Namespace, Secret
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.rbac.v1 import PolicyRuleArgs, Role, RoleBinding, RoleRefArgs, SubjectArgs

from components.account_pool.admission.policies import admission_manifests, namespace_manifests
from components.account_pool.admission.roles import RIGHTS, Right, rights_to_bring, rights_to_clean
from components.account_pool.admission.state_machine import Verb
from components.account_pool.births import Births
from components.account_pool.claim_forecast import ClaimForecasts
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.declared import Declaration, DeclaredMember
from components.account_pool.core.model import ClaimRequest, tenant_label
from components.account_pool.core.quotas import quota_data, quota_labels, quota_name
from components.account_pool.forecast.forecast import Claim, ForecastInput
from components.account_pool.forecast.skipping import in_words
from components.account_pool.member_data import OWNER
from components.account_pool.member_secret import MemberSecret
from components.account_pool.one_writer import DataWriters, Digest
from components.account_pool.provider import AccountClaim, AccountClaimArgs
from components.account_pool.roster import PoolRoster, PoolRosterArgs
from components.account_pool.seal import PoolSeal, PoolSealArgs
from components.connection import ClusterTarget
from components.dynamic import SECRET
from components.holding import current_holder, known_as, names_of, takes_over
from components.labels import TENANT_NAME
from components.projection.model import HANDED_OVER
from components.projection.provider import MarkedArgs, source_inputs
from components.projection.sources import Source
from components.waiting import apply_to_unknowns, declare_unless

_REPLACES: Final = (
    "its accounts are left to the default provider of Kubernetes, which replaces a Secret whose data change,"
    " and a claim would lose its account\n→ give it one that does not: opts=pulumi.ResourceOptions(providers="
    "[kubernetes_provider()])"
)
_RBAC_GROUP: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grantee:
    """Subject that gets a Role of the pool. A ServiceAccount needs a namespace."""

    kind: Literal["User", "Group", "ServiceAccount"]
    name: pulumi.Input[str]
    namespace: pulumi.Input[str] | None = None


def _grant(
    name: str,
    metadata: ObjectMetaArgs,
    people: Sequence[Grantee],
    rules: Sequence[PolicyRuleArgs],
    opts: pulumi.ResourceOptions,
) -> tuple[Role, RoleBinding]:
    """Declare a Role with logical name `name`, and bind it; `metadata`: of both objects in the cluster."""
    role = Role(name, metadata=metadata, rules=rules, opts=opts)
    binding = RoleBinding(
        f"{name}-binding",
        metadata=metadata,
        role_ref=RoleRefArgs(api_group=_RBAC_GROUP, kind="Role", name=role.metadata.name),
        subjects=[
            SubjectArgs(
                kind=person.kind,
                name=person.name,
                namespace=person.namespace,
                api_group=None if person.kind == "ServiceAccount" else _RBAC_GROUP,
            )
            for person in people
        ],
        opts=opts,
    )
    return role, binding


def _rules(rights: Sequence[Right]) -> Sequence[PolicyRuleArgs]:
    return [
        PolicyRuleArgs(
            api_groups=[one.group],
            resources=[one.resource],
            verbs=one.verbs,
            resource_names=one.names or None,
        )
        for one in rights
    ]


async def _without_failed(
    others: Sequence[pulumi.Resource], members: Sequence[pulumi.CustomResource]
) -> Sequence[pulumi.Resource]:
    """Leave out members that were not created; an existing one that failed to update has an id."""
    made = await asyncio.gather(*(member.id.is_known() for member in members))
    is_preview = pulumi.runtime.is_dry_run()
    return [*others, *(one for one, is_made in zip(members, made, strict=True) if is_made or is_preview)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPoolArgs:
    """Arguments of `AccountPool`: namespace, settings, accounts by Secret name, and subjects of its Roles.

    `data`: of each member's Secret, key → base64, secret; `configured`: distinguishes it from rotated data.
    `elsewhere`: external references of members without data here. `claims`: of this stack, for the forecast.
    `allow_destroy`: dirty members can be deleted. `admission_policy`: the API server enforces the rules of
    claims; required for `bringers`: tenant → who can bring its accounts. `protect`: Pulumi must not delete
    the namespace or a member until this is unset. `renamed`: former tenant name → new name.
    """

    namespace: str
    settings: PoolConfigMap
    members: Mapping[str, DeclaredMember]
    data: Mapping[str, pulumi.Input[Mapping[str, str]]] = field(
        default_factory=dict[str, pulumi.Input[Mapping[str, str]]], metadata=SECRET
    )
    configured: Mapping[str, Digest] = field(default_factory=dict[str, Digest])
    elsewhere: Mapping[str, Source] = field(default_factory=dict[str, Source])
    claims: Sequence[ClaimRequest] = ()
    allow_destroy: bool = False
    admission_policy: bool = False
    protect: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    claimers: Sequence[Grantee] = ()
    cleaners: Sequence[Grantee] = ()
    bringers: Mapping[str, Sequence[Grantee]] = field(default_factory=dict[str, Sequence[Grantee]])


class AccountPool(pulumi.ComponentResource):
    """Pool of accounts in a namespace. Outputs: namespace, members (names of the declared Secrets).

    `foreseen`: forecasts of this stack's claims. `keys`: rotated keys of its accounts. `writers`: who wrote
    the accounts' data. `claimable`: dependencies of a claim.
    """

    TYPE: ClassVar = "credfleet:index:AccountPool"
    namespace: pulumi.Output[str]
    members: pulumi.Output[Sequence[str]]
    claimable: pulumi.Output[Sequence[pulumi.Resource]]

    def __init__(self, name: str, args: AccountPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(
            self.TYPE, name, {"namespace": args.namespace, "members": sorted(args.members)}, opts
        )
        self._name = name
        if self.get_provider("kubernetes:core/v1:Secret") is None:
            pulumi.log.warn(_REPLACES, self)
        self._child = pulumi.ResourceOptions(parent=self)
        roster, forecasts = self._keep_roster(args)
        self.foreseen = forecasts.claims_after(roster)
        self.keys = forecasts.keys_of(args.claims)
        self.state = roster.state
        self.writers = DataWriters(
            ClusterTarget.parse(pulumi.Config("credfleet").get("cluster")),
            args.namespace,
            {} if forecasts.seen is None else {member.name: member for member in forecasts.seen.members},
            args.configured,
        )
        born = Births(args.namespace, args.members, args.settings.scheme, roster, forecasts)
        namespace = Namespace(
            f"{name}-namespace",
            metadata=ObjectMetaArgs(name=args.namespace),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[roster], protect=args.protect),
        )
        self.namespace = namespace.metadata.name
        settings = self._declare_settings(args.settings)
        kept = pulumi.ResourceOptions(parent=self, protect=args.protect)
        members = [self._declare_member(member, args, born, kept) for member in args.members]
        born.report()
        secrets = [secret for _, secret in members]
        grants = [
            *self._grant("claimer", args.claimers, RIGHTS[Verb.CLAIM]),
            *self._grant("cleaner", args.cleaners, rights_to_clean(args.settings.new_keys)),
            *chain.from_iterable(
                self._grant(f"bringer:{tenant_label(tenant)}", people, rights_to_bring(tenant))
                for tenant, people in args.bringers.items()
            ),
        ]
        guards = self._guard(args) if args.admission_policy else ()
        after = pulumi.Output.from_input(_without_failed([settings, *grants, *guards], secrets))
        seal = PoolSeal(
            f"{name}-seal",
            PoolSealArgs(namespace=self.namespace, allow_destroy=args.allow_destroy),
            pulumi.ResourceOptions(parent=self, depends_on=after),
        )
        self.claimable = pulumi.Output.from_input(self._until_settled(settings, [*secrets, seal]))
        self.members = pulumi.Output.all(*(member for member, _ in members))
        self.register_outputs({"namespace": self.namespace, "members": self.members})

    async def _until_settled(
        self, settings: ConfigMap, others: Sequence[pulumi.Resource]
    ) -> Sequence[pulumi.Resource]:
        """Wait until all resources of the pool are created or failed; a failed one does not block claims.

        For the engine, depending on a component does not mean depending on its children, only deleting it
        first.
        """
        await asyncio.gather(*(one.urn.future(with_unknowns=True) for one in others))
        urn = await self.urn.future()
        return [settings, *([DependencyResource(urn)] if urn else [])]

    def _keep_roster(self, args: AccountPoolArgs) -> tuple[PoolRoster, ClaimForecasts]:
        """Declare the roster, which the pool depends on: no tenant may lose an account by an update."""
        declaration = Declaration(
            args.namespace, args.members, args.settings, args.allow_destroy, args.renamed
        )
        owner = current_holder("accountPool", args.namespace)
        roster = PoolRoster(f"{self._name}-roster", PoolRosterArgs.of(declaration, owner), self._child)
        cluster = ClusterTarget.parse(pulumi.Config("credfleet").get("cluster"))
        forecasts = ClaimForecasts.of(cluster, declaration, args.claims)
        forecasts.tell_after(roster, owner)
        return roster, forecasts

    def _declare_settings(self, settings: PoolConfigMap) -> ConfigMap:
        """Declare the pool's ConfigMap, after the quotas of its consumers."""
        quotas = [
            ConfigMap(
                f"{self._name}-quota-{consumer.name}-{account_type}",
                metadata=ObjectMetaArgs(
                    name=quota_name(consumer.name, account_type),
                    namespace=self.namespace,
                    labels=quota_labels(account_type),
                ),
                data=quota_data(consumer.name, account_type, most),
                opts=self._child,
            )
            for consumer in settings.consumers
            for account_type, most in sorted(consumer.quotas.items())
        ]
        return ConfigMap(
            f"{self._name}-settings",
            metadata=ObjectMetaArgs(name=CONFIG_MAP, namespace=self.namespace),
            data=settings.render(),
            opts=pulumi.ResourceOptions(parent=self, depends_on=quotas or None),
        )

    def _declare_member(
        self, member: str, args: AccountPoolArgs, born: Births, opts: pulumi.ResourceOptions
    ) -> tuple[pulumi.Output[str], pulumi.CustomResource]:
        """Declare the Secret of an account; one that is handed over stays when its declaration is removed."""
        shown = args.members[member].as_member(member)
        labels, annotations = born.metadata(shown)
        if (source := args.elsewhere.get(member)) is not None:
            given = MarkedArgs(
                namespace=self.namespace,
                target_name=member,
                owner=OWNER,
                sources=source_inputs([source]),
                recipe={},
                labels=labels,
                annotations=annotations,
            )
            opts = pulumi.ResourceOptions.merge(opts, born.options("labels", "annotations"))
            made = MemberSecret(f"{self._name}-{member}-elsewhere", given, opts)
            return made.target_name, made
        opts = pulumi.ResourceOptions.merge(
            opts, born.options("metadata.labels", "metadata.annotations", "data")
        )
        opts = pulumi.ResourceOptions.merge(opts, self.writers.options(member))
        if args.members[member].tenant in args.renamed.values():  # the owner label moves with the claim
            (owner,) = args.settings.scheme.labels({TENANT_NAME: ""})
            left = pulumi.ResourceOptions(ignore_changes=[f'metadata.labels["{owner}"]'])
            opts = pulumi.ResourceOptions.merge(opts, left)
        secret = Secret(
            f"{self._name}-{member}",
            metadata=ObjectMetaArgs(
                name=member, namespace=self.namespace, labels=labels, annotations=annotations
            ),
            type="Opaque",
            data=args.data[member],
            opts=pulumi.ResourceOptions.merge(
                opts, pulumi.ResourceOptions(retain_on_delete=HANDED_OVER in shown.annotations or None)
            ),
        )
        return secret.metadata.name, secret

    def _guard(self, args: AccountPoolArgs) -> Sequence[pulumi.Resource]:
        """Declare admission policies that reject changes breaking a claim, from any identity."""
        manifests = admission_manifests(args.namespace, args.settings, allow_destroy=args.allow_destroy)
        if not args.allow_destroy:
            manifests = (*manifests, *namespace_manifests(args.namespace))
        guards: list[pulumi.Resource] = []
        for policy, binding in zip(manifests[::2], manifests[1::2], strict=True):
            what = policy["metadata"]["name"].removeprefix("credfleet-").partition(".")[0]
            drawn = ValidatingAdmissionPolicy(
                f"{self._name}-{what}-policy",
                metadata=ObjectMetaArgs(name=policy["metadata"]["name"]),
                spec=policy["spec"],
                opts=self._child,
            )
            bound = ValidatingAdmissionPolicyBinding(
                f"{self._name}-{what}-policy-binding",
                metadata=ObjectMetaArgs(name=binding["metadata"]["name"]),
                spec=binding["spec"],
                opts=pulumi.ResourceOptions(parent=self, depends_on=[drawn]),
            )
            guards += drawn, bound
        return guards

    def _grant(
        self, role: str, people: Sequence[Grantee], rights: Sequence[Right]
    ) -> Sequence[pulumi.Resource]:
        if not people:
            return ()
        metadata = ObjectMetaArgs(name=f"credfleet-{role}", namespace=self.namespace)
        return _grant(f"{self._name}-{role}", metadata, people, _rules(rights), self._child)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantAccountsArgs:
    """Arguments of `TenantAccounts`: a claim for each slot, and the namespace of the pool.

    `reader`: who can read the Secrets of the claimed accounts while the claims last; None: grant no rights.
    `settings`: of the pool, if the same program declares it. `foreseen`: forecasts of the claims. `state`:
    state id of the stack, from its roster.
    """

    pool_namespace: pulumi.Input[str]
    tenant: str
    claims: Sequence[ClaimRequest]
    reader: Grantee | None
    settings: PoolConfigMap | None = None
    foreseen: Mapping[Claim, pulumi.Input[ForecastInput | None]] = field(
        default_factory=dict[Claim, pulumi.Input[ForecastInput | None]]
    )
    state: pulumi.Input[str | None] = None


class ClaimedAccount(TypedDict):
    """Namespace and name of a claimed account's Secret, and the account's id at its cloud."""

    namespace: pulumi.Output[str]
    secretName: pulumi.Output[str]
    accountId: pulumi.Output[str | None]


class TenantAccounts(pulumi.ComponentResource):
    """Claims of one tenant. Outputs: accounts, slot → {namespace, secretName, accountId}.

    `skipped`: slot → why its claim is skipped, empty if it is not. `ready`: slot → the claim and the rights
    on its account, as dependencies. `claims`: slot → the claim.
    """

    TYPE: ClassVar = "credfleet:index:TenantAccounts"
    accounts: Mapping[str, ClaimedAccount]
    skipped: Mapping[str, pulumi.Output[str]]
    ready: Mapping[str, pulumi.Output[Sequence[pulumi.Resource]]]
    claims: Mapping[str, AccountClaim]

    def __init__(
        self, name: str, args: TenantAccountsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        props = {"tenant": args.tenant, "slots": [claim.slot for claim in args.claims]}
        super().__init__(self.TYPE, name, props, opts)
        accounts: dict[str, ClaimedAccount] = {}
        self.skipped, self.ready, self.claims = skipped, ready, made = {}, {}, {}
        for wanted in args.claims:
            claim = AccountClaim(
                f"{name}/{wanted.slot}",
                replace(
                    AccountClaimArgs.of(wanted, args.pool_namespace),
                    pool_policy=None if args.settings is None else str(args.settings.policy),
                    pool_limit=None if args.settings is None else args.settings.limit_for(wanted.type),
                    forecast=args.foreseen.get((args.tenant, wanted.slot)),
                    state=args.state,
                    takes_over=takes_over() or None,
                ),
                pulumi.ResourceOptions.merge(pulumi.ResourceOptions(parent=self), _named(wanted)),
            )
            why = apply_to_unknowns(_why, claim.skipped, args.foreseen.get((args.tenant, wanted.slot)))
            rights = declare_unless(
                why, partial(self._let_read, f"{name}/{wanted.slot}-reader", args, wanted, claim)
            )
            skipped[wanted.slot], made[wanted.slot] = why, claim
            ready[wanted.slot] = rights.apply(partial(_with, claim))
            accounts[wanted.slot] = {
                "namespace": claim.namespace,
                "secretName": claim.secret_name,
                "accountId": claim.account_id,
            }
        self.accounts = accounts
        self.register_outputs({"accounts": self.accounts})

    def _let_read(
        self, name: str, args: TenantAccountsArgs, wanted: ClaimRequest, claim: AccountClaim
    ) -> Sequence[pulumi.Resource]:
        if args.reader is None:
            return ()
        reading = PolicyRuleArgs(
            api_groups=[""], resources=["secrets"], resource_names=[claim.secret_name], verbs=["get"]
        )
        metadata = ObjectMetaArgs(
            name=f"credfleet-reader:{args.tenant}:{wanted.slot}", namespace=args.pool_namespace
        )
        kept = ["metadata.name"] if wanted.previously else None  # a new name would replace the object
        opts = pulumi.ResourceOptions.merge(
            pulumi.ResourceOptions(parent=self, ignore_changes=kept), _named(wanted)
        )
        return _grant(name, metadata, [args.reader], [reading], opts)


def _named(claim: ClaimRequest) -> pulumi.ResourceOptions:
    return known_as(f"{claim.tenant}/{claim.slot}", names_of(claim.previously))


def _why(reason: Any, foreseen: Any) -> str:
    """Return why a claim is skipped or its account is cut off; empty if neither, or unknown."""
    cut_off = str(foreseen.get("cut", "")) if isinstance(foreseen, dict) else ""
    return in_words(reason) if isinstance(reason, dict) else cut_off


def _with(claim: AccountClaim, rights: Sequence[pulumi.Resource] | None) -> Sequence[pulumi.Resource]:
    return [claim, *(rights or ())]
