"""An object of the Kubernetes API as plain values, and what is asked of its metadata.

Any part of an object may be unknown in a preview; a question about an unknown part has an empty answer.
"""

from typing import Final

from pulumi_sandbox.protocol.values import Properties, Unknown, Value, text

AUTONAMED: Final = "pulumi.com/autonamed"
UNSERVED: Final = tuple(
    f"pulumi.com/{name}"
    for name in (
        "deletionPropagationPolicy",
        "patchFieldManager",
        "patchForce",
        "replaceUnready",
        "skipAwait",
        "timeoutSeconds",
        "waitFor",
    )
)
"""What the genuine provider does for these annotations, this one does not."""


def metadata(obj: Properties) -> Properties:
    """Return the metadata, empty when absent or unknown."""
    return _object(obj.get("metadata"))


def name(obj: Properties) -> str:
    """Return `.metadata.name`, empty when absent or unknown."""
    return text(metadata(obj).get("name"))


def namespace(obj: Properties) -> str:
    """Return `.metadata.namespace`, empty when absent or unknown."""
    return text(metadata(obj).get("namespace"))


def annotation(obj: Properties, key: str) -> str:
    """Return an annotation's value, empty when absent or unknown."""
    return text(_object(metadata(obj).get("annotations")).get(key))


def is_true(obj: Properties, key: str) -> bool:
    """Whether an annotation says `true`."""
    return annotation(obj, key) == "true"


def with_metadata(obj: Properties, **changes: Value) -> Properties:
    """Return the object with these keys of its metadata set; None takes a key away."""
    changed = {**metadata(obj), **changes}
    return {**obj, "metadata": {key: value for key, value in changed.items() if value is not None}}


def with_annotation(obj: Properties, key: str, value: str) -> Properties:
    """Return the object with the annotation set; annotations that are unknown as a whole stay as they are."""
    annotations = metadata(obj).get("annotations")
    if isinstance(annotations, Unknown):
        return obj
    return with_metadata(obj, annotations={**_object(annotations), key: value})


def is_kind(obj: Properties, api_version: str, kind: str) -> bool:
    """Whether the object is of a kind."""
    return (obj.get("apiVersion"), obj.get("kind")) == (api_version, kind)


def is_secret(obj: Properties) -> bool:
    """Whether the object is a Secret."""
    return is_kind(obj, "v1", "Secret")


def is_custom_resource_definition(obj: Properties) -> bool:
    """Whether the object defines a kind."""
    return is_kind(obj, "apiextensions.k8s.io/v1", "CustomResourceDefinition")


def object_id(obj: Properties) -> str:
    """Return the id of the object's resource: `namespace/name`, or `name` when it is cluster-wide."""
    where, called = namespace(obj), name(obj)
    return f"{where}/{called}" if where else called


def parse_id(id_: str) -> tuple[str, str]:
    """Take an id apart: namespace (empty when cluster-wide) and name."""
    before, _, after = id_.partition("/")
    return (before, after) if after else ("", before)


def _object(value: Value) -> Properties:
    return value if isinstance(value, dict) else {}
