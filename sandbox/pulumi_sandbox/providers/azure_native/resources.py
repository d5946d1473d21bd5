"""The supported resources: their paths, inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import (
    UNKNOWN,
    Path,
    Properties,
    Value,
    equal,
    mapping,
    text,
)
from pulumi_sandbox.providers.contract import (
    Input,
    InputDiff,
    Problem,
    ResourceKind,
    State,
    already_exists,
    changes,
    declared,
    problems,
)
from pulumi_sandbox.providers.rest import Rest

_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_SUBSCRIPTION: Final = "subscription"


@dataclass(frozen=True)
class Resource:
    """A resource type.

    path: the ID as a template of inputs; `subscription` is the provider's. envelope: the inputs that are
    beside `properties` in a request body. outputs: properties taken from responses, whose `properties` are
    flattened.
    """

    path: str
    api_version: str
    schema: Mapping[str, Input]
    envelope: frozenset[str]
    outputs: frozenset[str]

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The inputs that form the ID."""
        return frozenset(_PARAMETER.findall(self.path)) - {_SUBSCRIPTION}

    def id(self, subscription: str, inputs: Properties) -> str:
        """Return the ID that the inputs form."""
        given = {_SUBSCRIPTION: subscription, **inputs}
        return _PARAMETER.sub(lambda found: str(given[found[1]]).strip("/"), self.path)

    def parsed(self, id_: str) -> Properties:
        """Return the inputs that form an ID, which can be in any case.

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
                problem="it is not an id of such a resource",
                fix=f"write {self.path}",
            )
        return {key: value for key, value in found.groupdict().items() if key != _SUBSCRIPTION}


_GROUP: Final = "/subscriptions/{subscription}/resourceGroups/{resourceGroupName}"
_IDENTITY: Final = f"{_GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{{resourceName}}"
_FIXED: Final = Input(required=True, replaces=True)

RESOURCES: Final[Mapping[str, Resource]] = {
    "azure-native:resources:ResourceGroup": Resource(
        path=_GROUP,
        api_version="2024-03-01",
        schema={"location": _FIXED, "resourceGroupName": _FIXED, "tags": Input()},
        envelope=frozenset({"location", "tags"}),
        outputs=frozenset({"location", "name", "properties", "tags", "type"}),
    ),
    "azure-native:managedidentity:UserAssignedIdentity": Resource(
        path=_IDENTITY,
        api_version="2023-01-31",
        schema={
            "location": _FIXED,
            "resourceGroupName": _FIXED,
            "resourceName": _FIXED,
            "tags": Input(),
        },
        envelope=frozenset({"location", "tags"}),
        outputs=frozenset({"clientId", "location", "name", "principalId", "tags", "tenantId", "type"}),
    ),
    "azure-native:managedidentity:FederatedIdentityCredential": Resource(
        path=f"{_IDENTITY}/federatedIdentityCredentials/{{federatedIdentityCredentialResourceName}}",
        api_version="2023-01-31",
        schema={
            "audiences": Input(required=True),
            "federatedIdentityCredentialResourceName": _FIXED,
            "issuer": Input(required=True),
            "resourceGroupName": _FIXED,
            "resourceName": _FIXED,
            "subject": Input(required=True),
        },
        envelope=frozenset(),
        outputs=frozenset({"audiences", "issuer", "name", "subject", "type"}),
    ),
    "azure-native:authorization:RoleAssignment": Resource(
        path="/{scope}/providers/Microsoft.Authorization/roleAssignments/{roleAssignmentName}",
        api_version="2022-04-01",
        schema={
            "principalId": Input(required=True, replaces=True),
            "principalType": Input(),
            "roleAssignmentName": _FIXED,
            "roleDefinitionId": Input(required=True),
            "scope": _FIXED,
        },
        envelope=frozenset(),
        outputs=frozenset(
            [
                "createdOn",
                "name",
                "principalId",
                "principalType",
                "roleDefinitionId",
                "scope",
                "type",
                "updatedOn",
            ]
        ),
    ),
}


def previewed(resource: Resource, inputs: Properties, recorded: Properties) -> Properties:
    """Return the outputs before a write: inputs, recorded `name` and `location`, the rest unknown."""
    shown: Properties = {key: inputs.get(key, UNKNOWN) for key in resource.outputs}
    kept = {key: recorded[key] for key in ("name", "location") if key in recorded}
    return {**shown, **kept, "azureApiVersion": resource.api_version}


class AzureKind(ResourceKind):
    """Resources of one type in one subscription. location: the default location."""

    def __init__(self, api: Rest, subscription: str, location: str, resource: Resource) -> None:
        self._api = api
        self._subscription = subscription
        self._location = location
        self._resource = resource
        self._query = {"api-version": resource.api_version}

    def check(self, old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Add location and API version to the inputs; return the problems of the inputs."""
        resource = self._resource
        inputs = {**declared(new), "azureApiVersion": resource.api_version}
        if "location" in resource.schema and inputs.get("location") is None:
            location = old.get("location") or self._location
            inputs |= {"location": location} if location else {}
        return inputs, problems(_comparable(inputs), resource.schema)

    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare the inputs; a replaced resource is deleted before its successor is created."""
        before, after = _comparable(old.inputs), _comparable(new)
        if _normal(before.get("location")) == _normal(after.get("location")):
            after["location"] = before.get("location")
        found = changes(before, after, self._resource.schema, ignored)
        return InputDiff(found, delete_first=True)

    def preview_create(self, new: Properties) -> Properties:
        """Return the inputs; values known only to the service are unknown."""
        return previewed(self._resource, new, {})

    def create(self, urn: str, new: Properties) -> State:
        """Create the resource; an existing one is an error, since a PUT would take it over."""
        id_ = self._resource.id(self._subscription, new)
        if self._get(id_) is not None:
            raise already_exists(urn, id_)
        answer = self._put("create", id_, new)
        return State(text(answer.get("id")) or id_, self._outputs(answer), {})

    def preview_update(self, old: State, new: Properties) -> Properties:
        """Return the inputs and the recorded name and location; the rest is unknown."""
        return previewed(self._resource, new, old.outputs)

    def update(self, old: State, new: Properties) -> Properties:
        """Write the whole resource."""
        return self._outputs(self._put("update", old.id, new))

    def read(self, old: State) -> State | None:
        """Return the live resource; without old inputs they are derived from its ID.

        Values that the service set itself are not added to the inputs unless they changed.
        """
        resource, formed = self._resource, self._resource.parsed(old.id)
        answer = self._get(old.id)
        if answer is None:
            return None
        now = self._outputs(answer)
        own = sorted(resource.schema.keys() & resource.outputs)
        if not old.inputs:
            shown = {key: now[key] for key in own if now.get(key) not in (None, {})}
            return State(old.id, now, {**formed, **shown, "azureApiVersion": resource.api_version})
        drifted = {
            key: now.get(key)
            for key in own
            if key not in resource.parameters and not equal(old.outputs.get(key), now.get(key))
        }
        inputs: Properties = {
            key: value for key, value in {**old.inputs, **drifted}.items() if value is not None
        }
        return State(old.id, now, inputs)

    def delete(self, old: State, _seconds: float) -> None:
        """Delete the resource; one that does not exist is fine."""
        self._api.ask_for("delete", old.id, "DELETE", query=self._query)

    def _get(self, id_: str) -> Properties | None:
        return self._api.ask_for("read", id_, "GET", query=self._query)

    def _put(self, operation: str, id_: str, new: Properties) -> Properties:
        """Write all inputs that do not form the ID."""
        resource = self._resource
        own = {key: new[key] for key in new if key in resource.schema and key not in resource.parameters}
        body: Properties = {key: value for key, value in own.items() if key in resource.envelope}
        if properties := {key: value for key, value in own.items() if key not in resource.envelope}:
            body["properties"] = properties
        return self._api.ask(operation, id_, "PUT", query=self._query, body=body)

    def _outputs(self, answer: Properties) -> Properties:
        """Return the outputs in a response, with `properties` flattened."""
        told = {**answer, **mapping(answer.get("properties"))}
        shown: Properties = {
            key: value for key, value in told.items() if key in self._resource.outputs and value is not None
        }
        return {**shown, "azureApiVersion": self._resource.api_version}


def _comparable(inputs: Properties) -> Properties:
    return {key: value for key, value in declared(inputs).items() if key != "azureApiVersion"}


def _normal(location: Value) -> Value:
    """Return a location in lower case without spaces, which are irrelevant."""
    return location.replace(" ", "").lower() if isinstance(location, str) else location
