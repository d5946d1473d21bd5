"""Whom Azure and the cluster must know before Azure Service Operator can use a workload identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi

from components.aso_credentials.keys import STRICT_ACCOUNT
from components.aso_credentials.service_account import AsoServiceAccount, AsoServiceAccountArgs
from components.settings.aso_contents import federations
from components.settings.aso_credentials import AsoCredentials, Entry
from components.wiring.declared import Declared

if TYPE_CHECKING:
    from components.aso_credentials.identity import AsoWorkloadIdentity


@dataclass(frozen=True, slots=True)
class Trust:
    """The identities of a stack by name, and the ServiceAccounts of strict mode by namespace and name."""

    identities: Mapping[str, AsoWorkloadIdentity]
    accounts: Mapping[tuple[str, str], AsoServiceAccount]

    @classmethod
    def declare(cls, section: AsoCredentials, declared: Declared, opts: pulumi.ResourceOptions) -> Trust:
        """Declare all of them; the provider of Azure is made only if there is an identity or a group."""
        azure = section.identities or section.resource_groups
        return cls(
            identities=_declare_identities(section, opts) if azure else {},
            accounts=_declare_accounts(section, declared, opts) if section.operator.strict else {},
        )

    def identity_of(self, entry: Entry) -> AsoWorkloadIdentity | None:
        """Give the identity of this stack that a credential is for."""
        given = entry.credential.workload_identity
        return self.identities[given.identity] if given and given.identity else None

    def of(self, entry: Entry) -> Sequence[pulumi.Resource]:
        """Tell what a credential stands on."""
        if entry.credential.workload_identity is None:
            return ()
        identity, account = self.identity_of(entry), self.accounts.get(_account(entry))
        return [*(identity.trusted if identity else ()), *(account.trusted if account else ())]


def _declare_identities(
    section: AsoCredentials, opts: pulumi.ResourceOptions
) -> Mapping[str, AsoWorkloadIdentity]:
    from pulumi_azure_native.resources import ResourceGroup

    from components.aso_credentials.identity import (
        AsoWorkloadIdentity,
        AsoWorkloadIdentityArgs,
        AssignedRole,
    )
    from components.providers import azure_provider

    provider = azure_provider(opts)
    opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(providers=[provider]))
    groups = {
        name: ResourceGroup(
            f"{name}-group",
            resource_group_name=name,
            location=group.location,
            tags=group.tags or None,
            opts=opts,
        )
        for name, group in section.resource_groups.items()
    }
    declared: dict[str, AsoWorkloadIdentity] = {}
    for name, identity in section.identities.items():
        group = section.resource_groups.get(identity.resource_group)
        location = identity.location or (group and group.location)
        if location is None:
            raise TypeError(f"settings let identity {name} through without a location")
        made = groups.get(identity.resource_group)
        args = AsoWorkloadIdentityArgs(
            identity=name,
            group_name=identity.resource_group,
            resource_group=made.name if made else identity.resource_group,
            location=location,
            tags=identity.tags,
            federations=federations(section, name),
            roles={key: AssignedRole(role.role, role.scope) for key, role in identity.roles.items()},
            groups=[*groups.values()],
        )
        declared[name] = AsoWorkloadIdentity(name, args, opts)
    return declared


def _declare_accounts(
    section: AsoCredentials, declared: Declared, opts: pulumi.ResourceOptions
) -> Mapping[tuple[str, str], AsoServiceAccount]:
    wanted = {_account(entry): None for entry in section.entries() if entry.credential.workload_identity}
    return {
        (namespace, account): AsoServiceAccount(
            f"{namespace}/{account}",
            AsoServiceAccountArgs(
                namespace=declared.namespace(namespace),
                account=account,
                operator_namespace=section.operator.namespace,
            ),
            opts,
        )
        for namespace, account in wanted
    }


def _account(entry: Entry) -> tuple[str, str]:
    given = entry.credential.workload_identity
    account = given.service_account if given else None
    return entry.secret.namespace, account or STRICT_ACCOUNT
