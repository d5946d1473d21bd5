"""How an object of External Secrets Operator (ESO) stands by its own condition, and how that is waited for.

Source: `pkg/controllers/util/util.go` of ESO 2.9.0, GetResourceVersion.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import quote

JsonObject: TypeAlias = Mapping[str, Any]
Look: TypeAlias = Callable[[Collection[str]], Mapping[str, JsonObject]]
"""Returns the objects of these names, as far as they are there."""

UNSEEN: Final = "External Secrets Operator has not looked at it"
OUTDATED: Final = "External Secrets Operator has not looked at it since it was changed"
HOLLOW: Final = (
    "its sources have nothing, so External Secrets Operator leaves its Secret as it was, or makes none"
)

LIFE_SECONDS: Final = 10.0
"""How long a sign is waited for that anybody reconciles at all."""

_RETAINED: Final = "secret retained due to DeletionPolicy=Retain"
"""What ESO says of a read that is Ready and gathered nothing."""

_EVERY_SECONDS: Final = 1.0
_PLURALS: Final = {
    "SecretStore": "secretstores",
    "ClusterSecretStore": "clustersecretstores",
    "ExternalSecret": "externalsecrets",
    "PushSecret": "pushsecrets",
}


def path_of(api_version: str, kind: str, namespace: str | None, name: str | None) -> str:
    """Return where the API server keeps an object; without a name, where it lists them."""
    within = "" if namespace is None else f"/namespaces/{quote(namespace, safe='')}"
    ending = "" if name is None else f"/{quote(name, safe='')}"
    return f"/apis/{api_version}{within}/{_PLURALS[kind]}{ending}"


def shortcoming(found: JsonObject) -> str | None:
    """Return why an object does not stand as it is written; None when it does.

    Of a message only ESO's own words are told: what follows a colon is somebody else's, such as a provider's.
    """
    status = found.get("status") or {}
    ready = next((each for each in status.get("conditions") or () if each.get("type") == "Ready"), None)
    if ready is None:
        return UNSEEN
    if ready.get("status") != "True":
        said = str(ready.get("message") or "no more is said").partition(": ")[0]
        return f"Ready is {ready.get('status')}, {ready.get('reason') or 'without a reason'}: {said}"
    if ready.get("message") == _RETAINED:
        return HOLLOW
    synced = str(status.get("syncedResourceVersion") or "").partition("-")[0]
    return OUTDATED if synced and synced != str(found["metadata"].get("generation")) else None


def shortcomings(objects: Mapping[str, JsonObject]) -> dict[str, str]:
    """Return the shortcoming of each object that has one."""
    return {name: why for name, each in objects.items() if (why := shortcoming(each)) is not None}


def await_states(
    names: Collection[str],
    look: Look,
    seconds: float,
    pause: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> dict[str, str]:
    """Wait until these objects stand as they are written; return what is short of it when the time is over.

    Nobody is waited for who gives no sign of life: ESO marks each object as soon as it sees it.
    """
    begin = now()
    while True:
        found = look(names)
        short = shortcomings(found)
        waited = now() - begin
        alive = any(map(_is_seen, found.values()))
        if not short or waited >= seconds or (waited >= LIFE_SECONDS and not alive):
            return short
        pause(_EVERY_SECONDS)


def _is_seen(found: JsonObject) -> bool:
    finalizers = found["metadata"].get("finalizers") or ()
    return bool((found.get("status") or {}).get("conditions")) or any(
        "externalsecrets" in each for each in finalizers
    )
