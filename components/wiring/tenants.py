"""Account pool of a stack, and its tenants with namespaces and accounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias

import pulumi
from pulumi_kubernetes.core.v1 import Namespace, ServiceAccount
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.account_pool import settings as pool_settings
from components.account_pool.claim_forecast import ClaimForecasts, KeyInUse
from components.account_pool.component import (
    AccountPool,
    AccountPoolArgs,
    ClaimedAccount,
    Grantee,
    TenantAccounts,
    TenantAccountsArgs,
)
from components.account_pool.core.declared import Declaration
from components.account_pool.core.model import ClaimRequest
from components.account_pool.forecast.forecast import Claim, ForecastInput
from components.account_pool.member_data import configured_digest
from components.account_pool.provider import AccountClaim
from components.account_pool.roster import PoolRoster, PoolRosterArgs
from components.account_pool.rules import Fault
from components.connection import ClusterTarget
from components.credentials import Credentials
from components.errors import ProjectionError
from components.holding import current_holder, known_as, names_of
from components.labels import TENANT, TENANT_NAME
from components.naming import TENANT_NAMESPACE_END, config_path, tenant_label
from components.projection.component import TenantDeliveries, TenantDeliveriesArgs
from components.projection.model import digests
from components.projection.provider import SecretProjection, SecretProjectionArgs
from components.projection.settings import CredentialSource, Delivery
from components.projection.sources import Source
from components.stack_config.models import Tenant
from components.stack_config.stack import Settings
from components.waiting import apply_to_unknowns

Account: TypeAlias = str
"""Configured name of a claim: `tenant/slot`."""

Digests: TypeAlias = Mapping[str, str]
"""Key of a Secret → digest of its value."""

_ACCOUNT_READER: Final = "account-reader"


class Declared:
    """Declared outputs of a stack's tenants.

    `namespaces`: name → declared namespace. `accounts`: Secret of a claim, and the account's id. `skipped`:
    why a claim is skipped, empty if it is not. `ready`: the claim, and the rights on its account.
    `deliveries`: copy of a claim's Secret in the tenant's namespace. `data`, `copied`: in a preview, digests
    of the future data of an account's Secret and of its copy, by key; None, or absent, if this stack does not
    declare it.
    """

    def __init__(self) -> None:
        self.namespaces: dict[str, pulumi.Output[str]] = {}
        self.accounts: dict[Account, ClaimedAccount] = {}
        self.owners: dict[Account, Mapping[str, str]] = {}
        self.skipped: dict[Account, pulumi.Output[str]] = {}
        self.ready: dict[Account, pulumi.Output[Sequence[pulumi.Resource]]] = {}
        self.deliveries: dict[Account, pulumi.Output[SecretProjection | None]] = {}
        self.data: dict[Account, pulumi.Output[Digests | None]] = {}
        self.copied: dict[Account, pulumi.Output[Digests | None]] = {}

    def waits(self, account: Account) -> pulumi.Output[str]:
        """Return why dependents of a claim wait; empty once it has its account."""
        return self.skipped[account].apply(lambda why: why and f"waits for claim {account}")

    def namespace(self, name: str) -> pulumi.Input[str]:
        """Return a namespace as declared by the stack, or its name if it exists."""
        return self.namespaces.get(name, name)

    def source(self, given: CredentialSource, place: str) -> tuple[Source, pulumi.Input[str]]:
        """Return an external credential's source, and why it waits; `place`: of the reference."""
        if (account := given.account) is None:
            return given.source(place), ""
        claimed, labels = self.accounts[account], self.owners[account]
        source = Source(claimed["namespace"], claimed["secretName"], place, given.key, labels)
        return source, self.waits(account)


