"""Azure side of workload identity.

Owns the managed identity, its federated credentials and its role assignments. The Secrets with its *client*
id are in component.py: one identity serves several of them, and a Secret outlives its method.
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
    """Managed identity as configured.

    `resource_group`: its group, as an output of the resource. `federations`: name → trusted ServiceAccount.
    `groups`: resource groups in the scopes of roles, which Azure must create first.
    """

    identity: Identity
    resource_group: pulumi.Input[str]
    location: str
    federations: Mapping[str, Federation] = field(default_factory=dict[str, Federation])
    groups: Sequence[pulumi.Resource] = ()


class AsoWorkloadIdentity(pulumi.ComponentResource):
    """Managed identity, by its name, that ServiceAccounts of a cluster can use.

    Outputs: clientId, for credentials; principalId, for role assignments; tenantId. `trusted`: resources that
    must exist before a token can be obtained.
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
        """Create the federated credentials in sequence: Azure rejects parallel writes under one identity."""
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
        """Assign the roles; without the principal's type, a new identity would not be found."""
        # the name stays if the principal is new
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
