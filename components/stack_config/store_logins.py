"""Whether a provider of secrets names what it logs in with, or would log in as the process that asks it.

Judged by the shape that the kinds of External Secrets Operator share: `auth`, or what begins so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from components.errors import Problem
from components.secret_stores.kinds import KINDS
from components.secret_stores.login import with_login
from components.secret_stores.registry import GROUP, VERSION

_NEEDS_NONE: Final = ("Fake", "fake")
_OF_THE_PROCESS: Final = ("ManagedIdentity", "InstancePrincipal")
_OF_A_SERVICE_ACCOUNT: Final = ("WorkloadIdentity", "Workload")
_NO_LOGIN: Final = (
    *("caProvider", "tls"),
    *("identityId", "serviceAccountKeyFilePath", "serviceAccountTokenPath"),
)
"""What names certificates, who logs in, or a file of the process: nothing that logs in."""


def logs_in(entry: Mapping[str, Any]) -> bool:
    """Whether a provider, or a store that embeds one, names what it logs in with; a store with neither does.

    entry: as the configuration has it: `kind` and `spec`, or `provider` with the one kind it embeds.
    """
    embedded = as_map(entry.get("provider"))
    if "kind" not in entry and not embedded:
        return True
    if entry.get("kind") in _NEEDS_NONE or any(kind in _NEEDS_NONE for kind in embedded):
        return True
    specs = [as_map(each) for each in embedded.values()] or [_with_credential(entry)]
    return all(map(_names_a_login, specs))


def _with_credential(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the spec of a provider with what is written in from `credentialsFrom`."""
    spec, version = as_map(entry.get("spec")), entry.get("version", VERSION)
    kind = KINDS.referred(f"{GROUP}/{version}", str(entry.get("kind")))
    if "credentialsFrom" not in entry or isinstance(kind, Problem):
        return spec
    filled = with_login(kind, spec, "its")
    return spec if isinstance(filled, Problem) else filled


def _names_a_login(spec: Mapping[str, Any]) -> bool:
    """Whether each way to log in names a Secret or a ServiceAccount: one without is the process's own."""
    kind = spec.get("authType") or spec.get("principalType")
    if kind in _OF_THE_PROCESS:
        return False
    if kind in _OF_A_SERVICE_ACCOUNT:
        return any(_names(spec.get("serviceAccountRef")))
    asked = [value for key, value in spec.items() if key.startswith("auth") and not isinstance(value, str)]
    if not asked:
        return any(any(_names(each)) for each in _all(spec, "secretRef"))
    ways = [way for each in asked for way in _ways(as_map(each))]
    return bool(ways) and all(any(_names(way)) for way in ways)


def _ways(asked: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Return the ways to log in, of which any may be taken; what is written out is part of another one."""
    inner = [each for each in asked.values() if isinstance(each, dict)]
    return [each for each in inner if not isinstance(each.get("value"), str)] if inner else [asked]


def _all(value: object, key: str) -> Iterator[object]:
    """Yield what stands under a key, wherever that is below a value."""
    for each in value if isinstance(value, list) else ():
        yield from _all(each, key)
    for own, inner in as_map(value).items():
        if own == key:
            yield inner
        yield from _all(inner, key)


def _names(value: object) -> Iterator[str]:
    """Yield what a selector names, wherever it stands below a value."""
    for key, inner in as_map(value).items():
        if key == "name" and isinstance(inner, str) and inner:
            yield inner
        elif key not in _NO_LOGIN:
            yield from _names(inner)


def as_map(value: object) -> Mapping[Any, Any]:
    """Return a value that is a map; any other counts as an empty one."""
    return value if isinstance(value, dict) else {}
