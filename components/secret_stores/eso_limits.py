"""What External Secrets Operator (ESO) cannot express: it would read elsewhere, lose or ignore something.

ESO judges selectors and pushes in the code of each provider, by no common rule: docs/compatibility.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from components.errors import Problem
from components.secret_stores.admission import CONTROLLER, place_objections, push_objections
from components.secret_stores.clients.client import Capability
from components.secret_stores.consumers import DeletionPolicy, PushSecret, UpdatePolicy
from components.secret_stores.eso_namespaces import list_unfollowed, list_unused
from components.secret_stores.json_fields import as_path
from components.secret_stores.model import (
    AnyProvider,
    AnyStore,
    CaSelector,
    ClusterProvider,
    ClusterSecretStore,
    SecretSelector,
)
from components.secret_stores.referent import selectors
from components.secret_stores.registry import ProviderKind


class Reading(Enum):
    """What a property of a remote secret is to ESO.

    PATH: a path of gjson into JSON. KEY: a key of a Secret. OWN: whatever the kind makes of it, which nobody
    here knows.
    """

    PATH = auto()
    KEY = auto()
    OWN = auto()


@dataclass(frozen=True, slots=True)
class Habits:
    """How ESO treats properties of a kind, in reads and pushes.

    is_whole: it writes the whole secret, whatever property a push names.
    """

    reading: Reading = Reading.OWN
    is_whole: bool = False


_UNKNOWN: Final = Habits()
"""Those of any other kind."""

_HABITS: Final[Mapping[str, Habits]] = MappingProxyType(
    {
        "fake": Habits(Reading.PATH),
        "kubernetes": Habits(Reading.KEY),
        "gcpsm": Habits(Reading.PATH),
        "gitlab": Habits(Reading.PATH),
        "azurekv": Habits(Reading.PATH, is_whole=True),
    }
)
"""By the key of the embedded block."""


def store_limits(store: AnyStore, provider: AnyProvider, kind: ProviderKind) -> Iterator[Problem]:
    """Find what of an admissible store and its provider has no equal in ESO."""
    if store.spec.controller == CONTROLLER:
        yield Problem(
            store.title,
            f"it is of class {CONTROLLER}, which the direct back end serves, so ESO would leave it alone",
            "leave controller out, or name the class of the ESO that is meant",
        )
    if isinstance(store, ClusterSecretStore):
        yield from _cluster_store_limits(store, provider, kind)
    for path, selector in selectors(provider.spec):
        if isinstance(selector, SecretSelector | CaSelector) and selector.key is None:
            yield Problem(
                provider.key.title,
                f"{provider.key.title}: {path} names no key, and ESO reads one",
                "add the key",
            )
    for path in list_unused(provider, kind.embedded):
        yield Problem(
            provider.key.title,
            f"{provider.key.title}: ESO does not look at {path}, and logs in as whoever its own pod is",
            "log in by another part of the spec",
        )


def _cluster_store_limits(
    store: ClusterSecretStore, provider: AnyProvider, kind: ProviderKind
) -> Iterator[Problem]:
    ref = store.spec.provider_ref
    if not isinstance(provider, ClusterProvider) and ref is not None and ref.namespace is None:
        yield Problem(
            store.title,
            "spec.providerRef means another provider for each caller, and a store of ESO holds one",
            "add the namespace of the provider, or refer to one of the whole cluster",
        )
    for path, _, problem in list_unfollowed(provider, kind.embedded):
        yield Problem(
            provider.key.title,
            f"{provider.key.title}: {path} has no namespace, and {problem}",
            "add the namespace it is in, or give every caller a SecretStore",
        )


def property_of(kind: ProviderKind, name: str | None) -> str | None:
    """Return what ESO has to be told so that it takes one field, and no path of it."""
    return as_path(name) if name is not None and _habits(kind).reading is Reading.PATH else name


def push_limits(push: PushSecret, kind: ProviderKind) -> Iterator[Problem]:
    """Find what of a push ESO would ignore or fail at."""
    if kind.capabilities is Capability.READ_ONLY:
        yield Problem(
            push.title, f"providers of kind {kind.name} are only read", "push to a store of another kind"
        )
    yield from (place_objections if kind.client is None else push_objections)(push, kind)
    for index, each in enumerate(push.data):
        if each.property_name is not None and _habits(kind).is_whole:
            problem = f"data[{index}] has a property, and ESO would write the whole secret"
            yield Problem(push.title, problem, "leave property out")
        if each.remote_namespace is not None and (harm := _namespace_harm(push)) is not None:
            problem = f"data[{index}] has a remoteNamespace, and ESO {harm}"
            yield Problem(push.title, problem, "leave remoteNamespace out, or choose backend: direct")


def _namespace_harm(push: PushSecret) -> str | None:
    """Return what ESO would do, which looks and deletes in the provider's namespace, and writes elsewhere."""
    if push.deletion_policy is DeletionPolicy.DELETE:
        return "would delete the Secret of that name in the provider's namespace"
    if push.update_policy is UpdatePolicy.IF_NOT_EXISTS:
        return "would look in the provider's namespace whether it exists"
    return None


def _habits(kind: ProviderKind) -> Habits:
    return _HABITS.get(kind.embedded, _UNKNOWN)
