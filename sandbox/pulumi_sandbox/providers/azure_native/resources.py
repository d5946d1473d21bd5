"""The resources that are served: where they are, what goes into them, what comes out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers.inputs import Input

_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_SUBSCRIPTION: Final = "subscription"


@dataclass(frozen=True)
class Resource:
    """One type of resources.

    path: its id with the inputs in it that form it; `subscription` is the provider's. envelope: the
    inputs that stand beside `properties` in a body. outputs: what its answers tell, all that is in
    `properties` laid flat.
    """

    path: str
    api_version: str
    schema: Mapping[str, Input]
    envelope: frozenset[str]
    outputs: frozenset[str]

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The inputs that form the id."""
        return frozenset(_PARAMETER.findall(self.path)) - {_SUBSCRIPTION}

    @property
    def is_located(self) -> bool:
        """Whether it lies in a region."""
        return "location" in self.schema

    def id(self, subscription: str, inputs: Properties) -> str:
        """Return the id that the inputs form."""
        given = {_SUBSCRIPTION: subscription, **inputs}
        return _PARAMETER.sub(lambda found: str(given[found[1]]).strip("/"), self.path)

    def parsed(self, id_: str) -> Properties:
        """Return the inputs that an id is formed by, whatever its case.

        Raises SandboxError `id-invalid`.
        """
        pattern = _PARAMETER.sub(
            lambda found: f"(?P<{found[1]}>{'.+' if found[1] == 'scope' else '[^/]+'})", self.path
        )
        found = re.fullmatch(pattern, id_, re.IGNORECASE)
        if found is None:
            raise SandboxError(
                code="id-invalid",
                place=id_,
                problem="it is no id of such a resource",
                fix=f"write {self.path}",
            )
        return {key: value for key, value in found.groupdict().items() if key != _SUBSCRIPTION}


_GROUP: Final = "/subscriptions/{subscription}/resourceGroups/{resourceGroupName}"
_IDENTITY: Final = f"{_GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{{resourceName}}"
_PART_OF_ID: Final = Input(required=True, replaces=True)
_LOCATION: Final = Input(required=True, replaces=True)

RESOURCES: Final[Mapping[str, Resource]] = {
    "azure-native:resources:ResourceGroup": Resource(
        path=_GROUP,
        api_version="2024-03-01",
        schema={
            "location": _LOCATION,
            "managedBy": Input(),
            "resourceGroupName": _PART_OF_ID,
            "tags": Input("map"),
        },
        envelope=frozenset({"location", "managedBy", "tags"}),
        outputs=frozenset({"location", "managedBy", "name", "properties", "tags", "type"}),
    ),
    "azure-native:managedidentity:UserAssignedIdentity": Resource(
        path=_IDENTITY,
        api_version="2023-01-31",
        schema={
            "location": _LOCATION,
            "resourceGroupName": _PART_OF_ID,
            "resourceName": _PART_OF_ID,
            "tags": Input("map"),
        },
        envelope=frozenset({"location", "tags"}),
        outputs=frozenset(
            {"clientId", "location", "name", "principalId", "systemData", "tags", "tenantId", "type"}
        ),
    ),
    "azure-native:managedidentity:FederatedIdentityCredential": Resource(
        path=f"{_IDENTITY}/federatedIdentityCredentials/{{federatedIdentityCredentialResourceName}}",
        api_version="2023-01-31",
        schema={
            "audiences": Input("texts", required=True),
            "federatedIdentityCredentialResourceName": _PART_OF_ID,
            "issuer": Input(required=True),
            "resourceGroupName": _PART_OF_ID,
            "resourceName": _PART_OF_ID,
            "subject": Input(required=True),
        },
        envelope=frozenset(),
        outputs=frozenset({"audiences", "issuer", "name", "subject", "systemData", "type"}),
    ),
    "azure-native:authorization:RoleAssignment": Resource(
        path="/{scope}/providers/Microsoft.Authorization/roleAssignments/{roleAssignmentName}",
        api_version="2022-04-01",
        schema={
            "principalId": Input(required=True, replaces=True),
            "principalType": Input(),
            "roleAssignmentName": _PART_OF_ID,
            "roleDefinitionId": Input(required=True),
            "scope": _PART_OF_ID,
        },
        envelope=frozenset(),
        outputs=frozenset(
            {
                "createdBy",
                "createdOn",
                "name",
                "principalId",
                "principalType",
                "roleDefinitionId",
                "scope",
                "systemData",
                "type",
                "updatedBy",
                "updatedOn",
            }
        ),
    ),
}
