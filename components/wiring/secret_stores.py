"""Secret stores of a stack, with their inputs from tenants and accounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from components.projection.model import SecretRef
from components.secret_stores.component import SecretStores, SecretStoresArgs
from components.stack_config.stack import Settings
from components.wiring.tenants import Declared


def declare_secret_stores(
    settings: Settings, declared: Declared, opts: pulumi.ResourceOptions
) -> tuple[Mapping[str, Any], pulumi.Input[Mapping[str, str]]]:
    """Declare the stores, and all reads and pushes through them.

    Returns {reads: name → Secret (namespace/name), pushes: name → places} of the direct back end, and what is
    skipped → why.
    """
    section, tenants = settings.secret_stores, settings.tenants
    if section is None:
        return {}, {}

    def claimed(account: str) -> pulumi.Output[str]:
        return declared.accounts[account]["secretName"]

    def copy_of(account: str) -> SecretRef | None:
        name, _, slot = account.partition("/")
        copy = tenants[name].accounts[slot].deliver_to
        return None if copy is None else SecretRef(tenants[name].namespace, copy.target)

    def delivered(account: str) -> pulumi.Output[Any]:
        copy = copy_of(account)
        if copy is None:
            raise TypeError(f"settings let a push of {account} through, which has no copy")
        return declared.deliveries[account].apply(lambda made: made and made.urn.apply(lambda _: copy.name))

    copies = {copy: made for name, made in declared.deliveries.items() if (copy := copy_of(name)) is not None}
    args = SecretStoresArgs(
        section=section,
        credentials=settings.credentials,
        tenants={name: tenant.namespace for name, tenant in tenants.items()},
        namespace=declared.namespace,
        claimed=claimed,
        delivered=delivered,
        ready=declared.ready.__getitem__,
        waits=declared.waits,
        foreseen=declared.data,
        copied=declared.copied,
        copies=copies,
    )
    stores = SecretStores("stores", args, opts)
    return {"reads": stores.reads, "pushes": stores.pushes}, stores.skipped
