"""Credentials of Azure Service Operator, their identities, and the resources that use them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pulumi

from components.aso_credentials.component import (
    AsoGlobalSettings,
    AsoNamespaceCredential,
    AsoResourceCredential,
    AsoSecret,
    AsoSecretArgs,
)
from components.aso_credentials.credential import AsoCredential
from components.aso_credentials.keys import GLOBAL_SETTINGS, NAMESPACE_SECRET
from components.aso_credentials.model import Data
from components.aso_credentials.operator_settings import GlobalSettings
from components.aso_credentials.provider import AsoProjectionArgs, OperatorPin, OperatorPinArgs
from components.aso_credentials.resources import AsoResourceArgs, AsoResources, AsoResourcesArgs
from components.aso_credentials.service_account import AsoServiceAccount, AsoServiceAccountArgs
from components.aso_credentials.settings import AsoCredentials, Entry
from components.config.field_types import first_name
from components.config.section import ReviewContext
from components.connection import ClusterTarget
from components.holding import current_holder, known_as
from components.projection.model import SecretRef
from components.projection.provider import source_inputs
from components.stack_config.stack import Settings
from components.waiting import join_reasons, pending
from components.wiring.tenants import Declared

if TYPE_CHECKING:
    from components.aso_credentials.identity import AsoWorkloadIdentity


_Behind: TypeAlias = tuple[pulumi.Input[Sequence[pulumi.Resource]], pulumi.Output[str] | None]
"""Resources to depend on, and why the resource must be skipped for now."""


def declare_aso_credentials(
    settings: Settings, declared: Declared, opts: pulumi.ResourceOptions
) -> tuple[Mapping[str, Any], pulumi.Input[Mapping[str, str]]]:
    """Declare everything in the section; return its outputs, and what is skipped → why.

    Outputs: globalSettings, a reference or None; namespaces and named, name → reference of the Secret;
    identities, name → {clientId, principalId}; resources, NAMESPACE/KIND.GROUP/NAME → namespace/name of the
    Secret that serves it. A reference is namespace/name.
    """
    section = settings.aso_credentials
    if section is None:
        return {}, {}
    made = _Declaring(section, settings.review_context(Path.cwd()), declared, opts)
    secrets = {entry.secret: made.credential(entry) for entry in section.entries()}
    if section.global_settings is not None:
        secrets[section.global_name] = made.settings(section.global_settings)
    references = {secret: one.reference for secret, one in secrets.items()}
    resources = made.resources({secret: one.served for secret, one in secrets.items()})
    outputs = {
        "globalSettings": references.get(section.global_name),
        "namespaces": {name: references[SecretRef(name, NAMESPACE_SECRET)] for name in section.namespaces},
        "named": {
            name: references[SecretRef(named.namespace, named.secret_name or name)]
            for name, named in section.named.items()
        },
        "identities": {
            name: {"clientId": one.client_id, "principalId": one.principal_id}
            for name, one in made.identities.items()
        },
        "resources": resources,
    }
    return outputs, pending(made.waiting)


class _Declaring:
    """Declaration of the section; identities and ServiceAccounts of strict mode come first."""

    def __init__(
        self,
        section: AsoCredentials,
        context: ReviewContext,
        declared: Declared,
        opts: pulumi.ResourceOptions,
    ) -> None:
        self._section, self._context, self._declared, self._opts = section, context, declared, opts
        self.waiting: dict[str, pulumi.Output[str]] = {}
        self._azure: dict[str | None, pulumi.ResourceOptions] = {}
        # the Azure provider is created only if required
        self.identities = self._identities() if section.is_in_azure else {}
        self._accounts = self._service_accounts()
        self._pins = [*self._operator_pin()]

    def _identities(self) -> Mapping[str, AsoWorkloadIdentity]:
        from pulumi_azure_native.resources import ResourceGroup

        from components.aso_credentials.identity import AsoWorkloadIdentity, AsoWorkloadIdentityArgs

        section = self._section
        groups = {
            name: ResourceGroup(
                f"{name}-group",
                resource_group_name=name,
                location=group.location,
                tags=group.tags or None,
                opts=self._in_azure(group.subscription_id),
            )
            for name, group in section.resource_groups.items()
        }
        declared: dict[str, AsoWorkloadIdentity] = {}
        for name, identity in section.identities.items():
            location = section.location_of(identity)
            if location is None:
                raise TypeError(f"settings let identity {name} through without a location")
            group = groups.get(identity.resource_group)
            args = AsoWorkloadIdentityArgs(
                identity=identity,
                resource_group=group.name if group else identity.resource_group,
                location=location,
                federations=section.federations(name),
                groups=[*groups.values()],
            )
            declared[name] = AsoWorkloadIdentity(
                name, args, self._in_azure(section.subscription_of(identity))
            )
        return declared

    def _in_azure(self, subscription: str | None) -> pulumi.ResourceOptions:
        """Return options for resources in a subscription; its provider is created at first use."""
        from components.providers import azure_provider

        own = pulumi.Config("azure-native").get("subscriptionId")
        named = None if subscription in (None, own) else subscription
        if named not in self._azure:
            provider = pulumi.ResourceOptions(providers=[azure_provider(self._opts, named)])
            self._azure[named] = pulumi.ResourceOptions.merge(self._opts, provider)
        return self._azure[named]

    def _operator_pin(self) -> Iterator[OperatorPin]:
        """Yield a pin of the operator if the stack writes its settings or makes identities that trust it."""
        section = self._section
        trusted = section.trusted()
        if trusted or section.global_settings is not None:
            args = OperatorPinArgs(
                namespace=section.operator.namespace,
                account=section.operator.service_account,
                trusted=trusted,
                allow_change=section.operator.allow_trust_change,
                place=section.place(),
            )
            yield OperatorPin("aso-operator", args, self._opts)

    def _service_accounts(self) -> Mapping[tuple[str, str], AsoServiceAccount]:
        return {
            (namespace, account): AsoServiceAccount(
                f"{namespace}/{account}",
                AsoServiceAccountArgs(
                    namespace=self._declared.namespace(namespace),
                    account=account,
                    operator_namespace=self._section.operator.namespace,
                    operator_account=self._section.operator.service_account,
                ),
                self._opts,
            )
            for namespace, account in self._section.strict_accounts()
        }

    def settings(self, given: GlobalSettings) -> AsoSecret:
        operator = self._section.operator
        if (entry := self._section.global_entry()) is not None:
            args = self._args(entry, lambda own: given.data(operator, own))
        else:
            args = AsoSecretArgs(
                namespace=self._declared.namespace(operator.namespace),
                secret_name=GLOBAL_SETTINGS,
                data=given.data(operator, {}),
                subscription=None,
                place=self._section.place("globalSettings"),
            )
        args = replace(args, after=[*args.after, *self._pins])
        return AsoGlobalSettings("aso", args, self._opts)

    def credential(self, entry: Entry) -> AsoSecret:
        of_namespace = entry.secret.name == NAMESPACE_SECRET
        kind = AsoNamespaceCredential if of_namespace else AsoResourceCredential
        named = known_as(entry.key, entry.previously)
        return kind(entry.key, self._args(entry, dict), pulumi.ResourceOptions.merge(self._opts, named))

    def _args(self, entry: Entry, whole: Callable[[Data], Data]) -> AsoSecretArgs:
        """Return the arguments of a Secret. `whole`: adds the Secret's other settings to a credential."""
        after: list[pulumi.Resource] = []
        if entry.credential.workload_identity is not None:
            identity, account = self._identity_of(entry.credential), self._accounts.get(entry.account)
            after = [*(identity.trusted if identity else ()), *(account.trusted if account else ())]
        args = AsoSecretArgs(
            namespace=self._declared.namespace(entry.secret.namespace),
            secret_name=entry.secret.name,
            data=self._data(entry).apply(whole),
            subscription=entry.credential.method.subscription_id,
            place=entry.place,
            allow_subscription_change=entry.credential.allow_subscription_change,
            after=after,
        )
        return self._composed(entry, args, whole) if entry.credential.is_referred else args

    def _composed(self, entry: Entry, args: AsoSecretArgs, whole: Callable[[Data], Data]) -> AsoSecretArgs:
        """Compose the Secret from external references, which are in the cluster."""
        sources, waits = zip(
            *(
                self._declared.source(source, f"{entry.place}.servicePrincipal.{key}")
                for key, source in entry.credential.sources.items()
            ),
            strict=True,
        )
        own, proofs = entry.credential.plain()
        plain = {key: value.decode() for key, value in whole(own).items()}
        strict = entry.secret != self._section.global_name and self._section.operator.strict
        composed = AsoProjectionArgs(
            namespace=args.namespace,
            target_name=args.secret_name,
            owner=current_holder(self._section.KEY, first_name(entry.key, entry.previously)),
            sources=source_inputs(sources),
            recipe={
                "plain": plain,
                "proofs": proofs,
                "settings": sorted(plain.keys() - own.keys()),
                "strict": strict,
            },
        )
        self.waiting[f"ASO credential {entry.key}"] = join_reasons(waits)
        return replace(args, composed=composed, waits=join_reasons(waits))

    def _identity_of(self, credential: AsoCredential) -> AsoWorkloadIdentity | None:
        given = credential.workload_identity
        return self.identities[given.identity] if given and given.identity else None

    def _data(self, entry: Entry) -> pulumi.Output[Data]:
        """Return a Secret's data from the configuration's secrets and the ids of its Azure identity."""
        credential, known = entry.credential, self._context.credentials
        if credential.is_referred:
            return pulumi.Output.from_input({})
        contents = pulumi.Output.all(*(known.secret(name, bytes) for name in credential.entries))
        identity = self._identity_of(credential)
        if identity is None:
            return contents.apply(credential.data)
        return pulumi.Output.all(contents, identity.tenant_id, identity.client_id).apply(
            lambda all_: credential.data(all_[0], tenant=all_[1], client=all_[2])
        )

    def resources(
        self, declared: Mapping[SecretRef, pulumi.Input[Sequence[pulumi.Resource]]]
    ) -> Mapping[str, str]:
        """Declare the resources of each file after the Secrets that serve them; warn about surprises.

        `declared`: what a resource must be deleted before, by the Secret that serves it.
        """
        behind: dict[SecretRef | None, _Behind] = {
            secret: (first, None) for secret, first in declared.items()
        }
        for name, account in self._context.accounts.items():
            if account.delivery is not None:
                copy = self._declared.deliveries[name].apply(lambda made: [made] if made else [])
                secret = SecretRef(account.namespace, account.delivery.target)
                behind.setdefault(secret, (copy, self._declared.waits(name)))
        found, problems = self._section.read_resources(self._context.root)
        if problems:
            raise TypeError(f"settings let resources through that cannot be read: {problems[0].problem}")
        resolved = self._section.resolved(found, self._context)
        for entry, group in groupby(resolved, key=lambda pair: pair[0].entry):
            args = [
                AsoResourceArgs(
                    name=str(one.resource),
                    manifest=one.manifest,
                    namespace=self._declared.namespace(one.resource.namespace),
                    credential=one.credential,
                    outlives=outlives,
                    waits=waits,
                )
                for one, resolution in group
                for outlives, waits in [behind.get(resolution.secret, ((), None))]
            ]
            self.waiting |= {f"resource {one.name}": one.waits for one in args if one.waits is not None}
            cluster = ClusterTarget.parse(pulumi.Config("credfleet").get("cluster"))
            AsoResources(entry, AsoResourcesArgs(resources=args, cluster=cluster), self._opts)
        for one, resolution in resolved:
            for hint in resolution.hints:
                pulumi.log.warn(f"{one.place} {one.resource}: {hint}")
        return {one.name: str(resolution.secret) for one, resolution in resolved}
