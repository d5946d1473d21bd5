"""Creating and updating objects: under which manager, against which live object, and what a refusal means."""

from __future__ import annotations

import time
from typing import Final, cast

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties, Value, mappings, text
from pulumi_sandbox.providers.contract import already_exists
from pulumi_sandbox.providers.kubernetes import errors, objects
from pulumi_sandbox.providers.kubernetes.connection import (
    APPLY,
    JSON_PATCH,
    Connection,
    Pause,
)
from pulumi_sandbox.providers.kubernetes.errors import ApiRefusedError
from pulumi_sandbox.providers.kubernetes.objects import KubernetesKind, declared_part, in_live_form
from pulumi_sandbox.providers.rest import NO_QUERY, Query

_CLIENT_SIDE: Final = frozenset(
    {
        ("before-first-apply", "Update"),
        ("kubectl", "Apply"),
        ("kubectl", "Update"),
        (objects.CREATOR, "Update"),
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
        whose = (entry.get("manager"), entry.get("operation"), entry.get("subresource"))
        if _is_client_side(entry) or whose == (manager, "Apply", None):
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
    return mappings(objects.metadata(live).get("managedFields"))


def _is_client_side(entry: Properties) -> bool:
    return (entry.get("manager"), entry.get("operation")) in _CLIENT_SIDE and not entry.get("subresource")


def _union(left: Properties, right: Properties) -> Properties:
    joined = dict(left)
    for key, value in right.items():
        under = joined.get(key)
        joined[key] = _union(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return joined


_DRY_RUN: Final[Query] = {"dryRun": "All"}
_CREATED_BY: Final[Query] = {"fieldManager": objects.CREATOR}
_RETRY_SECONDS: Final = (0.1, 0.2, 0.2, 0.2, 0.3, 0.5, 0.5, 1, 1, 2, 2, 2)
"""How long a create waits, again and again, for its kind or namespace to be served; ten seconds in all."""
_PATIENCE: Final = 600.0
_FIRST_LOOK: Final = 0.05


def preview_create(api: Connection, inputs: Properties) -> Properties | None:
    """Return the object as the server would create it, written nowhere; None when the server cannot tell yet.

    It cannot while the kind or the namespace is not there, the object still is, or the user may not create
    it.

    Raises SandboxError when the server would refuse the object as it is.
    """
    kind = _find(api, inputs)
    if kind is None:
        return None
    try:
        return api.send("POST", _collection(kind, inputs), query={**_CREATED_BY, **_DRY_RUN}, body=inputs)
    except ApiRefusedError as refusal:
        if refusal.status in (403, 404, 409) or "dry run" in str(refusal):
            return None
        raise errors.refused("create", inputs, refusal) from refusal


def create(api: Connection, urn: str, inputs: Properties, *, manager: str, pause: Pause) -> Properties:
    """Create the object and return it as it is live.

    An object that is there already is an error, unless a run that was killed before it could record it
    created it for this very resource: that one is brought up to the inputs.

    Raises SandboxError when the server refuses, or the kind or namespace does not appear within ten seconds.
    """
    mark = objects.manager_of(urn)
    try:
        return _post(api, marked(inputs, mark), pause)
    except ApiRefusedError as refusal:
        if refusal.reason != "AlreadyExists":
            raise errors.refused("create", inputs, refusal) from refusal
    live = _get(api, inputs, "create")
    if not is_marked(live, mark):
        raise already_exists(urn, objects.object_id(inputs), errors.described(inputs))
    if declared_part(live, inputs) == in_live_form(inputs, live):
        return live  # an update of what has no field but its name would take the mark away
    try:
        return _update_live(api, live, inputs, manager=manager)
    except ApiRefusedError as refusal:
        raise errors.refused("update", inputs, refusal, manager=manager) from refusal


def update(api: Connection, recorded: Properties, inputs: Properties, *, manager: str) -> Properties:
    """Bring the live object to the inputs and return it.

    Works on the object as the state recorded it first; the server refuses that when it changed in the
    meantime, and then the live object is read and taken as the ground.

    Raises SandboxError when the server refuses: another manager's field, a field that cannot change, an
    object gone.
    """
    try:
        if objects.metadata(recorded).get("uid"):
            try:
                return _update_live(api, recorded, inputs, manager=manager)
            except ApiRefusedError as refusal:
                if refusal.status not in (404, 409):
                    raise
        live = _get(api, objects.with_metadata(inputs, name=objects.name(recorded)), "update")
        return _update_live(api, live, inputs, manager=manager)
    except ApiRefusedError as refusal:
        raise errors.refused("update", inputs, refusal, manager=manager) from refusal


def preview_update(
    api: Connection, recorded: Properties, inputs: Properties, *, manager: str
) -> Properties | None:
    """Return the object as an update would leave it, written nowhere; None when the server cannot tell.

    Raises SandboxError when the server would refuse the update.
    """
    if _find(api, inputs) is None:
        return None
    live = _get(api, objects.with_metadata(inputs, name=objects.name(recorded)), "update")
    forced = is_client_side(live)
    try:
        return _write(api, live, inputs, manager=manager, query=_DRY_RUN, forced=forced)
    except ApiRefusedError as refusal:
        if refusal.status == 403:
            return None
        raise errors.refused("update", inputs, refusal, manager=manager) from refusal


def read(api: Connection, obj: Properties, namespace: str, name: str) -> Properties | None:
    """Return the live object; None when it, or its kind, is gone.

    Raises SandboxError when the user may not read it.
    """
    kind = _find(api, obj)
    if kind is None:
        return None
    try:
        return api.send("GET", kind.path(namespace, name))
    except ApiRefusedError as refusal:
        if refusal.status == 404:
            return None
        raise errors.refused("read", obj, refusal) from refusal


def _post(api: Connection, body: Properties, pause: Pause) -> Properties:
    for seconds in _RETRY_SECONDS:
        kind = _find(api, body)
        if kind is not None:
            try:
                return api.send("POST", _collection(kind, body), query=_CREATED_BY, body=body)
            except ApiRefusedError as refusal:
                if refusal.status != 404:
                    raise
        pause(seconds)
    kind = _find_or_fail(api, body)
    return api.send("POST", _collection(kind, body), query=_CREATED_BY, body=body)


def _update_live(api: Connection, live: Properties, inputs: Properties, *, manager: str) -> Properties:
    if is_client_side(live):
        live = _take_over(api, live, manager)
    return _write(api, live, inputs, manager=manager)


def _write(
    api: Connection,
    live: Properties,
    inputs: Properties,
    *,
    manager: str,
    query: Query = NO_QUERY,
    forced: bool = False,
) -> Properties:
    path = _find_or_fail(api, inputs).path(objects.namespace(inputs), objects.name(live))
    owned = {**query, "fieldManager": manager, "force": "true" if forced else "false"}
    body = objects.with_metadata(inputs, uid=objects.metadata(live).get("uid"))
    return api.send("PATCH", path, query=owned, body=body, content_type=APPLY)


def _take_over(api: Connection, live: Properties, manager: str) -> Properties:
    """Return the creator's fields to the manager, unless the object changed since it was read."""
    version = objects.metadata(live).get("resourceVersion")
    return api.send(
        "PATCH",
        _find_or_fail(api, live).path(objects.namespace(live), objects.name(live)),
        query=_CREATED_BY,
        body=[
            {
                "op": "replace",
                "path": "/metadata/managedFields",
                "value": taken_over(live, manager),
            },
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
        ],
        content_type=JSON_PATCH,
    )


def _get(api: Connection, inputs: Properties, operation: str) -> Properties:
    path = _find_or_fail(api, inputs).path(objects.namespace(inputs), objects.name(inputs))
    try:
        return api.send("GET", path)
    except ApiRefusedError as refusal:
        raise errors.refused(operation, inputs, refusal) from refusal


def _find(api: Connection, obj: Properties) -> KubernetesKind | None:
    return api.find(text(obj.get("apiVersion")), text(obj.get("kind")))


def _find_or_fail(api: Connection, obj: Properties) -> KubernetesKind:
    kind = _find(api, obj)
    if kind is None:
        raise errors.unknown_kind(obj)
    return kind


def _collection(kind: KubernetesKind, inputs: Properties) -> str:
    return kind.path(objects.namespace(inputs))


def delete(api: Connection, live: Properties, *, seconds: float, pause: Pause) -> None:
    """Delete the object and wait until it is gone; one that is gone already is fine.

    Dependents are left to the garbage collector (background propagation). The genuine provider's default is
    foreground, which adds a finalizer to every object for the sake of the few that own others.

    Raises SandboxError when the server refuses, or the object is still there when the time is over; it names
    the finalizers that hold it.
    """
    namespace, name = objects.namespace(live), objects.name(live)
    kind = _find(api, live)
    if kind is None:
        return
    try:
        answer = api.send("DELETE", kind.path(namespace, name), query={"propagationPolicy": "Background"})
    except ApiRefusedError as refusal:
        if refusal.status == 404:
            return
        raise errors.refused("delete", live, refusal) from refusal
    if answer.get("kind") == "Status":
        return
    gone, found, interval = objects.metadata(answer).get("uid"), answer, _FIRST_LOOK
    deadline = time.monotonic() + (seconds or _PATIENCE)
    while (left := deadline - time.monotonic()) > 0:
        pause(min(interval, left))
        found = read(api, live, namespace, name)
        if found is None or objects.metadata(found).get("uid") != gone:
            return
        interval = min(interval * 1.5, 1.0)
    finalizers = objects.metadata(found).get("finalizers")
    raise SandboxError(
        code="still-there",
        place=errors.described(live),
        problem=f"it is marked as deleted, but still there after {seconds or _PATIENCE:g} s"
        + (f"; its finalizers are {finalizers}" if finalizers else ""),
        fix="start the controller that finishes the deletion, or take its finalizer away; then run again",
    )
