"""What a stack declares as a whole: composes the rooms, and alone resolves references between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, Final

import pulumi
from pulumi_kubernetes.core.v1 import Namespace, ServiceAccount
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.account_pool.component import (
    AccountPool,
    AccountPoolArgs,
    MemberArgs,
    TenantAccounts,
    TenantAccountsArgs,
)
from components.account_pool.model import ClaimRequest
from components.account_pool.pool_settings import PoolSettings
from components.account_pool.rights import Grantee
from components.account_pool.rules import Fault
from components.credentials import Credentials
from components.labels import TENANT, TENANT_NAME
from components.naming import stack_holder, tenant_label
from components.projection.component import DeliveryArgs, TenantDeliveries, TenantDeliveriesArgs
from components.providers import kubernetes_provider
from components.settings import Settings, nouns
from components.wiring.aso_credentials import declare_aso_credentials
from components.wiring.declared import Account, Declared
from components.wiring.secret_stores import declare_secret_stores
from components.wiring.services import declare_services

_ACCOUNT_READER: Final = "account-reader"


class Fleet(pulumi.ComponentResource):
    """The account pool, each tenant with its namespace and its accounts, and the services somebody else runs.

    Outputs: accountPool, {namespace, members} or empty without a pool; tenants, name → {namespace, accounts,
    deliveries}. accounts is slot → {namespace, secretName, accountId}, deliveries slot → the copy of that
    Secret, namespace/name; asoCredentials, pullSecrets and secretStores, as `declare_…` of each returns it;
    services, instance → {secretName, bindings}; skipped, what the configuration asks for and the stack does
    not declare yet → why. Secrets are named, never shown.
    """

    TYPE: ClassVar = "credfleet:index:Fleet"
    account_pool: Mapping[str, pulumi.Output[Any]]
    tenants: Mapping[str, Mapping[str, Any]]
    aso_credentials: Mapping[str, Any]
    pull_secrets: Mapping[str, pulumi.Output[Any]]
    services: Mapping[str, Any]
    secret_stores: Mapping[str, Any]
    skipped: pulumi.Input[Mapping[str, str]]

    def __init__(self, name: str, settings: Settings, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(self.TYPE, name, {"tenantNames": sorted(settings.tenants)}, opts)
        provider = kubernetes_provider(settings.cluster, pulumi.ResourceOptions(parent=self))
        self._child = pulumi.ResourceOptions(parent=self, providers=[provider])
        section = settings.account_pool
        self._kept = pulumi.ResourceOptions.merge(
            self._child, pulumi.ResourceOptions(protect=section is not None and section.protect)
        )
        self.account_pool, pool, claims = {}, None, {}
        if section is not None:
            claims = {name: _claims(name, tenant, section) for name, tenant in settings.tenants.items()}
            args = _pool_args(section, settings.credentials, [*chain(*claims.values())])
            pool = AccountPool("account-pool", args, self._child)
            self.account_pool = {"namespace": pool.namespace, "members": pool.members}
        self._copies: dict[Account, pulumi.Resource] = {}
        self._claimed: list[pulumi.Resource] = []
        self.tenants = {
            name: self._declare_tenant(name, tenant, pool, claims.get(name, ()))
            for name, tenant in settings.tenants.items()
        }
        declared = self._declared(settings.tenants)
        self.aso_credentials, self.pull_secrets, self.services, self.skipped = {}, {}, {}, {}
        if settings.aso_credentials is not None:
            self.aso_credentials = declare_aso_credentials(
                settings.aso_credentials, settings.tenants, settings.credentials, declared, self._child
            )
        if settings.pull_secrets is not None:
            from components.wiring.pull_secrets import declare_pull_secrets

            self.pull_secrets, self.skipped = declare_pull_secrets(
                settings.pull_secrets,
                settings.credentials,
                declared,
                settings.cluster.existing_namespaces,
                self._child,
            )
        if settings.services is not None:
            self.services = declare_services(settings.services, settings.credentials, declared, self._child)
        self.secret_stores = {}
        if settings.secret_stores is not None:
            self.secret_stores, without = declare_secret_stores(
                settings.secret_stores, settings.tenants, settings.credentials, declared, self._after_all()
            )
            self.skipped = pulumi.Output.all(self.skipped, without).apply(lambda both: {**both[0], **both[1]})
        self.register_outputs(
            {
                "accountPool": self.account_pool,
                "tenants": self.tenants,
                "asoCredentials": self.aso_credentials,
                "pullSecrets": self.pull_secrets,
                "services": self.services,
                "secretStores": self.secret_stores,
                "skipped": self.skipped,
            }
        )

    def _after_all(self) -> pulumi.ResourceOptions:
        """Order a child after the accounts with all rights on them, and after the Secrets of services."""
        services = pulumi.Output.from_input(self.services)
        after = pulumi.ResourceOptions(depends_on=services.apply(lambda _: self._claimed))
        return pulumi.ResourceOptions.merge(self._child, after)

    def _declared(self, tenants: Mapping[str, nouns.Tenant]) -> Declared:
        return Declared(
            namespaces={
                tenant.namespace: self.tenants[name]["namespace"] for name, tenant in tenants.items()
            },
            accounts={
                f"{name}/{slot}": account
                for name, tenant in self.tenants.items()
                for slot, account in tenant["accounts"].items()
            },
            deliveries=self._copies,
        )

    def _declare_tenant(
        self, name: str, tenant: nouns.Tenant, pool: AccountPool | None, claims: Sequence[ClaimRequest]
    ) -> Mapping[str, Any]:
        """Declare a tenant's namespace, claim its accounts once the pool is whole, and deliver them."""
        namespace = _tenant_namespace(name, tenant, self._kept).metadata.name
        if pool is None or not claims:
            return {"namespace": namespace, "accounts": {}, "deliveries": {}}
        claimed = TenantAccounts(
            name,
            TenantAccountsArgs(
                pool_namespace=pool.namespace,
                tenant=name,
                claims=claims,
                reader=_account_reader(name, namespace, self._child),
            ),
            pulumi.ResourceOptions.merge(self._child, pulumi.ResourceOptions(depends_on=[pool])),
        )
        self._claimed.append(claimed)
        copies = {
            claim.slot: _delivery(claim, claimed, copy)
            for claim in claims
            if (copy := tenant.accounts[claim.slot].deliver_to) is not None
        }
        delivered: Mapping[str, pulumi.Output[str]] = {}
        if copies:
            args = TenantDeliveriesArgs(namespace=namespace, deliveries=copies)
            deliveries = TenantDeliveries(name, args, self._child)
            delivered = deliveries.references
            self._copies |= {f"{name}/{slot}": copy for slot, copy in deliveries.copies.items()}
        return {"namespace": namespace, "accounts": claimed.accounts, "deliveries": delivered}


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
        admission_policy=section.admission_policy,
        protect=section.protect,
        claimers=_grantees(section.claimers),
        cleaners=_grantees(section.cleaners),
    )


