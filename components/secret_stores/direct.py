"""The direct back end: from a consumer, its store and its provider to a client, or to the reason why not.

Every refusal of the rule of references comes before the first call to anybody, and names the store, the path
of the selector and the namespace it would be read in.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeVar

from components.connection import ClusterTarget
from components.errors import Problem, StoreError
from components.secret_manager import SecretManagerTarget
from components.secret_stores.client_manager import ClientKey, ClientManager, spec_digest
from components.secret_stores.clients.client import Capability, ClientRequest, SecretsClient, Validity
from components.secret_stores.conditions import NAME_LABEL
from components.secret_stores.explain import Explanation, Ready, Surroundings, explain
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import (
    AnyProvider,
    AnyStore,
    ClusterProvider,
    ClusterSecretStore,
    Provider,
    RetrySettings,
    SecretStore,
)
from components.secret_stores.referent import pinned, provider_of
from components.secret_stores.registry import Kind, RefRegister
from components.secret_stores.stack_cluster import StackCluster

T = TypeVar("T")

CONTROLLER: Final = "credfleet"
"""The class of stores that the direct back end serves, besides those without a class (stores, row A6)."""

CLIENTS: Final = ClientManager()
"""The clients of this process, for all its dynamic providers; abandoned with it."""

_PASSING: Final = frozenset({"unreachable", "not-allowed"})
"""What a moment may mend: a right that was granted just now takes the API server a moment to know."""

_RETRIES: Final = 3
_INTERVAL: Final = "500ms"
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class Purpose(StrEnum):
    """What a client is wanted for."""

    READ = "read"
    PUSH = "push"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a stack's names lead: its cluster, and Google by its `gcp:` keys.

    cluster: the text of `credfleet:cluster`.
    """

    cluster: str | None = None
    google: SecretManagerTarget = field(default_factory=SecretManagerTarget)

    @classmethod
    def configured(cls, read: Callable[[str], str | None]) -> Site:
        """Read it from a stack's configuration by key."""
        return cls(read("cluster"), SecretManagerTarget.configured(read))

    @property
    def target(self) -> ClusterTarget:
        """Which cluster it is; raises ClusterError for one that makes no sense."""
        return ClusterTarget.parse(self.cluster)


@dataclass(frozen=True, slots=True)
class Use:
    """A consumer's way to where secrets are kept: all selectors of the provider say their namespace.

    edition: digest of the provider's spec as it is written.
    """

    store: AnyStore
    provider: AnyProvider
    kind: Kind
    caller: str
    edition: str

    def retried(self, work: Callable[[], T], wait: Callable[[float], None] = time.sleep) -> T:
        """Do what may fail for a moment only, as often as the store's retrySettings say."""
        given = self.store.spec.retry_settings or RetrySettings()
        interval = _seconds(given.retry_interval or _INTERVAL)
        for _ in range(_RETRIES if given.max_retries is None else given.max_retries):
            try:
                return work()
            except StoreError as error:
                if error.code not in _PASSING:
                    raise
            wait(interval)
        return work()


def store_from(document: Mapping[str, Any]) -> AnyStore:
    """Read a store: {namespace?, name, spec}; without a namespace it is the whole cluster's."""
    model = SecretStore if document.get("namespace") else ClusterSecretStore
    return model.model_validate(document)


def provider_from(document: Mapping[str, Any], kinds: RefRegister = KINDS) -> AnyProvider | Problem:
    """Read a provider: {apiVersion, kind, namespace?, name, spec, module}.

    module: where the kind is registered; in this process a stack's own may not be yet.
    """
    importlib.import_module(document["module"])
    kind = kinds.referred(document["apiVersion"], document["kind"])
    if isinstance(kind, Problem):
        return kind
    return kind.provider(document.get("namespace"), document["name"], document["spec"])


def document_of(thing: AnyStore | AnyProvider, kinds: RefRegister = KINDS) -> dict[str, Any]:
    """Write a store or provider so that it can be read again in another process."""
    document: dict[str, Any] = thing.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(thing, Provider | ClusterProvider):
        spec = thing.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {**document, "spec": spec, "module": kinds.kind_of(thing).spec.__module__}
    return document


