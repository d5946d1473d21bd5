"""Where a secret's payloads are kept: everywhere, or in regions of the user's choice."""

from __future__ import annotations

from typing import Final, cast

from pulumi_sandbox.protocol.values import Properties, Value
from pulumi_sandbox.providers.contract import Problem
from pulumi_sandbox.providers.inputs import Input

_REPLICAS: Final = Input("objects", required=True, fields={"location": Input(required=True)})
_KINDS: Final = {
    "auto": Input("object"),
    "userManaged": Input("object", fields={"replicas": _REPLICAS}),
}
INPUT: Final = Input("object", required=True, replaces=True, fields=_KINDS)


def problems(given: Value) -> list[Problem]:
    """Yield what is wrong with a replication of the right types."""
    if not isinstance(given, dict):
        return []
    chosen = [kind for kind in _KINDS if given.get(kind) is not None]
    if len(chosen) != 1:
        return [Problem("replication", "it must have exactly one of auto and userManaged")]
    managed = given.get("userManaged")
    if isinstance(managed, dict) and managed.get("replicas") == []:
        return [Problem("replication.userManaged.replicas", "it cannot be empty")]
    return []


def to_api(given: Value) -> Properties:
    """Return an input as the service takes it."""
    chosen = cast("Properties", given)
    return {"automatic": {}} if chosen.get("auto") is not None else {"userManaged": chosen.get("userManaged")}


def from_api(live: Value) -> Properties:
    """Return what the service tells as an input."""
    told = live if isinstance(live, dict) else {}
    managed = told.get("userManaged")
    if not isinstance(managed, dict):
        return {"auto": {}}
    replicas = managed.get("replicas")
    locations = [
        {"location": each.get("location")}
        for each in (replicas if isinstance(replicas, list) else [])
        if isinstance(each, dict)
    ]
    return {"userManaged": {"replicas": cast("list[Value]", locations)}}
