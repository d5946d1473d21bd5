"""What a stack declares as a whole: composes the rooms, and alone resolves references between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar

import pulumi
from pulumi_kubernetes.core.v1 import Namespace
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.account_pool.component import (
    AccountPool,
    AccountPoolArgs,
    Grantee,
    MemberArgs,
    TenantAccounts,
    TenantAccountsArgs,
)
from components.account_pool.model import ClaimRequest
from components.account_pool.pool_settings import PoolSettings
from components.account_pool.rules import Fault
from components.credentials import Credentials
from components.labels import TENANT
from components.naming import stack_holder, tenant_label
from components.providers import kubernetes_provider
from components.settings import Settings, nouns


class Fleet(pulumi.ComponentResource):
    """The account pool, and each tenant with its namespace and its accounts.

    Outputs: accountPool, {namespace, members} or empty without a pool; tenants, name → {namespace, accounts},
    where accounts is slot → {namespace, secretName, accountId}. Secrets are named, never shown.
    """

    TYPE: ClassVar = "credfleet:index:Fleet"
    account_pool: Mapping[str, pulumi.Output[Any]]
    tenants: Mapping[str, Mapping[str, Any]]

    def __init__(self, name: str, settings: Settings, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(self.TYPE, name, {"tenantNames": sorted(settings.tenants)}, opts)
        provider = kubernetes_provider(settings.cluster, pulumi.ResourceOptions(parent=self))
        child = pulumi.ResourceOptions(parent=self, providers=[provider])
        self.account_pool = {}
        accounts: Mapping[str, TenantAccounts] = {}
        if settings.account_pool is not None:
            accounts = self._declare_accounts(settings.account_pool, settings, child)
        self.tenants = {
            name: {
                "namespace": _tenant_namespace(name, tenant, child).metadata.name,
                "accounts": accounts[name].accounts if name in accounts else {},
            }
            for name, tenant in settings.tenants.items()
        }
        self.register_outputs({"accountPool": self.account_pool, "tenants": self.tenants})

    def _declare_accounts(
        self, section: nouns.AccountPool, settings: Settings, child: pulumi.ResourceOptions
    ) -> Mapping[str, TenantAccounts]:
        """Declare the pool, then claim from it: a claim comes after every member and goes before them."""
        claims = {name: _claims(name, tenant, section) for name, tenant in settings.tenants.items()}
        args = _pool_args(section, settings.credentials, [*chain(*claims.values())])
        pool = AccountPool("account-pool", args, child)
        self.account_pool = {"namespace": pool.namespace, "members": pool.members}
        after = pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=[pool]))
        return {
            name: TenantAccounts(
                name, TenantAccountsArgs(pool_namespace=pool.namespace, tenant=name, claims=wanted), after
            )
            for name, wanted in claims.items()
            if wanted
        }


def _pool_args(
    section: nouns.AccountPool, credentials: Credentials, claims: Sequence[ClaimRequest]
) -> AccountPoolArgs:
    return AccountPoolArgs(
        namespace=section.namespace,
        settings=PoolSettings(section.partition_keys, section.release_policy, section.limits),
        members={
            name: MemberArgs(
                type=member.type,
                account_id=member.account_id,
                data=credentials.secret_data(member.credentials_from),
                tenant=member.tenant,
                partition=member.partition,
                shared_capacity=member.shared_capacity,
                internal=member.internal,
            )
            for name, member in section.members.items()
        },
        claims=claims,
        allow_destroy=section.allow_destroy,
        claimers=_grantees(section.claimers),
        cleaners=_grantees(section.cleaners),
    )


def _grantees(subjects: Sequence[nouns.Subject]) -> Sequence[Grantee]:
    return [Grantee(kind=one.kind, name=one.name, namespace=one.namespace) for one in subjects]


def _tenant_namespace(name: str, tenant: nouns.Tenant, opts: pulumi.ResourceOptions) -> Namespace:
    metadata = ObjectMetaArgs(name=tenant.namespace, labels={TENANT: tenant_label(name)})
    return Namespace(f"{name}-namespace", metadata=metadata, opts=opts)


def _claims(name: str, tenant: nouns.Tenant, section: nouns.AccountPool) -> Sequence[ClaimRequest]:
    return [_claim(name, slot, account, section) for slot, account in tenant.accounts.items()]


def _claim(tenant: str, slot: str, account: nouns.Slot, section: nouns.AccountPool) -> ClaimRequest:
    pool = account.pool(section.ruleset)
    if isinstance(pool, Fault):
        raise TypeError(f"settings let an account through that no pool serves: {pool.cause}")
    return ClaimRequest(
        tenant=tenant,
        type=pool.type,
        slot=slot,
        partition=account.partition_in(pool),
        shared=pool.shared,
        holder=stack_holder(
            pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack(), tenant, slot
        ),
        policy=account.release_policy,
        limit=account.limit,
    )
