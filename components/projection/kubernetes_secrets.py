"""Access to Secrets on an API server. Error messages never contain what was sent."""

from __future__ import annotations

import re
from typing import ClassVar, Final
from urllib.parse import quote

from components.connection import ClusterTarget, Connection, NoReply, Reply, reach
from components.errors import ProjectionError
from components.http_answers import HttpOutcome
from components.naming import stack_of
from components.projection.model import PROJECTED_BY, JsonObject, SecretRef, annotations_of

FIELD_MANAGER: Final = "credfleet-projection"
"""Field manager under which projections write."""

_WEBHOOK: Final = re.compile(r'(?:admission webhook|failed calling webhook) "([a-z0-9.-]{1,253})"')
"""The webhook that denied a call or failed. The rest of the message can quote the request."""


class KubernetesSecrets:
    """Secrets of a cluster with their data.

    A write returns None on conflict, which might be its own earlier attempt if the answer was lost. All
    methods raise ProjectionError if the server denies the call or is unreachable.
    """

    MANAGER: ClassVar = FIELD_MANAGER

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, ref: SecretRef) -> JsonObject | None:
        """Read a Secret."""
        return _done(self._call("GET", path_of(ref), ref))

    def create(self, body: JsonObject, *, rehearsed: bool = False) -> JsonObject | None:
        """POST; None if the name is taken. `rehearsed`: dry run, before the existing Secret is deleted."""
        ref, dry = _ref(body), "&dryRun=All" if rehearsed else ""
        path = f"{collection_of(ref.namespace)}?fieldManager={self.MANAGER}{dry}"
        return _done(self._call("POST", path, ref, body))

    def replace(self, body: JsonObject) -> JsonObject | None:
        """PUT with the resourceVersion in the body."""
        ref = _ref(body)
        return _done(self._call("PUT", f"{path_of(ref)}?fieldManager={self.MANAGER}", ref, body))

    def delete(self, body: JsonObject) -> bool:
        """DELETE with uid and resourceVersion as preconditions."""
        ref, metadata = _ref(body), body["metadata"]
        preconditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        return _done(self._call("DELETE", path_of(ref), ref, {"preconditions": preconditions})) is not None

    def _call(self, method: str, path: str, ref: SecretRef, body: JsonObject | None = None) -> Reply:
        """Make a call, with retries of temporary failures."""
        try:
            reply = self._connection.call(method, path, body=body)
        except NoReply as silence:
            raise failed(ref.place, f"the API server does not answer ({silence})", "run again") from None
        if method == "POST" and reply.lacks_namespace:
            raise _without_namespace(ref, body or {})
        if reply.answer in (HttpOutcome.DONE, HttpOutcome.ABSENT, HttpOutcome.CONFLICT):
            return reply
        if webhook := _WEBHOOK.search(reply.text):
            name = webhook[1]
            problem = f"the API server refused to {method} it: admission webhook {name} denied it, or failed"
            fix = f"see in the log of webhook {name} why; fix that, and run again"
            raise failed(ref.place, problem, fix)
        if reply.answer is HttpOutcome.NOT_ALLOWED:
            fix = (
                "let the identity that runs this read the source and write Secrets of the target's namespace"
            )
            raise failed(ref.place, f"the API server does not allow it: {reply.text}", fix)
        fix = "give it what its type demands, and run again" if reply.reason == "Invalid" else "run again"
        raise failed(ref.place, f"the API server refused to {method} it: {reply.reason}", fix)


def open_secrets(cluster: str | None) -> KubernetesSecrets:
    """Open the cluster of `credfleet:cluster`, given as JSON.

    Raises ClusterError, also if the API server does not answer.
    """
    fix = "run again once it does; what was begun is finished then"
    return KubernetesSecrets(reach(ClusterTarget.parse(cluster), fix))


def failed(place: str, problem: str, fix: str) -> ProjectionError:
    """Return the error that something is not possible now."""
    return ProjectionError(code="not-possible", place=place, problem=problem, fix=fix)


def _without_namespace(ref: SecretRef, body: JsonObject) -> ProjectionError:
    stack = stack_of(annotations_of(body).get(PROJECTED_BY, ""))
    return ProjectionError(
        code="namespace-gone",
        place=ref.place,
        problem=f"namespace {ref.namespace} is gone, or is being deleted, so nothing can be created in it",
        fix=f"wait until it is gone, then run: pulumi up --refresh --stack {stack}"
        if stack
        else "create it again with what was in it, then run again",
    )


def _done(reply: Reply) -> JsonObject | None:
    return reply.body if reply.answer is HttpOutcome.DONE else None


def _ref(body: JsonObject) -> SecretRef:
    return SecretRef(str(body["metadata"]["namespace"]), str(body["metadata"]["name"]))


def collection_of(namespace: str) -> str:
    """Return the API path of the Secrets of a namespace."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/secrets"


def path_of(ref: SecretRef) -> str:
    """Return the API path of a Secret."""
    return f"{collection_of(ref.namespace)}/{quote(ref.name, safe='')}"
