"""What a stack declares as a whole: composes the rooms, and alone resolves references between them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pulumi

from components.aso_credentials.keys import GLOBAL_SETTINGS, SETTINGS_MEND
from components.connection import ClusterTarget
from components.errors import ConfigurationError
from components.projection.component import sparing_others
from components.providers import kubernetes_provider
from components.service_credentials.component import declare_services
from components.settings import silence
from components.settings.stack import Settings
from components.settings.tenant_files import DIGEST
from components.waiting import told
from components.wiring.aso_credentials import declare_aso_credentials
from components.wiring.declared import Declared
from components.wiring.secret_stores import declare_secret_stores
from components.wiring.tenants import Tenants


class Fleet(pulumi.ComponentResource):
    """The account pool, each tenant with its namespace and its accounts, and what is made of credentials.

    Outputs: accountPool, {namespace, members} or empty without a pool; tenants, name → {namespace, accounts,
    deliveries}. accounts is slot → {namespace, secretName, accountId}, deliveries slot → the copy of that
    Secret, namespace/name; asoCredentials, pullSecrets and secretStores, as `declare_…` of each returns it;
    services and apps, as `declare_services` returns them, apps only where there are any; skipped, what the
    configuration asks for and the stack does not declare yet → why. Secrets are named, never shown.
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
        _refuse_silence(settings)
        cluster = ClusterTarget.parse(pulumi.Config("credfleet").get("cluster"))
        sparing = sparing_others(cluster, {GLOBAL_SETTINGS: SETTINGS_MEND})
        opts = pulumi.ResourceOptions.merge(opts, sparing)
        files = {DIGEST: settings.files} if settings.files else {}
        super().__init__(self.TYPE, name, {"tenantNames": sorted(settings.tenants), **files}, opts)
        provider = kubernetes_provider(settings.cluster, pulumi.ResourceOptions(parent=self))
        self._settings = settings
        self._child = pulumi.ResourceOptions(parent=self, providers=[provider])
        tenants = Tenants(settings, self._child)
        declared = tenants.declared
        self.account_pool, self.tenants = tenants.pool, tenants.tenants
        self.aso_credentials, unserved = self._aso_credentials(declared)
        self.pull_secrets, waiting = self._pull_secrets(declared)
        self.services, self.apps, lacking = self._services(declared)
        self.secret_stores, without = self._secret_stores(declared)
        skipped = pulumi.Output.all(told(tenants.waiting), unserved, waiting, told(lacking), without)
        self.skipped = skipped.apply(lambda all_: {what: why for each in all_ for what, why in each.items()})
        self.register_outputs(self.outputs)

    @property
    def outputs(self) -> Mapping[str, Any]:
        """What it tells others; apps only where there are any, so that other stacks keep their outputs."""
        return {
            "accountPool": self.account_pool,
            "tenants": self.tenants,
            "asoCredentials": self.aso_credentials,
            "pullSecrets": self.pull_secrets,
            "services": self.services,
            **({"apps": self.apps} if self.apps else {}),
            "secretStores": self.secret_stores,
            "skipped": self.skipped,
        }

    def export(self) -> None:
        """Make these the outputs of the stack, by which the commands know it."""
        for name, value in self.outputs.items():
            pulumi.export(name, value)

    def _aso_credentials(
        self, declared: Declared
    ) -> tuple[Mapping[str, Any], pulumi.Input[Mapping[str, str]]]:
        settings = self._settings
        if settings.aso_credentials is None:
            return {}, {}
        around = settings.surroundings(Path.cwd())
        return declare_aso_credentials(settings.aso_credentials, around, declared, self._child)

    def _pull_secrets(
        self, declared: Declared
    ) -> tuple[Mapping[str, pulumi.Output[Any]], pulumi.Input[Mapping[str, str]]]:
        settings = self._settings
        if settings.pull_secrets is None:
            return {}, {}
        from components.wiring.pull_secrets import declare_pull_secrets

        return declare_pull_secrets(
            settings.pull_secrets,
            settings.credentials,
            declared,
            settings.cluster.existing_namespaces,
            self._child,
        )

    def _services(
        self, declared: Declared
    ) -> tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, pulumi.Input[str]]]:
        settings = self._settings
        if settings.services is None:
            return {}, {}, {}
        return declare_services(
            settings.services, settings.credentials, declared.namespace, declared.source, self._child
        )

    def _secret_stores(self, declared: Declared) -> tuple[Mapping[str, Any], pulumi.Input[Mapping[str, str]]]:
        """Declare stores after the Secrets of services; what uses an account comes after that one."""
        settings = self._settings
        if settings.secret_stores is None:
            return {}, {}
        after = pulumi.ResourceOptions(depends_on=pulumi.Output.from_input(self.services).apply(lambda _: []))
        opts = pulumi.ResourceOptions.merge(self._child, after)
        return declare_secret_stores(
            settings.secret_stores, settings.tenants, settings.credentials, declared, opts
        )


def _refuse_silence(settings: Settings) -> None:
    """End the program if its stack's file was cut off before it declares anything."""
    file = Path.cwd() / f"Pulumi.{pulumi.get_stack()}.yaml"
    if problems := silence.found(settings, file, pulumi.get_project()):
        raise pulumi.RunError(str(ConfigurationError(problems)))
