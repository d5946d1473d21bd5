"""The whole stack: composes the components, and resolves references between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pulumi
from pulumi.resource import DependencyResource

from components.aso_credentials.keys import GLOBAL_SETTINGS, SETTINGS_FIX
from components.config.places import locate
from components.connection import ClusterTarget
from components.errors import ConfigurationError
from components.naming import config_path
from components.projection.component import sparing_others
from components.providers import kubernetes_provider
from components.recalled import recall_resources
from components.skipped_lines import skipped_lines
from components.stack_config.leaving import (
    ALLOW_REMOVALS,
    find_losses,
    find_silence,
    read_entries,
    read_former,
)
from components.stack_config.stack import Settings
from components.stack_config.tenant_files import DIGEST
from components.waiting import pending
from components.wiring.account_keys import Consumers, declare_account_keys
from components.wiring.aso_credentials import declare_aso_credentials
from components.wiring.secret_stores import declare_secret_stores
from components.wiring.services import declare_services, keeping_ids
from components.wiring.tenants import Declared, Tenants


class Fleet(pulumi.ComponentResource):
    """Whole stack: the account pool, the tenants with their accounts, and all other parts.

    Attributes for a program: `account_pool`, {namespace, members}, empty without a pool; `tenants`, name →
    {namespace, accounts, deliveries}, with accounts slot → {namespace, secretName, accountId} and deliveries
    slot → copy of that Secret, namespace/name; `aso_credentials`, `pull_secrets`, `secret_stores`: results of
    their `declare_…` functions; `services`, `apps`: result of `declare_services`. They contain names of
    Secrets, no data. Output: `skipped`, what is configured but not declared yet → why.
    """

    TYPE: ClassVar = "credfleet:index:Fleet"
    account_pool: Mapping[str, pulumi.Output[Any]]
    tenants: Mapping[str, Mapping[str, Any]]
    aso_credentials: Mapping[str, Any]
    pull_secrets: Mapping[str, pulumi.Output[Any]]
    services: Mapping[str, Any]
    apps: Mapping[str, Any]
    secret_stores: Mapping[str, Any]
    skipped: pulumi.Output[Mapping[str, str]]

    def __init__(self, name: str, settings: Settings, opts: pulumi.ResourceOptions | None = None) -> None:
        _refuse_losses(settings)
        cluster = ClusterTarget.parse(pulumi.Config("credfleet").get("cluster"))
        sparing = sparing_others(cluster, {GLOBAL_SETTINGS: SETTINGS_FIX})
        opts = pulumi.ResourceOptions.merge(opts, sparing)
        consumers = Consumers()
        opts = pulumi.ResourceOptions.merge(opts, consumers.noting())
        if settings.services is not None:
            opts = pulumi.ResourceOptions.merge(opts, keeping_ids())
        files = {DIGEST: settings.files} if settings.files else {}
        super().__init__(self.TYPE, name, {"tenantNames": sorted(settings.tenants), **files}, opts)
        provider = kubernetes_provider(settings.cluster, pulumi.ResourceOptions(parent=self))
        self._settings = settings
        self._child = pulumi.ResourceOptions(parent=self, providers=[provider])
        tenants = Tenants(settings, self._child)
        declared = tenants.declared
        self.account_pool, self.tenants = tenants.pool, tenants.tenants
        self.aso_credentials, unserved = declare_aso_credentials(settings, declared, self._child)
        self.pull_secrets, waiting = self._pull_secrets(declared)
        self.services, self.apps, lacking = declare_services(settings, declared, self._child)
        self.secret_stores, without = self._secret_stores(declared)
        untold = pulumi.Output.all(unserved, lacking, without).apply(_joined).apply(self._tell)
        self.skipped = pulumi.Output.all(pending(tenants.waiting), waiting, untold).apply(_joined)
        declare_account_keys(tenants.keys, tenants.claims, consumers, self._settled(), self._child)
        self.register_outputs({"skipped": self.skipped})

    def _settled(self) -> pulumi.Output[Any]:
        """Return an output that is known once all dependents of accounts are declared."""
        copies = [tenant["deliveries"] for tenant in self.tenants.values()]
        made = [self.aso_credentials, self.pull_secrets, self.services, self.apps, self.secret_stores]
        return pulumi.Output.all(copies, made, self.skipped)

    def _tell(self, skipped: Mapping[str, str]) -> Mapping[str, str]:
        """Report what is skipped, except claims and pull secrets, which report it themselves."""
        if skipped:
            pulumi.log.info("\n".join(skipped_lines(skipped)), self)
        return skipped

    def export(self) -> None:
        """Export a summary as stack outputs: the count of each part, and of what is skipped."""
        for name, value in self._digest().items():
            pulumi.export(name, value)

    def _digest(self) -> Mapping[str, Any]:
        aso, stores = self.aso_credentials, self._settings.secret_stores
        counts = {
            "tenants": len(self.tenants),
            "asoCredentials": len([*aso.get("namespaces", ()), *aso.get("named", ())]),
            "pullSecrets": len(self.pull_secrets),
            "services": len(self.services),
            "apps": len(self.apps),
            "secretStores": len(stores.stores) if stores else 0,
        }
        digest: dict[str, Any] = {name: count for name, count in counts.items() if count}
        skipped = self.skipped.apply(lambda each: dict(Counter(what.rpartition(" ")[0] for what in each)))
        if self.account_pool:
            digest["accountPool"] = {
                key: told.apply(lambda value: value if isinstance(value, str) else len(value))
                for key, told in self.account_pool.items()
            }
        if claims := sum(len(one["accounts"]) for one in self.tenants.values()):
            without = skipped.apply(lambda each: each.get("claim", 0))
            digest["claims"] = {"bound": without.apply(lambda count: claims - count), "skipped": without}
        return {**digest, "skipped": skipped}

    def _pull_secrets(
        self, declared: Declared
    ) -> tuple[Mapping[str, pulumi.Output[Any]], pulumi.Input[Mapping[str, str]]]:
        if self._settings.pull_secrets is None:
            return {}, {}
        from components.wiring.pull_secrets import declare_pull_secrets

        return declare_pull_secrets(self._settings, self._settings.pull_secrets, declared, self._child)

    def _secret_stores(self, declared: Declared) -> tuple[Mapping[str, Any], pulumi.Input[Mapping[str, str]]]:
        """Declare stores after the Secrets of services; uses of an account come after the account."""
        after = pulumi.ResourceOptions(depends_on=pulumi.Output.from_input(self._until_services_settled()))
        opts = pulumi.ResourceOptions.merge(self._child, after)
        return declare_secret_stores(self._settings, declared, opts)

    async def _until_services_settled(self) -> Sequence[pulumi.Resource]:
        """Wait until services are created or failed; a failed one does not block stores.

        The engine deletes the children of a component only after the dependents of the component.
        """
        await pulumi.Output.from_input(self.services).future(with_unknowns=True)
        urn = await self.urn.future()
        return [DependencyResource(urn)] if urn else []


def _joined(parts: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    return {what: why for part in parts for what, why in part.items()}


def _refuse_losses(settings: Settings) -> None:
    """Fail before anything is declared if the stack's file is truncated, or the update would lose objects."""
    file = Path.cwd() / f"Pulumi.{pulumi.get_stack()}.yaml"
    known = recall_resources()
    losses = find_losses(read_former(known), settings, Path.cwd(), read_entries(known))
    refused = find_silence(settings, file, pulumi.get_project()) or locate(losses.refused, file)
    if refused:
        raise pulumi.RunError(str(ConfigurationError(refused)))
    if settings.allow_removals and not losses.removals:
        key = config_path(ALLOW_REMOVALS)
        pulumi.log.warn(
            f"{key} is set, and nothing needs it\n→ pulumi config rm {key} --stack {pulumi.get_stack()}"
        )
