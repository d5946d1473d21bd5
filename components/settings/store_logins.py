"""Whether a provider of secrets names what it logs in with, or would log in as the process that asks it.

Judged by the shape that the kinds of External Secrets Operator share: `auth`, or what begins so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_NEEDS_NONE: Final = ("Fake", "fake")
_OF_THE_PROCESS: Final = ("ManagedIdentity", "InstancePrincipal")
_OF_A_SERVICE_ACCOUNT: Final = ("WorkloadIdentity", "Workload")
_OF_THE_SERVER: Final = ("caProvider", "tls")
"""What names certificates, and no login."""


def logs_in(entry: Mapping[str, Any]) -> bool:
    """Whether a provider, or a store that embeds one, names what it logs in with; a store with neither does.

    entry: as the configuration has it: `kind` and `spec`, or `provider` with the one kind it embeds.
    """
    embedded = _map(entry.get("provider"))
    if "kind" not in entry and not embedded:
        return True
    if entry.get("kind") in _NEEDS_NONE or any(kind in _NEEDS_NONE for kind in embedded):
        return True
    specs = [_map(each) for each in embedded.values()] or [_map(entry.get("spec"))]
    return "credentialsFrom" in entry or all(map(_names_a_login, specs))


def _names_a_login(spec: Mapping[str, Any]) -> bool:
    """Whether each way to log in names a Secret or a ServiceAccount: one without is the process's own."""
    way = spec.get("authType") or spec.get("principalType")
    if way in _OF_THE_PROCESS:
        return False
    if way in _OF_A_SERVICE_ACCOUNT:
        return any(_names(spec.get("serviceAccountRef")))
    direct = [value for key, value in spec.items() if key != "auth" and key.startswith("auth")]
    ways = [each for each in (*_map(spec.get("auth")).values(), *direct) if isinstance(each, dict)]
    if ways or "auth" in spec:
        return bool(ways) and all(any(_names(each)) for each in ways)
    return any(_names({key: value for key, value in spec.items() if key not in _OF_THE_SERVER}))


def _names(value: object) -> Iterator[str]:
    """Yield what a selector names, wherever it stands below a value."""
    if isinstance(value, list):
        for each in value:
            yield from _names(each)
    for key, inner in _map(value).items():
        if key == "name" and isinstance(inner, str) and inner:
            yield inner
        elif key not in _OF_THE_SERVER:
            yield from _names(inner)


def _map(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}
