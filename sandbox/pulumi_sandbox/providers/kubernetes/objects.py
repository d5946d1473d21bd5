"""Kubernetes objects as plain values: kinds, names, metadata, and their recorded form."""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Final

from pulumi_sandbox.protocol.values import Properties, Value, conceal_keys, contains_unknown, mapping, text

_NOT_KINDS: Final = ("helm.sh/", "yaml", "kustomize")


@dataclass(frozen=True, slots=True)
class KubernetesKind:
    """A kind as the API serves it; `plural` is its name in paths."""

    api_version: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of one object, or of the collection without a name."""
        place = f"/namespaces/{namespace or 'default'}" if self.namespaced else ""
        return f"{group_path(self.api_version)}{place}/{self.plural}" + (f"/{name}" if name else "")


def group_path(api_version: str) -> str:
    """Return the path under which a group and version is served."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def of_type(type_token: str) -> tuple[str, str]:
    """Return apiVersion and kind of `kubernetes:GROUP/VERSION:KIND`."""
    _, module, kind = type_token.split(":")
    return module.removeprefix("core/"), kind


def is_served(type_token: str) -> bool:
    """Return whether a type is a kind of objects, unlike charts, definitions, lists and patches."""
    package, _, rest = type_token.partition(":")
    module, _, kind = rest.partition(":")
    is_kind = package == "kubernetes" and "/" in module and not module.startswith(_NOT_KINDS)
    is_special = is_built_in(module.removeprefix("core/")) and kind.endswith(("List", "Patch", "Definition"))
    return is_kind and not is_special


def is_built_in(api_version: str) -> bool:
    """Return whether Kubernetes itself defines the kinds of this group and version."""
    group = api_version.rpartition("/")[0]
    return "." not in group or group.endswith(".k8s.io")


def metadata(obj: Properties) -> Properties:
    """Return the metadata, empty if absent or unknown."""
    return mapping(obj.get("metadata"))


def name(obj: Properties) -> str:
    """Return `.metadata.name`, empty if absent or unknown."""
    return text(metadata(obj).get("name"))


def namespace(obj: Properties) -> str:
    """Return `.metadata.namespace`, empty if absent or unknown."""
    return text(metadata(obj).get("namespace"))


def with_metadata(obj: Properties, **changes: Value) -> Properties:
    """Return the object with these keys of its metadata set; None removes a key."""
    changed = {**metadata(obj), **changes}
    return {**obj, "metadata": {key: value for key, value in changed.items() if value is not None}}


def without_status(obj: Properties) -> Properties:
    """Return the object without its status."""
    return {key: value for key, value in obj.items() if key != "status"}


def merged(below: Properties, above: Properties) -> Properties:
    """Return objects merged deeply, with priority for `above`; `data` is not merged."""
    joined = dict(below)
    for key, value in above.items():
        known = joined.get(key)
        is_deep = isinstance(known, dict) and isinstance(value, dict) and key != "data"
        joined[key] = merged(mapping(known), mapping(value)) if is_deep else value
    return joined


def is_secret(obj: Properties) -> bool:
    """Return whether the object is a Secret."""
    return (obj.get("apiVersion"), obj.get("kind")) == ("v1", "Secret")


def object_id(obj: Properties) -> str:
    """Return the ID of the object's resource: `namespace/name`, or `name` if cluster-scoped."""
    where, called = namespace(obj), name(obj)
    return f"{where}/{called}" if where else called


def parse_id(id_: str) -> tuple[str, str]:
    """Return namespace (empty if cluster-scoped) and name of an ID."""
    before, _, after = id_.partition("/")
    return (before, after) if after else ("", before)


CREATOR: Final = "pulumi-kubernetes"
"""Manager that creates objects (operation Update), here and in the real provider.

The real one later applies as `pulumi-kubernetes-` and eight random characters, and takes them over.
"""


def manager_of(urn: str) -> str:
    """Return the manager of a resource's declared fields, `pulumi-kubernetes-<8 hex digits>`.

    It is derived from the URN to recognize objects that a killed run created, but did not record. The genuine
    provider generates it randomly, in the same form.
    """
    return f"{CREATOR}-{hashlib.sha256(urn.encode()).hexdigest()[:8]}"


_READ_ONLY: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "uid",
    }
)


