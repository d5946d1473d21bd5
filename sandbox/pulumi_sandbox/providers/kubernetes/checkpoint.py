"""What a resource's outputs hold: the live object, and beside it what the provider needs later.

The form of pulumi-kubernetes 4.34, so that either provider continues the other's state: `__inputs`,
`__fieldManager` and `__initialApiVersion` beside the object, and the dashes of `x-kubernetes-…` as
underscores.
"""

from typing import Final, cast

from pulumi_sandbox.protocol.values import Properties, Value, conceal, conceal_like, reveal, text
from pulumi_sandbox.providers.kubernetes import folding, objects

_INPUTS: Final = "__inputs"
_FIELD_MANAGER: Final = "__fieldManager"
_INITIAL_API_VERSION: Final = "__initialApiVersion"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_DASHED: Final = {
    dashed.replace("-", "_"): dashed
    for dashed in (
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    )
}
_UNDERSCORED: Final = {dashed: underscored for underscored, dashed in _DASHED.items()}


def plain(properties: Properties) -> Properties:
    """Return what a program or the state gave in the API's own form: without secrets, with dashes, folded."""
    return folding.folded(cast(Properties, _renamed(reveal(properties), _DASHED)))


def concealed(obj: Properties, model: Properties) -> Properties:
    """Return an object for the engine: what is secret in `model`, and a Secret's data, is secret again.

    So is a copy of these that kubectl leaves in an annotation.
    """
    shown = conceal_like(obj, model)
    if objects.is_secret(obj):
        shown |= {key: conceal(shown[key]) for key in ("data", "stringData") if key in shown}
        metadata = shown.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        if isinstance(annotations, dict) and _LAST_APPLIED in annotations:
            annotations = {**annotations, _LAST_APPLIED: conceal(annotations[_LAST_APPLIED])}
            shown["metadata"] = {**cast(Properties, metadata), "annotations": annotations}
    return shown


def outputs(
    live: Properties, inputs: Properties, *, model: Properties, field_manager: str, initial_api_version: str
) -> Properties:
    """Return the outputs to record; `model` are the inputs as the program gave them, secrets included."""
    return {
        **concealed(cast(Properties, _renamed(live, _UNDERSCORED)), model),
        _INPUTS: concealed(cast(Properties, _renamed(inputs, _UNDERSCORED)), model),
        _FIELD_MANAGER: field_manager,
        _INITIAL_API_VERSION: initial_api_version,
    }


def live_object(recorded: Properties) -> Properties:
    """Return the object that the outputs hold, in the API's own form."""
    own = {key: value for key, value in recorded.items() if not key.startswith("__")}
    return cast(Properties, _renamed(reveal(own), _DASHED))


def declared(recorded: Properties, old_inputs: Properties) -> Properties:
    """Return the inputs that the outputs were made from, else the given ones, in the API's own form."""
    kept = reveal(recorded.get(_INPUTS))
    return plain(kept if isinstance(kept, dict) else old_inputs)


def field_manager(recorded: Properties) -> str:
    """Return the recorded field manager, empty when there is none."""
    return text(recorded.get(_FIELD_MANAGER))


def initial_api_version(recorded: Properties, inputs: Properties) -> str:
    """Return the apiVersion that the object was created with."""
    return text(recorded.get(_INITIAL_API_VERSION)) or text(inputs.get("apiVersion"))


def _renamed(value: Value, names: dict[str, str]) -> Value:
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    return value
