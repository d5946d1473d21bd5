"""The resources that are served: where they are, what goes into them, what comes out."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import UNKNOWN, Path, Properties, Value, contains_unknown, equal, mapping
from pulumi_sandbox.providers.contract import InputDiff, Problem, State, already_exists
from pulumi_sandbox.providers.dispatch import ResourceKind
from pulumi_sandbox.providers.inputs import Input, changes, declared, missing_options, problems
from pulumi_sandbox.providers.rest import Rest, ask, ask_for

VARIABLE: Final = "ARM_METADATA_HOSTNAME"
"""What the genuine provider reads as well where the option is not given."""
_REQUIRED: Final = {
    "metadataHost": "the sandbox reaches no real Azure; set it to an emulator (127.0.0.1:PORT), "
    "or use the Pulumi CLI",
    "subscriptionId": "no subscription is given; set azure-native:subscriptionId in the stack",
}


@dataclass(frozen=True, slots=True)
class AzureOptions:
    """The options of one provider; `authority` is the file of the CA that the emulator is trusted by."""

    metadata_host: str
    subscription: str
    location: str = ""
    authority: str = ""


def judge_options(config: Properties) -> list[Problem]:
    """List what is missing; who asks does not count, as an emulator takes any token."""
    named = {"metadataHost": os.environ[VARIABLE]} if os.environ.get(VARIABLE) else {}
    return missing_options({**named, **config}, _REQUIRED)


def read(given: Mapping[str, str]) -> AzureOptions:
    """Read the options from what Configure is given; the CA is named by SSL_CERT_FILE, as for Go programs."""
    return AzureOptions(
        metadata_host=given.get("metadataHost") or os.environ.get(VARIABLE, ""),
        subscription=given.get("subscriptionId", ""),
        location=given.get("location", ""),
        authority=os.environ.get("SSL_CERT_FILE", ""),
    )


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
                problem="it is not an id of such a resource",
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
            "resourceGroupName": _PART_OF_ID,
            "tags": Input(),
        },
        envelope=frozenset({"location", "tags"}),
        outputs=frozenset({"location", "name", "properties", "tags", "type"}),
    ),
    "azure-native:managedidentity:UserAssignedIdentity": Resource(
        path=_IDENTITY,
        api_version="2023-01-31",
        schema={
            "location": _LOCATION,
            "resourceGroupName": _PART_OF_ID,
            "resourceName": _PART_OF_ID,
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
            "federatedIdentityCredentialResourceName": _PART_OF_ID,
            "issuer": Input(required=True),
            "resourceGroupName": _PART_OF_ID,
            "resourceName": _PART_OF_ID,
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
            "roleAssignmentName": _PART_OF_ID,
            "roleDefinitionId": Input(required=True),
            "scope": _PART_OF_ID,
        },
        envelope=frozenset(),
        outputs=frozenset(
            (
                *("createdOn", "name", "principalId", "principalType"),
                *("roleDefinitionId", "scope", "type", "updatedOn"),
            )
        ),
    ),
}


def to_api(resource: Resource, inputs: Properties) -> Properties:
    """Return the body of a write: what forms the id is not in it."""
    own = {
        key: value
        for key, value in inputs.items()
        if key in resource.schema and key not in resource.parameters
    }
    body = {key: value for key, value in own.items() if key in resource.envelope}
    properties: Properties = {key: value for key, value in own.items() if key not in resource.envelope}
    return {**body, "properties": properties} if properties else body


def outputs(resource: Resource, answer: Properties) -> Properties:
    """Return what an answer tells, `properties` laid flat."""
    told = {**answer, **mapping(answer.get("properties"))}
    shown: Properties = {
        key: value for key, value in told.items() if key in resource.outputs and value is not None
    }
    return {**shown, "azureApiVersion": resource.api_version}


def previewed(resource: Resource, inputs: Properties, recorded: Properties) -> Properties:
    """Return the outputs before a write: inputs, `name` and `location` as recorded, the rest unknown."""
    shown: Properties = {key: inputs.get(key, UNKNOWN) for key in resource.outputs}
    kept = {key: recorded[key] for key in ("name", "location") if key in recorded}
    return {**shown, **kept, "azureApiVersion": resource.api_version}


def live_inputs(resource: Resource, inputs: Properties, before: Properties, now: Properties) -> Properties:
    """Return the inputs with what changed in the outputs since they were recorded.

    What the service filled in by itself thereby stays out of the inputs, as long as it is not changed.
    """
    live = dict(inputs)
    for key in resource.schema.keys() & resource.outputs - resource.parameters:
        if equal(before.get(key), now.get(key)):
            continue
        if now.get(key) is None:
            live.pop(key, None)
        else:
            live[key] = now[key]
    return live


def imported(resource: Resource, id_: str, now: Properties) -> Properties:
    """Return the inputs of a resource that is known by its id alone."""
    own = resource.schema.keys() & now.keys()
    return {
        **resource.parsed(id_),
        **{key: now[key] for key in sorted(own) if now[key] != {}},
        "azureApiVersion": resource.api_version,
    }


class AzureKind(ResourceKind):
    """The resources of one type in one subscription."""

    def __init__(self, api: Rest, options: AzureOptions, resource: Resource) -> None:
        self._api = api
        self._options = options
        self._resource = resource

    def check(self, old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Fill in location and version of the API; judge what is required."""
        resource = self._resource
        inputs = {**declared(new), "azureApiVersion": resource.api_version}
        if "location" in resource.schema and inputs.get("location") is None:
            location = old.get("location") or self._options.location or self._group_location(inputs)
            inputs |= {"location": location} if location else {}
        return inputs, problems(_comparable(inputs), resource.schema)

    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare the inputs; a resource goes before its successor of the same name comes."""
        before, after = _comparable(old.inputs), _comparable(new)
        if _normal(before.get("location")) == _normal(after.get("location")):
            after["location"] = before.get("location")
        found = changes(before, after, self._resource.schema, ignored)
        return InputDiff(found, delete_first=True)

    def preview_create(self, new: Properties) -> Properties:
        """Return the inputs, and what only the service knows as unknown."""
        return previewed(self._resource, new, {})

    def create(self, urn: str, new: Properties) -> State:
        """Create the resource; one that is there already is an error, since a PUT would take it over."""
        id_ = self._resource.id(self._options.subscription, new)
        if self._get(id_) is not None:
            raise already_exists(urn, id_)
        answer = self._put("create", id_, new)
        made = answer.get("id")
        return State(made if isinstance(made, str) else id_, outputs(self._resource, answer), {})

    def preview_update(self, old: State, new: Properties) -> Properties:
        """Return the inputs, name and location as they are, and the rest as unknown."""
        return previewed(self._resource, new, old.outputs)

    def update(self, old: State, new: Properties) -> Properties:
        """Write the resource as a whole."""
        return outputs(self._resource, self._put("update", old.id, new))

    def read(self, old: State) -> State | None:
        """Return the live resource; without old inputs its id tells what it is formed by."""
        self._resource.parsed(old.id)
        answer = self._get(old.id)
        if answer is None:
            return None
        now = outputs(self._resource, answer)
        inputs = (
            live_inputs(self._resource, old.inputs, old.outputs, now)
            if old.inputs
            else imported(self._resource, old.id, now)
        )
        return State(old.id, now, inputs)

    def delete(self, old: State) -> None:
        """Delete the resource; one that is gone already is fine."""
        ask_for(self._api, "delete", old.id, "DELETE", old.id, query=self._query)

    @property
    def _query(self) -> dict[str, str]:
        return {"api-version": self._resource.api_version}

    def _get(self, id_: str) -> Properties | None:
        return ask_for(self._api, "read", id_, "GET", id_, query=self._query)

    def _put(self, operation: str, id_: str, new: Properties) -> Properties:
        body = to_api(self._resource, new)
        return ask(self._api, operation, id_, "PUT", id_, query=self._query, body=body)

    def _group_location(self, inputs: Properties) -> Value:
        """Return where the resource group is; None when there is no such group, as yet."""
        group = inputs.get("resourceGroupName")
        if "resourceName" not in self._resource.parameters or group is None:
            return None
        if contains_unknown(group):
            return UNKNOWN
        groups = RESOURCES["azure-native:resources:ResourceGroup"]
        id_ = groups.id(self._options.subscription, {"resourceGroupName": group})
        found = AzureKind(self._api, self._options, groups)._get(id_)
        return None if found is None else found.get("location")


def _comparable(inputs: Properties) -> Properties:
    return {key: value for key, value in declared(inputs).items() if key != "azureApiVersion"}


def _normal(location: Value) -> Value:
    """Return a location without case and blanks, which do not count."""
    return location.replace(" ", "").lower() if isinstance(location, str) else location