@dataclass(frozen=True, slots=True)
class Asked:
    """Who wants to use a store for what.

    labels: of the namespace of the caller. provider: what the store refers to; None when it has one embedded.
    """

    store: AnyStore
    provider: AnyProvider | None
    caller: str
    labels: Mapping[str, str]
    purpose: Purpose


def admit(asked: Asked, kinds: RefRegister = KINDS) -> Use:
    """Find the way of a caller through a store.

    Raises StoreError `refused` or `no-client`; nobody was asked anything then.
    """
    store, provider, caller = asked.store, asked.provider, asked.caller
    if store.spec.controller not in ("", CONTROLLER):
        raise _refused(
            store,
            f"it is of class {store.spec.controller}, and the direct back end serves class {CONTROLLER} only",
            "leave controller out, or choose backend: eso",
        )
    known = {provider.key: provider} if provider is not None else {}
    around = Surroundings(kinds, known, {caller: {NAME_LABEL: caller, **asked.labels}})
    found = explain(store, caller, around)
    if found.ready is not Ready.READY:
        raise _denied(store, found)
    meant = provider or provider_of(store, caller, kinds)
    if not isinstance(meant, Provider | ClusterProvider):
        raise TypeError(f"{store.title} was admitted without a provider")
    kind = kinds.kind_of(meant)
    if kind.client is None:
        raise _error(
            "no-client",
            store.title,
            f"the direct back end has no client for providers of kind {kind.name}",
            "choose backend: eso, or a provider of another kind",
        )
    limits = [*kind.limits(meant.spec)]
    if limits:
        raise _error("no-client", f"{store.title}: {meant.key.title}", *_joined(limits))
    unfit = Capability.WRITE_ONLY if asked.purpose is Purpose.READ else Capability.READ_ONLY
    if kind.capabilities is unfit:
        raise _refused(
            store,
            f"providers of kind {kind.name} are {kind.capabilities}, so no {asked.purpose} goes through it",
            "choose a provider of another kind",
        )
    spec = pinned(meant.spec, found.selectors)
    return Use(store, meant.model_copy(update={"spec": spec}), kind, caller, edition=spec_digest(meant.spec))


@contextmanager
def lent_client(
    use: Use, site: Site, purpose: Purpose, clients: ClientManager = CLIENTS
) -> Generator[SecretsClient]:
    """Lend the client of a use. Raises StoreError, for reads of a store that is not ready too (row A7)."""
    title = use.provider.key.title
    key = ClientKey(
        site, use.provider.key, spec_digest(use.provider.spec), use.caller if use.kind.by_caller else ""
    )

    def make() -> SecretsClient:
        if use.kind.client is None:
            raise TypeError(f"{title} was admitted without a client")
        return use.kind.client(
            ClientRequest(
                title=title,
                spec=use.provider.spec,
                caller=use.caller,
                cluster=StackCluster(site.target),
                google=site.google,
            )
        )

    with clients.lend(key, use.edition, make) as client:
        if purpose is Purpose.READ and client.validate() is Validity.ERROR:
            raise StoreError(
                code="not-ready",
                place=use.store.title,
                cause=f"its provider {title} says that it cannot be used",
                mend="mend the provider, then run again",
            )
        yield client


def _denied(store: AnyStore, found: Explanation) -> StoreError:
    causes, mends = _joined(
        found.refusals or [Problem(store.title, str(found.deferred), "name a namespace that uses it")]
    )
    return _refused(store, f"namespace {found.caller} may not use it: {causes}", mends)


def _joined(refusals: Sequence[Problem]) -> tuple[str, str]:
    return "; ".join(each.cause for each in refusals), "; ".join(each.mend for each in refusals)


def _refused(store: AnyStore, cause: str, mend: str) -> StoreError:
    return _error("refused", store.title, cause, mend)


def _error(code: str, place: str, cause: str, mend: str) -> StoreError:
    return StoreError(code=code, place=place, cause=cause, mend=mend)


def _seconds(duration: str) -> float:
    """Read a duration as Go writes it."""
    parts = re.findall(r"([0-9.]+)(ns|us|µs|ms|s|m|h)", duration)
    return sum(float(amount) * _UNITS[unit] for amount, unit in parts)
