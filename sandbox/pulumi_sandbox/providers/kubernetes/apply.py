"""Creates and updates objects: under which field manager, from which live object, and error handling."""

from __future__ import annotations

import time
from typing import Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties, Value, mapping, mappings, text
from pulumi_sandbox.providers.contract import already_exists
from pulumi_sandbox.providers.kubernetes import errors, objects
from pulumi_sandbox.providers.kubernetes.connection import APPLY, JSON_PATCH, Connection, Pause
from pulumi_sandbox.providers.kubernetes.errors import NO_KIND, ApiRefusedError
from pulumi_sandbox.providers.kubernetes.objects import declared_part, in_live_form
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
"""Managers whose fields the first apply takes over, as in the real provider (pulumi-kubernetes 4.34)."""

_MARK: Final[Properties] = {"f:metadata": {"f:annotations": {"f:pulumi.com/created": {}}}}
"""Annotation that no object has: owning it has no effect, and no other manager can take it over."""


def marked(inputs: Properties, manager: str) -> Properties:
    """Return the object to create, with a mark of the resource's manager in the managed fields.

    The object is created by another manager, as by the genuine provider, so that either provider can take
    over its fields later. Only the mark tells a later run for which resource it was created.
    """
    return objects.with_metadata(inputs, managedFields=[_applied(inputs, manager, _MARK)])


