"""Who manages which field of a live object (`metadata.managedFields`), and how that is marked and moved."""

from typing import Final, cast

from pulumi_sandbox.protocol.values import Properties, Value
from pulumi_sandbox.providers.kubernetes import naming, objects

_CLIENT_SIDE: Final = frozenset(
    {
        ("before-first-apply", "Update"),
        ("kubectl", "Apply"),
        ("kubectl", "Update"),
        (naming.CREATOR, "Update"),
        ("pulumi-kubernetes.exe", "Update"),
        ("pulumi-resource-kubernetes", "Update"),
    }
)
"""Managers whose fields the first apply takes over; the genuine provider's list (pulumi-kubernetes 4.34)."""

_MARK: Final[Properties] = {"f:metadata": {"f:annotations": {"f:pulumi.com/created": {}}}}
"""An annotation that no object has: owning it owns nothing, and no other manager can take it away."""


def marked(inputs: Properties, manager: str) -> Properties:
    """Return the object to create, with the mark of its resource's manager in the managed fields.

    The object is created under another manager, as the genuine provider does it, so that either provider can
    take its fields over later. The mark alone tells a later run which resource it was created
    for.
    """
    mark: Properties = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": inputs["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": _MARK,
    }
    return objects.with_metadata(inputs, managedFields=[mark])


def is_marked(live: Properties, manager: str) -> bool:
    """Whether the object was created for, or ever applied by, the resource with this manager."""
    return any(entry.get("manager") == manager for entry in _entries(live))


def is_client_side(live: Properties) -> bool:
    """Whether fields of the object are still with the manager that created it."""
    return any(_is_client_side(entry) for entry in _entries(live))


def taken_over(live: Properties, manager: str) -> list[Value]:
    """Return the managed fields with all that the creator manages given to `manager`."""
    kept: list[Value] = []
    fields: Properties = {}
    for entry in _entries(live):
        if _is_client_side(entry) or _is_own(entry, manager):
            fields = _union(fields, cast(Properties, entry.get("fieldsV1", {})))
        else:
            kept.append(entry)
    own: Properties = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": live["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return [own, *kept]


def _entries(live: Properties) -> list[Properties]:
    entries = objects.metadata(live).get("managedFields")
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _is_client_side(entry: Properties) -> bool:
    return (entry.get("manager"), entry.get("operation")) in _CLIENT_SIDE and not entry.get("subresource")


def _is_own(entry: Properties, manager: str) -> bool:
    return (entry.get("manager"), entry.get("operation"), entry.get("subresource")) == (
        manager,
        "Apply",
        None,
    )


def _union(left: Properties, right: Properties) -> Properties:
    joined = dict(left)
    for key, value in right.items():
        under = joined.get(key)
        joined[key] = _union(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return joined