class Tenants:
    """Declares the pool, then each tenant: its claims once the pool is complete, then the copies.

    `pool`: {namespace, members}, without members if another stack declares it, empty without a pool.
    `claims`, `keys`: tenant/slot → the claim, and its account's key if that was rotated. `tenants`: name →
    {namespace, accounts, deliveries}.
    """

    def __init__(self, settings: Settings, opts: pulumi.ResourceOptions) -> None:
        section = settings.account_pool
        self._section, self._credentials = section, settings.credentials
        self._cluster = settings.cluster
        protect = pulumi.ResourceOptions(protect=section is not None and section.protect)
        self._child, self._kept = opts, pulumi.ResourceOptions.merge(opts, protect)
        self._renamed = {old: name for name, one in settings.tenants.items() for old in one.previously}
        self._owner = TENANT_NAME if section is None else section.labels.tenant
        self.declared = Declared()
        self.claims: dict[Account, AccountClaim] = {}
        self.keys: Mapping[Account, KeyInUse] = {}
        self._keeps: Callable[[str], bool] = lambda _: False
        self.pool: Mapping[str, pulumi.Output[Any]] = {}
        self._settings = None
        self._state: pulumi.Input[str | None] = None
        self._foreseen: Mapping[Claim, pulumi.Input[ForecastInput | None]] = {}
        claimable, claims = None, {}
        if section is not None:
            claims = {
                name: [_claim(name, tenant, slot, section) for slot in tenant.accounts]
                for name, tenant in settings.tenants.items()
            }
            claimable = self._pool(section, settings.credentials, [*chain(*claims.values())])
        self.tenants: Mapping[str, Mapping[str, Any]] = {
            name: self._declare(name, tenant, claimable, claims.get(name, ()))
            for name, tenant in settings.tenants.items()
        }

    def _pool(
        self, section: pool_settings.AccountPool, credentials: Credentials, claims: Sequence[ClaimRequest]
    ) -> pulumi.Input[Sequence[pulumi.Resource]]:
        """Declare the pool, or the roster of another stack's pool; return what claims depend on."""
        if section.from_ is not None:
            self.pool = {"namespace": pulumi.Output.from_input(section.namespace)}
            declared = Declaration(section.namespace, {}, section.config_map)
            owner = current_holder("accountPool", section.namespace)
            args = PoolRosterArgs.of(declared, owner, elsewhere=True)
            roster = PoolRoster("account-pool-elsewhere", args, self._child)
            cluster = section.from_.cluster or self._cluster
            target = ClusterTarget(cluster.context, cluster.kubeconfig, cluster.uid)
            forecasts = ClaimForecasts.of(target, declared, claims, elsewhere=True)
            forecasts.tell_after(roster, owner)
            self._foreseen, self._state = forecasts.claims, roster.state
            self.keys = forecasts.keys_of(claims)
            return [roster]
        args = _pool_args(section, credentials, claims, self._renamed)
        self._settings = args.settings
        pool = AccountPool("account-pool", args, self._child)
        self.pool = {"namespace": pool.namespace, "members": pool.members}
        self._foreseen, self._state, self.keys = pool.foreseen, pool.state, pool.keys
        self._keeps = pool.writers.keeps
        return pool.claimable

    @property
    def waiting(self) -> Mapping[str, pulumi.Output[str]]:
        """Skipped claims, and the copies that wait for them."""
        claims = {f"claim {account}": why for account, why in self.declared.skipped.items()}
        copies = {f"copy {each}": self.declared.waits(each) for each in self.declared.deliveries}
        return {**claims, **copies}

    def _declare(
        self,
        name: str,
        tenant: Tenant,
        claimable: pulumi.Input[Sequence[pulumi.Resource]] | None,
        claims: Sequence[ClaimRequest],
    ) -> Mapping[str, Any]:
        named = known_as(name, tenant.previously)
        child = pulumi.ResourceOptions.merge(self._child, named)
        kept = pulumi.ResourceOptions.merge(self._kept, named)
        metadata = ObjectMetaArgs(name=tenant.namespace, labels={TENANT: tenant_label(name)})
        made = Namespace(f"{name}{TENANT_NAMESPACE_END}", metadata=metadata, opts=kept)
        namespace = self.declared.namespaces[tenant.namespace] = made.metadata.name
        if claimable is None or not claims:
            return {"namespace": namespace, "accounts": {}, "deliveries": {}}
        claimed = TenantAccounts(
            name,
            TenantAccountsArgs(
                pool_namespace=self.pool["namespace"],
                tenant=name,
                claims=claims,
                # Only the pool's own stack grants rights in it.
                reader=self._settings and _account_reader(name, namespace, child),
                settings=self._settings,
                foreseen=self._foreseen,
                state=self._state,
            ),
            pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=claimable)),
        )
        copies: dict[str, SecretProjectionArgs] = {}
        for claim in claims:
            slot, account = claim.slot, f"{name}/{claim.slot}"
            self.claims[account] = claimed.claims[slot]
            self.declared.accounts[account] = claimed.accounts[slot]
            self.declared.skipped[account] = claimed.skipped[slot]
            self.declared.ready[account] = claimed.ready[slot]
            self.declared.owners[account] = _owner(claim, self._owner)
            data = self._declared_data(claimed.accounts[slot]["secretName"])
            if data is not None:
                self.declared.data[account] = data.apply(lambda known: known and digests(known))
            if (copy := tenant.accounts[slot].deliver_to) is not None:
                copies[slot] = self._copy(account, claim, copy, namespace, data)
        delivered: Mapping[str, pulumi.Output[str | None]] = {}
        if copies:
            args = TenantDeliveriesArgs(
                namespace=namespace,
                copies=copies,
                waits=claimed.skipped,
                former={claim.slot: names_of(claim.previously) for claim in claims},
            )
            deliveries = TenantDeliveries(name, args, child)
            delivered = deliveries.references
            for slot, made in deliveries.copies.items():
                self.declared.deliveries[f"{name}/{slot}"] = made
        return {"namespace": namespace, "accounts": claimed.accounts, "deliveries": delivered}

    def _copy(
        self,
        account: Account,
        claim: ClaimRequest,
        copy: Delivery,
        namespace: pulumi.Output[str],
        declared: pulumi.Output[Mapping[str, str] | None] | None,
    ) -> SecretProjectionArgs:
        """Copy the Secret of a claim while the tenant has it. `declared`: in a preview, its data."""
        foreseen = None if declared is None else declared.apply(partial(_foresee, copy))
        if foreseen is not None:
            self.declared.copied[account] = foreseen
        claimed = self.declared.accounts[account]
        return SecretProjectionArgs(
            source_namespace=claimed["namespace"],
            source_name=claimed["secretName"],
            source_labels=self.declared.owners[account],
            target_namespace=namespace,
            target_name=copy.target,
            owner=claim.holder,
            previously=claim.previously or None,
            keys=copy.keys,
            aso_credential=copy.aso_credential,
            foreseen=foreseen,
            of_pool=(self._section is not None and self._section.is_in_other_cluster) or None,
        )

    def _declared_data(
        self, secret_name: pulumi.Output[str]
    ) -> pulumi.Output[Mapping[str, str] | None] | None:
        """Return the declared data of a claimed account, from which a preview derives its copies."""
        section, credentials = self._section, self._credentials
        if section is None or not pulumi.runtime.is_dry_run():
            return None

        def data(name: Any) -> pulumi.Output[Mapping[str, str]] | None:
            is_own = isinstance(name, str) and not self._keeps(name)
            member = section.members.get(name) if is_own else None
            entry = None if member is None else member.credentials_from.entry
            return None if entry is None else credentials.secret_data(entry)

        return apply_to_unknowns(data, secret_name)


