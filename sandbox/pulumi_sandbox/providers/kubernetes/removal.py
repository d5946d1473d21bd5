"""Deleting an object, and seeing it gone."""

from __future__ import annotations

from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers.kubernetes import await_, errors, objects
from pulumi_sandbox.providers.kubernetes.api import Api, ApiRefusedError
from pulumi_sandbox.providers.kubernetes.apply import Pause, read


def delete(api: Api, live: Properties, inputs: Properties, *, seconds: float, pause: Pause) -> None:
    """Delete the object and wait until it is gone; one that is gone already is fine.

    Dependents are left to the garbage collector (background propagation), unless annotation
    `pulumi.com/deletionPropagationPolicy` says `foreground` or `orphan`. The genuine provider's default is
    foreground, which adds a finalizer to every object for the sake of the few that own others.

    Raises SandboxError when the server refuses, or the object is still there when the time is over.
    """
    namespace, name = objects.namespace(live), objects.name(live)
    kind = api.find(objects.text(live.get("apiVersion")), objects.text(live.get("kind")))
    if kind is None:
        return
    propagation = objects.annotation(inputs, objects.DELETION_PROPAGATION).capitalize() or "Background"
    try:
        answer = api.send("DELETE", kind.path(namespace, name), query={"propagationPolicy": propagation})
    except ApiRefusedError as refusal:
        if refusal.status == 404:
            return
        raise errors.refused("delete", live, refusal) from refusal
    if answer.get("kind") == "Status" or objects.is_true(inputs, objects.SKIP_AWAIT):
        return
    await_.until_gone(answer, lambda: read(api, live, namespace, name), seconds=seconds, pause=pause)
