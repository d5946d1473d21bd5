"""One type of Azure resources: written as a whole (PUT), known by its id."""

from __future__ import annotations

from pulumi_sandbox.protocol.values import UNKNOWN, Path, Properties, Value, contains_unknown, equal
from pulumi_sandbox.providers.azure_native.options import AzureOptions
from pulumi_sandbox.providers.azure_native.resources import RESOURCES, Resource
from pulumi_sandbox.providers.contract import InputDiff, Problem, State, already_exists
from pulumi_sandbox.providers.dispatch import ResourceKind
from pulumi_sandbox.providers.inputs import changes, declared, problems
from pulumi_sandbox.providers.rest import Rest, ask, ask_for


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
    nested = answer.get("properties")
    told = {**answer, **(nested if isinstance(nested, dict) else {})}
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

    What the service filled in by itself thereby stays out of the inputs, as long as nobody changes it.
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


_OWN_INPUTS = frozenset({"azureApiVersion"})


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
        if resource.is_located and inputs.get("location") is None:
            location = old.get("location") or self._options.location or self._group_location(inputs)
            inputs |= {"location": location} if location else {}
        own = {key: value for key, value in inputs.items() if key not in _OWN_INPUTS}
        return inputs, problems(own, resource.schema)

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
    return {key: value for key, value in declared(inputs).items() if key not in _OWN_INPUTS}


def _normal(location: Value) -> Value:
    """Return a location without case and blanks, which do not count."""
    return location.replace(" ", "").lower() if isinstance(location, str) else location
