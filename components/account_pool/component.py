"""The account pool as a stack declares it, and the accounts a tenant claims from one.

Owns the pool's namespace, its members from the configuration with their data, what the pool says about
itself, and the rights of claimers and cleaners. Members of a CSV are not declared: somebody else made them.
Owner, state and token keys on a member belong to the claim protocol: nothing here declares or ignores them,
so an update, a refresh or a rotation leaves a claim as it is (decisions 8 and 11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pulumi
from pulumi_kubernetes.core.v1 import ConfigMap, Namespace, Secret
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.rbac.v1 import PolicyRuleArgs, Role, RoleBinding, RoleRefArgs, SubjectArgs

from components.account_pool.model import Policy
from components.account_pool.pool_settings import CONFIG_MAP, PoolSettings
from components.account_pool.provider import AccountClaim, AccountClaimArgs
from components.labels import ACCOUNT_ID, BRING_YOUR_OWN, HYPERSCALER_TYPE, TENANT_NAME
from components.naming import tenant_label

_RBAC_GROUP = "rbac.authorization.k8s.io"
_VIRTUAL_GROUP = "credfleet.io"
"""Holds no objects: the admission policy asks who may `claim`, `clean` or `operate` its `accounts`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberArgs:
    """One account of the pool: the Secret that holds its credential.

    data: keys of the Secret → base64, secret. tenant: owner of a bring-your-own account.
    partition: values of the pool's partition keys.
    """

    type: str
    account_id: str
    data: pulumi.Input[Mapping[str, str]]
    tenant: str | None = None
    partition: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Grantee:
    """Who gets a Role of the pool; a ServiceAccount has a namespace."""

    kind: Literal["User", "Group", "ServiceAccount"]
    name: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPoolArgs:
    """A pool: its namespace, what it says about itself, its members by Secret name, and its people."""

    namespace: str
    settings: PoolSettings
    members: Mapping[str, MemberArgs]
    claimers: Sequence[Grantee] = ()
    cleaners: Sequence[Grantee] = ()