def _applied(obj: Properties, manager: str, fields: Properties) -> Properties:
    return {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": obj["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def is_marked(live: Properties, manager: str) -> bool:
    """Return whether the object was created for, or ever applied by, the resource with this manager."""
    return any(entry.get("manager") == manager for entry in _entries(live))


def is_client_side(live: Properties) -> bool:
    """Return whether the manager that created the object still owns some of its fields."""
    return any(_is_client_side(entry) for entry in _entries(live))


def taken_over(live: Properties, manager: str) -> list[Value]:
    """Return the managed fields after a transfer of all fields of the creator to `manager`."""
    kept: list[Value] = []
    fields: Properties = {}
    for entry in _entries(live):
        whose = (entry.get("manager"), entry.get("operation"), entry.get("subresource"))
        if _is_client_side(entry) or whose == (manager, "Apply", None):
            fields = objects.merged(fields, mapping(entry.get("fieldsV1")))
        else:
            kept.append(entry)
    return [_applied(live, manager, fields), *kept]


def _entries(live: Properties) -> list[Properties]:
    return mappings(objects.metadata(live).get("managedFields"))


def _is_client_side(entry: Properties) -> bool:
    return (entry.get("manager"), entry.get("operation")) in _CLIENT_SIDE and not entry.get("subresource")


_DRY_RUN: Final[Query] = {"dryRun": "All"}
_CREATED_BY: Final[Query] = {"fieldManager": objects.CREATOR}
_RETRY_SECONDS: Final = (0.1, 0.2, 0.2, 0.2, 0.3, 0.5, 0.5, 1, 1, 2, 2, 2)
"""Waits between the attempts of a create until its kind or namespace is served; ten seconds in total."""
_PATIENCE: Final = 600.0
_FIRST_LOOK: Final = 0.05


def preview_create(api: Connection, inputs: Properties) -> Properties | None:
    """Return the object as the server would create it, by a dry run; None if the server cannot tell yet.

    It cannot if kind or namespace do not exist, the object still exists, or the user cannot create it. Raises
    ApiRefusedError if the server would reject the object as it is.
    """
    try:
        made = api.send("POST", _path(api, inputs), query={**_CREATED_BY, **_DRY_RUN}, body=inputs)
        return objects.without_status(made)
    except ApiRefusedError as refusal:
        if refusal.status in (403, 404, 409) or "dry run" in str(refusal):
            return None
        raise


def create(api: Connection, urn: str, inputs: Properties, *, manager: str, pause: Pause) -> Properties:
    """Create the object and return the live one.

    An existing object is an error, unless it was created for this very resource by a run that was killed
    before recording it: then it is updated to the inputs. Raises ApiRefusedError if the server rejects it;
    SandboxError if the object already exists, or the kind or namespace does not appear within ten seconds.
    """
    try:
        return _post(api, marked(inputs, manager), pause)
    except ApiRefusedError as refusal:
        if refusal.reason != "AlreadyExists":
            raise
    live = _get(api, inputs)
    if not is_marked(live, manager):
        raise already_exists(urn, objects.object_id(inputs), errors.described(inputs))
    if declared_part(live, inputs) == in_live_form(inputs, live):
        return live  # an update without fields other than the name would remove the mark
    return _update_live(api, live, inputs, manager=manager)


def update(api: Connection, recorded: Properties, inputs: Properties, *, manager: str) -> Properties:
    """Update the live object to the inputs and return it.

    First uses the object as recorded in the state; if it changed in the meantime, the server rejects that,
    and the live object is read and used instead. Raises ApiRefusedError if the server rejects it: another
    manager's field, an immutable field, a deleted object.
    """
    if objects.metadata(recorded).get("uid"):
        try:
            return _update_live(api, recorded, inputs, manager=manager)
        except ApiRefusedError as refusal:
            if refusal.status not in (404, 409):
                raise
    live = _get(api, objects.with_metadata(inputs, name=objects.name(recorded)))
    return _update_live(api, live, inputs, manager=manager)


def preview_update(
    api: Connection, recorded: Properties, inputs: Properties, *, manager: str
) -> Properties | None:
    """Return the object after an update, by a dry run; None if the server cannot tell.

    Raises ApiRefusedError if the server would reject the update.
    """
    try:
        live = _get(api, objects.with_metadata(inputs, name=objects.name(recorded)))
        forced = is_client_side(live)
        changed = _write(api, live, inputs, manager=manager, query=_DRY_RUN, forced=forced)
        return objects.without_status(changed)
    except ApiRefusedError as refusal:
        if refusal.status == 403 or refusal.reason == NO_KIND:
            return None
        raise


def read(api: Connection, obj: Properties) -> Properties | None:
    """Return the live object; None if it, or its kind, does not exist.

    Raises ApiRefusedError if the user cannot read it.
    """
    try:
        return _get(api, obj)
    except ApiRefusedError as refusal:
        if refusal.status == 404:
            return None
        raise


def _post(api: Connection, body: Properties, pause: Pause) -> Properties:
    for seconds in (*_RETRY_SECONDS, None):
        try:
            return api.send("POST", _path(api, body), query=_CREATED_BY, body=body)
        except ApiRefusedError as refusal:
            if refusal.status != 404 or seconds is None:
                raise
        pause(seconds)
    raise AssertionError("the last attempt returns or raises")


def _update_live(api: Connection, live: Properties, inputs: Properties, *, manager: str) -> Properties:
    if is_client_side(live):
        # The creator's fields go to the manager, unless the object changed since it was read.
        version = objects.metadata(live).get("resourceVersion")
        live = api.send(
            "PATCH",
            _path(api, live, objects.name(live)),
            query=_CREATED_BY,
            body=[
                {"op": "replace", "path": "/metadata/managedFields", "value": taken_over(live, manager)},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            ],
            content_type=JSON_PATCH,
        )
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
    path = _path(api, inputs, objects.name(live))
    owned = {**query, "fieldManager": manager, "force": "true" if forced else "false"}
    body = objects.with_metadata(inputs, uid=objects.metadata(live).get("uid"))
    return api.send("PATCH", path, query=owned, body=body, content_type=APPLY)


def _get(api: Connection, obj: Properties) -> Properties:
    return api.send("GET", _path(api, obj, objects.name(obj)))


def _path(api: Connection, obj: Properties, name: str = "") -> str:
    """Return the path of the object of this name, or of the collection without a name.

    Raises ApiRefusedError if its kind is not served.
    """
    api_version, kind = text(obj.get("apiVersion")), text(obj.get("kind"))
    found = api.find(api_version, kind)
    if found is None:
        raise ApiRefusedError(
            404, {"reason": NO_KIND, "message": f"it serves no kind {kind} in {api_version}"}
        )
    return found.path(objects.namespace(obj), name)


def delete(api: Connection, live: Properties, *, seconds: float, pause: Pause) -> None:
    """Delete the object and wait until it is gone; one that does not exist is fine.

    Dependents are left to the garbage collector (background propagation). The genuine provider's default is
    foreground, which adds a finalizer to every object although few own others. Raises ApiRefusedError if the
    server rejects it; SandboxError, naming the blocking finalizers, if the object still exists after the
    given time.
    """
    try:
        path = _path(api, live, objects.name(live))
        answer = api.send("DELETE", path, query={"propagationPolicy": "Background"})
    except ApiRefusedError as refusal:
        if refusal.status == 404:
            return
        raise
    if answer.get("kind") == "Status":
        return
    gone, found, interval = objects.metadata(answer).get("uid"), answer, _FIRST_LOOK
    deadline = time.monotonic() + (seconds or _PATIENCE)
    while (left := deadline - time.monotonic()) > 0:
        pause(min(interval, left))
        found = read(api, live)
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