def _grantees(subjects: Sequence[nouns.Subject]) -> Sequence[Grantee]:
    return [Grantee(kind=one.kind, name=one.name, namespace=one.namespace) for one in subjects]


def _tenant_namespace(name: str, tenant: nouns.Tenant, opts: pulumi.ResourceOptions) -> Namespace:
    metadata = ObjectMetaArgs(name=tenant.namespace, labels={TENANT: tenant_label(name)})
    return Namespace(f"{name}-namespace", metadata=metadata, opts=opts)


def _account_reader(name: str, namespace: pulumi.Output[str], opts: pulumi.ResourceOptions) -> Grantee:
    """Make the identity under which a tenant's workloads read its accounts where they lie."""
    reader = ServiceAccount(
        f"{name}-account-reader",
        metadata=ObjectMetaArgs(name=_ACCOUNT_READER, namespace=namespace),
        automount_service_account_token=False,
        opts=opts,
    )
    return Grantee(kind="ServiceAccount", name=reader.metadata.name, namespace=namespace)


def _delivery(claim: ClaimRequest, claimed: TenantAccounts, copy: nouns.Delivery) -> DeliveryArgs:
    """Copy what a claim got, as long as it is the tenant's; a shared account bears no owner."""
    return DeliveryArgs(
        source_namespace=claimed.accounts[claim.slot]["namespace"],
        source_name=claimed.accounts[claim.slot]["secretName"],
        source_labels={} if claim.shared else {TENANT_NAME: tenant_label(claim.tenant)},
        owner=claim.holder,
        target_name=copy.target,
        keys=copy.keys,
        aso_credential=copy.aso_credential,
    )


def _claims(name: str, tenant: nouns.Tenant, section: nouns.AccountPool) -> Sequence[ClaimRequest]:
    return [_claim(name, slot, account, section) for slot, account in tenant.accounts.items()]


def _claim(tenant: str, slot: str, account: nouns.Slot, section: nouns.AccountPool) -> ClaimRequest:
    pool = account.pool(section.ruleset)
    if isinstance(pool, Fault):
        raise TypeError(f"settings let an account through that no pool serves: {pool.cause}")
    whose = (pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack())
    return account.claim_on(pool, tenant, slot, stack_holder(*whose, tenant, slot))
