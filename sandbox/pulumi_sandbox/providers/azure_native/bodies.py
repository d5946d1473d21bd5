"""What a resource looks like on the wire, and how that is told to the engine."""

from pulumi_sandbox.protocol.values import UNKNOWN, Properties, equal
from pulumi_sandbox.providers.azure_native.resources import Resource


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
