"""Objects that still refer to a legacy Secret, and API calls with our error messages. Import-pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from components.connection import Connection, NoReply, Reply
from components.errors import ProjectionError
from components.http_answers import HttpOutcome
from components.projection.kubernetes_secrets import failed
from components.projection.model import SecretRef
from components.service_credentials.migration import CORE, READERS

_HOLDERS: Final = ("secret", "binding", "credentials")
"""Words in the names of fields that contain a reference to a Secret."""


def referring(objects: Iterable[Mapping[str, Any]], secret: str) -> Iterator[str]:
    """Yield the names of the objects that refer to a Secret; finished ones are ignored."""
    for each in objects:
        finished = (each.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        idle = (each.get("spec") or {}).get("replicas") == 0 and each.get("kind") == "ReplicaSet"
        if not (finished or idle) and _refers(each, secret):
            yield str(each["metadata"]["name"])


def _refers(value: object, secret: str) -> bool:
    if isinstance(value, list):
        return any(_refers(each, secret) for each in value)
    if not isinstance(value, dict):
        return False
    for key, each in value.items():
        is_holder = any(word in key.lower() for word in _HOLDERS)
        is_held = is_holder and isinstance(each, dict) and each.get("name") == secret
        if (key == "secretName" and each == secret) or is_held or _refers(each, secret):
            return True
    return False


def still_read(connection: Connection, secret: SecretRef) -> ProjectionError | None:
    """Return the error that others refer to a Secret; raises ProjectionError if some cannot be listed."""
    found: list[str] = []
    groups = {str(each["name"]) for each in call(connection, "/apis").body.get("groups") or []}
    for group, kinds in READERS.items():
        # for a group that is not served, the API server's answer is not JSON
        for kind in kinds if group == CORE or group.split("/")[1] in groups else ():
            reply = call(connection, f"/{group}/namespaces/{quote(secret.namespace, safe='')}/{kind}")
            found += [f"{kind}/{name}" for name in referring(reply.body.get("items") or [], secret.name)]
    if not found:
        return None
    fix = "let them read the new one, then run again"
    return failed(secret.place, f"it is still read by {', '.join(found)}", fix)


def call(connection: Connection, path: str) -> Reply:
    """Read a path; a 404 is also an answer. Raises ProjectionError."""
    try:
        reply = connection.call("GET", path)
    except NoReply as silence:
        raise failed(path, f"the API server does not answer ({silence})", "run again") from None
    if reply.answer not in (HttpOutcome.DONE, HttpOutcome.ABSENT):
        raise failed(path, f"the API server refused to GET it: {reply.reason}", "let it, and run again")
    return reply
