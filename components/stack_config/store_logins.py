"""Check whether a secret provider names its own login, or would log in as the calling process.

Uses the structure that ESO's kinds share: `auth`, or fields that start with it.
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
"""Keys that do not log in: certificates, names of identities, and files of the process."""


def logs_in(entry: Mapping[str, Any]) -> bool:
    """Return whether a provider, or a store with an embedded one, names its login; True without a provider.

    `entry`: as configured: `kind` and `spec`, or `provider` with one embedded kind.
    """
    embedded = as_map(entry.get("provider"))
    if "kind" not in entry and not embedded:
        return True
    if entry.get("kind") in _NEEDS_NONE or any(kind in _NEEDS_NONE for kind in embedded):
        return True
    specs = [as_map(each) for each in embedded.values()] or [_with_credential(entry)]
    return all(map(_names_a_login, specs))


def _with_credential(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the spec of a provider, with the selectors that `credentialsFrom` adds."""
    spec, version = as_map(entry.get("spec")), entry.get("version", VERSION)
    kind = KINDS.referred(f"{GROUP}/{version}", str(entry.get("kind")))
    if "credentialsFrom" not in entry or isinstance(kind, Problem):
        return spec
    filled = with_login(kind, spec, "its")
    return spec if isinstance(filled, Problem) else filled


def _names_a_login(spec: Mapping[str, Any]) -> bool:
    """Return whether each login method names a Secret or ServiceAccount: others use the process's own."""
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
    """Return the alternative login methods; maps with a literal value belong to another method."""
    inner = [each for each in asked.values() if isinstance(each, dict)]
    return [each for each in inner if not isinstance(each.get("value"), str)] if inner else [asked]


def _all(value: object, key: str) -> Iterator[object]:
    """Yield the values of a key at any depth below a value."""
    for each in value if isinstance(value, list) else ():
        yield from _all(each, key)
    for own, inner in as_map(value).items():
        if own == key:
            yield inner
        yield from _all(inner, key)


def _names(value: object) -> Iterator[str]:
    """Yield the names in a selector at any depth below a value."""
    for key, inner in as_map(value).items():
        if key == "name" and isinstance(inner, str) and inner:
            yield inner
        elif key not in _NO_LOGIN:
            yield from _names(inner)


def as_map(value: object) -> Mapping[Any, Any]:
    """Return a value if it is a map, otherwise an empty map."""
    return value if isinstance(value, dict) else {}