def _pool_args(
    section: pool_settings.AccountPool,
    credentials: Credentials,
    claims: Sequence[ClaimRequest],
    renamed: Mapping[str, str],
) -> AccountPoolArgs:
    entries = {name: member.credentials_from.entry for name, member in section.members.items()}
    own = {name: entry for name, entry in entries.items() if entry is not None}
    return AccountPoolArgs(
        namespace=section.namespace,
        settings=section.config_map,
        members={name: member.declared for name, member in section.members.items()},
        data={name: credentials.secret_data(entry) for name, entry in own.items()},
        configured={name: partial(configured_digest, credentials, entry) for name, entry in own.items()},
        elsewhere={
            name: member.credentials_from.source(
                config_path("accountPool", "members", name, "credentialsFrom")
            )
            for name, member in section.members.items()
            if name not in own
        },
        claims=claims,
        allow_destroy=section.allow_destroy,
        admission_policy=section.admission_policy,
        protect=section.protect,
        renamed=renamed,
        claimers=_grantees(section.claimers),
        cleaners=_grantees(section.cleaners),
        bringers={tenant: _grantees(people) for tenant, people in section.bringers.items()},
    )


def _grantees(subjects: Sequence[pool_settings.Subject]) -> Sequence[Grantee]:
    return [Grantee(kind=one.kind, name=one.name, namespace=one.namespace) for one in subjects]


def _account_reader(name: str, namespace: pulumi.Output[str], opts: pulumi.ResourceOptions) -> Grantee:
    """Declare the identity that a tenant's workloads use to read its accounts in the pool."""
    reader = ServiceAccount(
        f"{name}-account-reader",
        metadata=ObjectMetaArgs(name=_ACCOUNT_READER, namespace=namespace),
        automount_service_account_token=False,
        opts=opts,
    )
    return Grantee(kind="ServiceAccount", name=reader.metadata.name, namespace=namespace)


def _foresee(copy: Delivery, data: Mapping[str, str] | None) -> Digests | None:
    try:
        return None if data is None else digests(copy.plan.apply(data, copy.target))
    except ProjectionError:
        return None


def _owner(claim: ClaimRequest, label: str) -> Mapping[str, str]:
    """Return the label that proves the account is the tenant's; shared accounts have no owner."""
    return {} if claim.shared else {label: tenant_label(claim.tenant)}


def _claim(name: str, tenant: Tenant, slot: str, section: pool_settings.AccountPool) -> ClaimRequest:
    account = tenant.accounts[slot]
    pool = account.pool(section.ruleset)
    if isinstance(pool, Fault):
        raise TypeError(f"settings let an account through that no pool serves: {pool.problem}")
    claim = account.claim_on(pool, name, slot, current_holder(name, slot))
    names = [(t, s) for t in (name, *tenant.previously) for s in (slot, *account.previously)][1:]
    return replace(claim, previously=tuple(current_holder(*each) for each in names))
