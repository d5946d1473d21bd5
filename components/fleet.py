"""What a stack declares as a whole: composes the rooms, and alone resolves references between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pulumi
from pulumi_kubernetes.core.v1 import Namespace
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.account_pool.component import (
    AccountArgs,
    AccountPool,
    AccountPoolArgs,
    Grantee,
    MemberArgs,
    TenantAccounts,
    TenantAccountsArgs,
)
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
        section = settings.account_pool
        self.account_pool, claims = {}, {}
        if section is not None:
            pool = AccountPool("account-pool", _pool_args(section, settings.credentials), child)
            self.account_pool = {"namespace": pool.namespace, "members": pool.members}
            claiming = pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=[pool]))
            claims = {
                tenant: TenantAccounts(tenant, _account_args(tenant, noun, section, pool.namespace), claiming)
                for tenant, noun in settings.tenants.items()
                if noun.accounts
            }
        self.tenants = {
            tenant: {
                "namespace": _tenant_namespace(tenant, noun, child).metadata.name,
                "accounts": claims[tenant].accounts if tenant in claims else {},
            }
            for tenant, noun in settings.tenants.items()
        }
        self.register_outputs({"accountPool": self.account_pool, "tenants": self.tenants})


def _pool_args(section: nouns.AccountPool, credentials: Credentials) -> AccountPoolArgs:
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
            )
            for name, member in section.members.items()
        },
        claimers=_grantees(section.claimers),
        cleaners=_grantees(section.cleaners),
    )


def _grantees(subjects: Sequence[nouns.Subject]) -> Sequence[Grantee]:
    return [Grantee(kind=one.kind, name=one.name, namespace=one.namespace) for one in subjects]


def _tenant_namespace(name: str, tenant: nouns.Tenant, opts: pulumi.ResourceOptions) -> Namespace:
    metadata = ObjectMetaArgs(name=tenant.namespace, labels={TENANT: tenant_label(name)})
    return Namespace(f"{name}-namespace", metadata=metadata, opts=opts)


def _account_args(
    name: str, tenant: nouns.Tenant, section: nouns.AccountPool, pool_namespace: pulumi.Output[str]
) -> TenantAccountsArgs:
    whose = (pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack(), name)
    return TenantAccountsArgs(
        pool_namespace=pool_namespace,
        tenant=name,
        accounts={slot: _account(noun, section) for slot, noun in tenant.accounts.items()},
        holders={slot: stack_holder(*whose, slot) for slot in tenant.accounts},
    )


def _account(slot: nouns.Slot, section: nouns.AccountPool) -> AccountArgs:
    pool = slot.pool(section.ruleset)
    if isinstance(pool, Fault):
        raise TypeError(f"settings let an account through that no pool serves: {pool.cause}")
    return AccountArgs(
        type=pool.type,
        partition=slot.partition_in(pool),
        policy=slot.release_policy,
        limit=slot.limit,
    )
