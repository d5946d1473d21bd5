"""The stack's secret stores: what their reads and pushes take from tenants and their accounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from components.credentials import Credentials
from components.secret_stores.component import SecretStores, SecretStoresArgs
from components.secret_stores.settings import SecretStoresSection
from components.stack_config.models import Tenant
from components.wiring.tenants import Declared


def declare_secret_stores(
    section: SecretStoresSection,
    tenants: Mapping[str, Tenant],
    credentials: Credentials,
    declared: Declared,
    opts: pulumi.ResourceOptions,
) -> tuple[Mapping[str, Any], pulumi.Output[Mapping[str, str]]]:
    """Declare the stores, and whatever reads and pushes through them.

    Returns {reads: name → Secret (namespace/name), pushes: name → places} of the direct back end, and what is
    skipped → why.
    """

    def claimed(account: str) -> pulumi.Output[str]:
        return declared.accounts[account]["secretName"]

    def delivered(account: str) -> pulumi.Output[Any]:
        tenant, _, slot = account.partition("/")
        copy = tenants[tenant].accounts[slot].deliver_to
        if copy is None:
            raise TypeError(f"settings let a push of {account} through, which has no copy")
        target = copy.target
        return declared.deliveries[account].apply(lambda made: made and made.urn.apply(lambda _: target))

    args = SecretStoresArgs(
        section=section,
        credentials=credentials,
        tenants={name: tenant.namespace for name, tenant in tenants.items()},
        namespace=declared.namespace,
        claimed=claimed,
        delivered=delivered,
        ready=declared.ready.__getitem__,
        waits=declared.waits,
        foreseen=declared.data,
        copied=declared.copied,
    )
    stores = SecretStores("stores", args, opts)
    return {"reads": stores.reads, "pushes": stores.pushes}, stores.skipped
