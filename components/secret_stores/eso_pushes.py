"""Whose the values are that a push of External Secrets Operator (ESO) would write over.

ESO writes over whatever is at the place (docs/compatibility.md), and the direct back end only
over what its push wrote. So a place that somebody else has is refused, unless the push's own PushSecret
writes there already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from components.errors import CredfleetError, Problem
from components.secret_stores.direct_consumers import DirectPush
from components.secret_stores.eso import V1ALPHA1
from components.secret_stores.eso_states import path_of
from components.secret_stores.stack_cluster import StackCluster


def obstacles(
    push: Mapping[str, Any], cluster: StackCluster, configured: Callable[[str], str | None]
) -> Iterator[Problem]:
    """Yield what is in the way of a push, as the lookout is given it; nothing where nobody can look."""
    document = push["push"]
    path = path_of(V1ALPHA1, "PushSecret", push["namespace"], document["name"])
    try:
        live = cluster.found(path, push["place"])
    except CredfleetError:
        return
    told = {_place_of(each) for each in (live or {}).get("spec", {}).get("data", ())}
    new = [each for each in document["data"] if (each["remoteKey"], each.get("remoteNamespace")) not in told]
    try:
        found = DirectPush({**push, "push": {**document, "data": new}}, configured).obstacles()
    except CredfleetError:
        return
    yield from (Problem(push["place"], each.problem, each.fix) for each in found)


def _place_of(told: Mapping[str, Any]) -> tuple[str, str | None]:
    elsewhere = (told.get("metadata") or {}).get("spec", {}).get("remoteNamespace")
    return told["match"]["remoteRef"]["remoteKey"], elsewhere
