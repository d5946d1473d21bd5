"""The Azure side of workload identity.

Owns the managed identity, whom it trusts and what it may do. The Secrets that carry its *client* id are those
of component.py, because one identity serves several of them and a Secret outlives its method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pulumi
from pulumi_azure_native.authorization import PrincipalType, RoleAssignment
from pulumi_azure_native.managedidentity import FederatedIdentityCredential, UserAssignedIdentity

from components.aso_credentials.azure import AUDIENCE, Federation, assignment_name, role_definition_id
from components.aso_credentials.settings import Identity
from components.waiting import once_made


@dataclass(frozen=True, slots=True, kw_only=True)
class AsoWorkloadIdentityArgs:
    """A managed identity, by the configuration.

    resource_group: the group it names, as a resource's output says it. federations: name → whom it trusts.
    groups: what is made for the scopes of roles, which Azure must know first.
    """

    identity: Identity
    resource_group: pulumi.Input[str]
    location: str
    federations: Mapping[str, Federation] = field(default_factory=dict[str, Federation])
    groups: Sequence[pulumi.Resource] = ()


class AsoWorkloadIdentity(pulumi.ComponentResource):
    """A managed identity, by its name, that ServiceAccounts of a cluster may use.

    Outputs: clientId, which credentials carry; principalId, which roles are given to; tenantId.
    trusted: what Azure has to know before a token can be had.
    """

    TYPE: ClassVar = "credfleet:index:AsoWorkloadIdentity"
    client_id: pulumi.Output[str]
    principal_id: pulumi.Output[str]
    tenant_id: pulumi.Output[str]
    trusted: Sequence[pulumi.Resource]

    def __init__(
        self, name: str, args: AsoWorkloadIdentityArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        props = {"resourceGroup": args.identity.resource_group, "identity": name}
        super().__init__(self.TYPE, name, props, opts)
        self._name = name
        identity = UserAssignedIdentity(
            f"{name}-identity",
            resource_group_name=args.resource_group,
            resource_name_=name,
            location=args.location,
            tags=args.identity.tags or None,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.client_id = once_made(identity.client_id)
        self.principal_id = once_made(identity.principal_id)
        self.tenant_id = once_made(identity.tenant_id)
        self.trusted = [*self._federate(identity, args), *self._assign(identity, args)]
        self.register_outputs(
            {"clientId": self.client_id, "principalId": self.principal_id, "tenantId": self.tenant_id}
        )

    def _federate(
        self, identity: UserAssignedIdentity, args: AsoWorkloadIdentityArgs
    ) -> Sequence[pulumi.Resource]:
        """Chain the federated credentials: Azure refuses two writes at once under one identity."""
        made: list[pulumi.Resource] = []
        for federation in sorted(args.federations):
            trusted = args.federations[federation]
            made.append(
                FederatedIdentityCredential(
                    f"{self._name}-{federation}-federation",
                    resource_group_name=args.resource_group,
                    resource_name_=identity.name,
                    federated_identity_credential_resource_name=federation,
                    issuer=trusted.issuer,
                    subject=trusted.subject,
                    audiences=[AUDIENCE],
                    opts=pulumi.ResourceOptions(parent=self, depends_on=made[-1:]),
                )
            )
        return made

    def _assign(
        self, identity: UserAssignedIdentity, args: AsoWorkloadIdentityArgs
    ) -> Sequence[pulumi.Resource]:
        """Assign the roles; without the principal's type a new identity would not be found."""
        # the name stays when the principal is a new one
        opts = pulumi.ResourceOptions(parent=self, delete_before_replace=True, depends_on=[*args.groups])
        return [
            RoleAssignment(
                f"{self._name}-{key}-role",
                scope=assigned.scope,
                role_definition_id=role_definition_id(assigned.role, assigned.scope),
                role_assignment_name=assignment_name(
                    assigned.scope, assigned.role, f"{args.identity.resource_group}/{self._name}"
                ),
                principal_id=identity.principal_id,
                principal_type=PrincipalType.SERVICE_PRINCIPAL,
                opts=opts,
            )
            for key, assigned in args.identity.roles.items()
        ]
