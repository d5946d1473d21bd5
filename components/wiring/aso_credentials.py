"""The credentials of Azure Service Operator, the identities behind them, and the resources they serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import pulumi

from components.aso_credentials.component import (
    AsoGlobalSettings,
    AsoGlobalSettingsArgs,
    AsoNamespaceCredential,
    AsoNamespaceCredentialArgs,
    AsoResourceCredential,
    AsoResourceCredentialArgs,
    PinnedCredential,
)
from components.aso_credentials.keys import NAMESPACE_SECRET
from components.aso_credentials.model import Credential
from components.aso_credentials.nouns import Resolution, SecretName
from components.aso_credentials.resources import AsoResourceArgs, AsoResources, AsoResourcesArgs
from components.credentials import Credentials
from components.naming import config_path
from components.settings.aso_contents import content, controller, sources
from components.settings.aso_credentials import AsoCredentials, Entry, GlobalSettings
from components.settings.aso_resources import DeclaredResource, read_resources, resolutions
from components.settings.nouns import Tenant
from components.wiring.aso_identities import Trust
from components.wiring.declared import Declared

Made: TypeAlias = AsoGlobalSettings | AsoNamespaceCredential | AsoResourceCredential


def declare_aso_credentials(
    section: AsoCredentials,
    tenants: Mapping[str, Tenant],
    credentials: Credentials,
    declared: Declared,
    opts: pulumi.ResourceOptions,
) -> Mapping[str, Any]:
    """Declare everything the section names.

    Returns globalSettings, a reference or None; namespaces and named, name → reference of the Secret;
    identities, name → {clientId, principalId}; resources, NAMESPACE/KIND.GROUP/NAME → namespace/name of the
    Secret that serves it. A reference is namespace/name.
    """
    trust = Trust.declare(section, declared, opts)
    room = _Room(section, credentials, declared, trust, opts)
    made: dict[SecretName, Made] = {entry.secret: room.credential(entry) for entry in section.entries()}
    if section.global_settings is not None:
        made[section.global_name] = room.settings(section.global_settings)
    references = {secret: one.reference for secret, one in made.items()}
    served = {**_delivered(tenants, declared), **{secret: one.served for secret, one in made.items()}}
    return {
        "globalSettings": references.get(section.global_name),
        "namespaces": {name: references[SecretName(name, NAMESPACE_SECRET)] for name in section.namespaces},
        "named": {
            name: references[SecretName(named.namespace, name)] for name, named in section.named.items()
        },
        "identities": {
            name: {"clientId": one.client_id, "principalId": one.principal_id}
            for name, one in trust.identities.items()
        },
        "resources": _declare_resources(section, tenants, room, served),
    }


@dataclass(frozen=True, slots=True)
class _Room:
    """The section while its Secrets are declared."""

    section: AsoCredentials
    credentials: Credentials
    declared: Declared
    trust: Trust
    opts: pulumi.ResourceOptions

    def settings(self, given: GlobalSettings) -> AsoGlobalSettings:
        make = partial(controller, given, self.section.operator)
        entry = self.section.global_entry()
        if entry is None:
            place = config_path("asoCredentials", "globalSettings")
            settings = PinnedCredential(content=make(None), subscription=None, place=place)
        else:
            settings = self.pinned(entry, self.content(entry, strict=False).apply(make))
        namespace = self.declared.namespace(self.section.operator.namespace)
        return AsoGlobalSettings(
            "aso", AsoGlobalSettingsArgs(namespace=namespace, settings=settings), self.opts
        )

    def credential(self, entry: Entry) -> AsoNamespaceCredential | AsoResourceCredential:
        namespace = self.declared.namespace(entry.secret.namespace)
        credential = self.pinned(entry, self.content(entry, strict=self.section.operator.strict))
        if entry.secret.name == NAMESPACE_SECRET:
            args = AsoNamespaceCredentialArgs(namespace=namespace, credential=credential)
            return AsoNamespaceCredential(entry.key, args, self.opts)
        return AsoResourceCredential(
            entry.key,
            AsoResourceCredentialArgs(
                namespace=namespace, secret_name=entry.secret.name, credential=credential
            ),
            self.opts,
        )

    def pinned(self, entry: Entry, content: pulumi.Output[Any]) -> PinnedCredential:
        return PinnedCredential(
            content=content,
            subscription=entry.credential.method.subscription_id,
            place=entry.place,
            allow_subscription_change=entry.credential.allow_subscription_change,
            after=self.trust.of(entry),
        )

    def content(self, entry: Entry, *, strict: bool) -> pulumi.Output[Credential]:
        """Make a credential of the configuration's secrets and of the ids that Azure gave its identity."""
        contents = [self.credentials.secret(name, bytes) for name in sources(entry.credential).values()]
        identity = self.trust.identity_of(entry)
        ids: dict[str, pulumi.Input[str]] = (
            {} if identity is None else {"tenant": identity.tenant_id, "client": identity.client_id}
        )
        return pulumi.Output.all(pulumi.Output.all(*contents), pulumi.Output.from_input(ids)).apply(
            lambda known: content(entry.credential, known[0], strict=strict, **known[1])
        )


def _delivered(
    tenants: Mapping[str, Tenant], declared: Declared
) -> Mapping[SecretName, Sequence[pulumi.Resource]]:
    """Tell what stands behind the copies of claimed accounts."""
    return {
        SecretName(tenant.namespace, account.deliver_to.target): [declared.deliveries[f"{name}/{slot}"]]
        for name, tenant in tenants.items()
        for slot, account in tenant.accounts.items()
        if account.deliver_to is not None
    }


def _declare_resources(
    section: AsoCredentials,
    tenants: Mapping[str, Tenant],
    room: _Room,
    served: Mapping[SecretName, Sequence[pulumi.Resource]],
) -> Mapping[str, str]:
    """Declare the resources of each file behind the Secrets that serve them; tell what surprises people."""
    found, problems = read_resources(section, Path.cwd())
    if problems:
        raise TypeError(f"settings let resources through that cannot be read: {problems[0].cause}")
    resolved = [*zip(found, resolutions(section, tenants, room.credentials, found), strict=True)]
    for entry, group in groupby(resolved, key=lambda pair: pair[0].entry):
        args = [_args(one, resolution, room, served) for one, resolution in group]
        AsoResources(entry, AsoResourcesArgs(resources=args), room.opts)
    for one, resolution in resolved:
        for hint in resolution.hints:
            pulumi.log.warn(f"{one.place} {one.resource}: {hint}")
    return {one.name: str(resolution.secret) for one, resolution in resolved}


def _args(
    one: DeclaredResource,
    resolution: Resolution,
    room: _Room,
    served: Mapping[SecretName, Sequence[pulumi.Resource]],
) -> AsoResourceArgs:
    if resolution.secret is None:
        raise TypeError(f"settings let {one.resource} through, which no credential serves")
    return AsoResourceArgs(
        name=str(one.resource),
        manifest=one.manifest,
        namespace=room.declared.namespace(one.resource.namespace),
        credential=one.credential,
        outlives=served[resolution.secret],
    )