class AccountPool(pulumi.ComponentResource):
    """A namespace with accounts to claim. Outputs: namespace, members (names of the declared Secrets)."""

    TYPE: ClassVar = "credfleet:index:AccountPool"
    namespace: pulumi.Output[str]
    members: pulumi.Output[Sequence[str]]

    def __init__(self, name: str, args: AccountPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(
            self.TYPE, name, {"namespace": args.namespace, "members": sorted(args.members)}, opts
        )
        self._name = name
        self._child = pulumi.ResourceOptions(parent=self)
        namespace = Namespace(
            f"{name}-namespace", metadata=ObjectMetaArgs(name=args.namespace), opts=self._child
        )
        self.namespace = namespace.metadata.name
        self._declare_settings(args.settings)
        secrets = [self._declare_member(member, args.members[member]) for member in args.members]
        if args.claimers:
            self._grant("claimer", args.claimers, _claimer_rights())
        if args.cleaners:
            self._grant("cleaner", args.cleaners, _cleaner_rights())
        self.members = pulumi.Output.all(*(secret.metadata.name for secret in secrets))
        self.register_outputs({"namespace": self.namespace, "members": self.members})

    def _declare_settings(self, settings: PoolSettings) -> None:
        ConfigMap(
            f"{self._name}-settings",
            metadata=ObjectMetaArgs(name=CONFIG_MAP, namespace=self.namespace),
            data=settings.render(),
            opts=self._child,
        )

    def _declare_member(self, member: str, args: MemberArgs) -> Secret:
        labels = {HYPERSCALER_TYPE: args.type, **args.partition}
        annotations = {ACCOUNT_ID: args.account_id}
        if args.tenant is not None:
            labels[TENANT_NAME] = tenant_label(args.tenant)
            annotations[BRING_YOUR_OWN] = "true"
        return Secret(
            f"{self._name}-{member}",
            metadata=ObjectMetaArgs(
                name=member, namespace=self.namespace, labels=labels, annotations=annotations
            ),
            type="Opaque",
            data=args.data,
            opts=self._child,
        )

    def _grant(self, role: str, people: Sequence[Grantee], rights: Sequence[PolicyRuleArgs]) -> None:
        """Draw a Role with what its work needs in the pool (decision 16), and give it to people."""
        metadata = ObjectMetaArgs(name=f"credfleet-{role}", namespace=self.namespace)
        drawn = Role(f"{self._name}-{role}", metadata=metadata, rules=rights, opts=self._child)
        RoleBinding(
            f"{self._name}-{role}-binding",
            metadata=metadata,
            role_ref=RoleRefArgs(api_group=_RBAC_GROUP, kind="Role", name=drawn.metadata.name),
            subjects=[
                SubjectArgs(
                    kind=person.kind,
                    name=person.name,
                    namespace=person.namespace,
                    api_group=None if person.kind == "ServiceAccount" else _RBAC_GROUP,
                )
                for person in people
            ],
            opts=self._child,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountArgs:
    """One account a tenant asks for. policy and limit: None means the pool's."""

    type: str
    partition: Mapping[str, str] = field(default_factory=dict[str, str])
    policy: Policy | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantAccountsArgs:
    """The accounts of one tenant by slot, the pool they come from, and each slot's holder id."""

    pool_namespace: pulumi.Input[str]
    tenant: str
    accounts: Mapping[str, AccountArgs]
    holders: Mapping[str, str]


class TenantAccounts(pulumi.ComponentResource):
    """The claims of one tenant. Outputs: accounts, slot → {namespace, secretName, accountId}."""

    TYPE: ClassVar = "credfleet:index:TenantAccounts"
    accounts: Mapping[str, Mapping[str, pulumi.Output[str | None]]]

    def __init__(
        self, name: str, args: TenantAccountsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        props = {"tenant": args.tenant, "slots": sorted(args.accounts)}
        super().__init__(self.TYPE, name, props, opts)
        accounts: dict[str, Mapping[str, pulumi.Output[str | None]]] = {}
        for slot, account in args.accounts.items():
            claim = AccountClaim(
                f"{name}/{slot}",
                AccountClaimArgs(
                    namespace=args.pool_namespace,
                    tenant=args.tenant,
                    type=account.type,
                    slot=slot,
                    partition=account.partition,
                    holder=args.holders[slot],
                    release_policy=None if account.policy is None else str(account.policy),
                    limit=account.limit,
                ),
                pulumi.ResourceOptions(parent=self),
            )
            accounts[slot] = {
                "namespace": claim.namespace,
                "secretName": claim.secret_name,
                "accountId": claim.account_id,
            }
        self.accounts = accounts
        self.register_outputs({"accounts": self.accounts})


def _claimer_rights() -> Sequence[PolicyRuleArgs]:
    return (
        PolicyRuleArgs(api_groups=[""], resources=["secrets"], verbs=["get", "list", "patch"]),
        PolicyRuleArgs(
            api_groups=[""], resources=["configmaps"], verbs=["get", "list", "create", "update", "delete"]
        ),
        PolicyRuleArgs(api_groups=[""], resources=["events"], verbs=["create"]),
        PolicyRuleArgs(api_groups=[_VIRTUAL_GROUP], resources=["accounts"], verbs=["claim"]),
    )


def _cleaner_rights() -> Sequence[PolicyRuleArgs]:
    return (
        PolicyRuleArgs(api_groups=[""], resources=["secrets"], verbs=["get", "list", "patch"]),
        PolicyRuleArgs(api_groups=[""], resources=["configmaps"], verbs=["get", "list"]),
        PolicyRuleArgs(api_groups=[""], resources=["events"], verbs=["create"]),
        PolicyRuleArgs(api_groups=[_VIRTUAL_GROUP], resources=["accounts"], verbs=["clean"]),
    )