def folded(inputs: Properties) -> Properties:
    """Return the inputs as the API would store them.

    Metadata that only the server writes is removed. A Secret's `stringData` is encoded into `data`, which it
    overrides, and `data` is written in canonical base64; a Secret with unknown parts is left unchanged until
    they are known.
    """
    if isinstance(inputs.get("metadata"), dict):
        inputs = with_metadata(inputs, **dict.fromkeys(_READ_ONLY))
    if not is_secret(inputs) or contains_unknown(inputs):
        return inputs
    kept = {key: _canonical(item) for key, item in mapping(inputs.get("data")).items()}
    encoded: Properties = {
        key: base64.b64encode(str(item).encode()).decode()
        for key, item in mapping(inputs.get("stringData")).items()
    }
    rest = {key: value for key, value in inputs.items() if key != "stringData"}
    return {**rest, "data": {**kept, **encoded}} if kept or encoded else inputs


def _canonical(item: Value) -> Value:
    if not isinstance(item, str):
        return item
    try:
        return base64.b64encode(base64.b64decode("".join(item.split()), validate=True)).decode()
    except (binascii.Error, ValueError):
        return item


_FREE_KEYS: Final = frozenset(
    {"annotations", "binaryData", "data", "labels", "matchLabels", "nodeSelector", "parameters", "stringData"}
)
"""Below these keys, an empty string is intentional."""


def declared_part(live: Properties, inputs: Properties) -> Properties:
    """Return the live values of the declared fields: the shape of the inputs, with live values.

    Other fields are omitted, be they defaults or those of other managers: they are no drift. Lists are
    compared by index. Empty fields of a built-in kind that the server drops are kept.
    """
    return _shaped(inputs, live, typed=_is_typed(inputs), is_live=True)


def in_live_form(inputs: Properties, live: Properties) -> Properties:
    """Return the inputs in the form in which the server stores them, as far as the live object shows it.

    Two inputs that the server stores alike are equal then, whichever provider recorded the older one: the
    genuine provider records the server's form.
    """
    return _shaped(inputs, live, typed=_is_typed(inputs), is_live=False)


def _is_typed(inputs: Properties) -> bool:
    """Return whether the server converts the object to its own type, and returns it in that form."""
    return is_built_in(text(inputs.get("apiVersion")))


def _shaped(declared: Properties, live: Properties, *, typed: bool, is_live: bool) -> Properties:
    """Return what both have, in the declared shape, with either the live or the declared values.

    An empty field that the server drops is kept with the live values.
    """
    shaped: Properties = {}
    for key, value in declared.items():
        if key in live:
            free = key in _FREE_KEYS
            shaped[key] = _shaped_value(value, live[key], typed=typed and not free, is_live=is_live)
        elif (typed and _is_empty(value)) is is_live:
            shaped[key] = value
    return shaped


def _shaped_value(declared: Value, live: Value, *, typed: bool, is_live: bool) -> Value:
    if isinstance(live, dict) and isinstance(declared, dict):
        return _shaped(declared, live, typed=typed, is_live=is_live)
    if isinstance(live, list) and isinstance(declared, list):
        both = zip(declared, live, strict=False)
        shaped = [_shaped_value(item, like, typed=typed, is_live=is_live) for item, like in both]
        return shaped if is_live else shaped + declared[len(shaped) :]
    return live if is_live else declared


def _is_empty(value: Value) -> bool:
    return value is None or value is False or value == 0 or value in ("", [], {})


_INPUTS: Final = "__inputs"
_FIELD_MANAGER: Final = "__fieldManager"
_INITIAL_API_VERSION: Final = "__initialApiVersion"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def concealed(obj: Properties) -> Properties:
    """Return an object for the engine: a Secret's data is secret, as is kubectl's copy of it."""
    if not is_secret(obj):
        return obj
    shown = conceal_keys(obj, ("data", "stringData"))
    annotations = metadata(obj).get("annotations")
    if isinstance(annotations, dict) and _LAST_APPLIED in annotations:
        shown = with_metadata(shown, annotations=conceal_keys(annotations, (_LAST_APPLIED,)))
    return shown


def outputs(live: Properties, inputs: Properties, *, recorded: Properties, urn: str) -> Properties:
    """Return the outputs to record."""
    return {
        **concealed(live),
        _INPUTS: concealed(inputs),
        _FIELD_MANAGER: field_manager(recorded, urn),
        _INITIAL_API_VERSION: text(recorded.get(_INITIAL_API_VERSION)) or text(inputs.get("apiVersion")),
    }


def live_object(recorded: Properties) -> Properties:
    """Return the object in the outputs."""
    return {key: value for key, value in recorded.items() if not key.startswith("__")}


def declared(recorded: Properties, old_inputs: Properties) -> Properties:
    """Return the inputs recorded in the outputs, otherwise the given ones, in the API's own form."""
    kept = recorded.get(_INPUTS)
    return folded(kept if isinstance(kept, dict) else old_inputs)


def field_manager(recorded: Properties, urn: str) -> str:
    """Return the recorded field manager, otherwise the resource's own."""
    return text(recorded.get(_FIELD_MANAGER)) or manager_of(urn)
