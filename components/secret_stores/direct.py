"""Clients of the direct back end: cached for admitted uses, with retries of temporary errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, TypeVar

from components.connection import ClusterTarget, refuse_unasked
from components.durations import nanoseconds
from components.errors import SecretManagerError, StoreError
from components.secret_manager import SecretManagerTarget
from components.secret_stores.admission import Purpose, Use
from components.secret_stores.clients.client import ClientRequest, SecretsClient, Validity
from components.secret_stores.model import ProviderKey, RetrySettings
from components.secret_stores.stack_cluster import StackCluster

T = TypeVar("T")

MAX_AGE: Final = 300.0
"""Maximum age of a client in seconds: rotated credentials are read again, and its tokens do not expire."""


@dataclass(frozen=True, slots=True)
class ClientKey:
    """Cache key of a client.

    `where`: cluster and services in which the provider's names are resolved. `spec`: digest of the spec with
    the namespace of every selector, so that two callers share a client only if they read the same. `caller`:
    empty unless clients of the kind use the caller's namespace.
    """

    where: Hashable
    provider: ProviderKey
    spec: str
    caller: str = ""


@dataclass(slots=True)
class _Kept:
    """Client, or the slot of one being created. `edition`: digest of the spec as written."""

    edition: str
    client: SecretsClient | None = None
    made: float = 0.0
    making: Lock = field(default_factory=Lock)


class Clients:
    """Clients of a process; thread-safe. Outdated clients are dropped."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._kept: dict[ClientKey, _Kept] = {}

    def __len__(self) -> int:
        """Return the number of cached clients."""
        return sum(each.client is not None for each in self._kept.values())

    def get(self, key: ClientKey, edition: str, make: Callable[[], SecretsClient]) -> SecretsClient:
        """Return the client of a key; the first caller creates it, concurrent ones wait."""
        with self._lock:
            self._kept = {
                other: each
                for other, each in self._kept.items()
                if not self._is_old(other, each, key, edition)
            }
            kept = self._kept.setdefault(key, _Kept(edition))
        with kept.making:
            if kept.client is None:
                client = make()
                kept.made = self._clock()  # set first: other threads compare it
                kept.client = client
            return kept.client

    def _is_old(self, other: ClientKey, each: _Kept, key: ClientKey, edition: str) -> bool:
        if (other.where, other.provider) != (key.where, key.provider):
            return False
        is_aged = each.client is not None and self._clock() - each.made >= MAX_AGE
        return each.edition != edition or (other == key and is_aged)


CLIENTS: Final = Clients()
"""Clients of this process, shared by its dynamic providers."""

_PASSING: Final = frozenset({"unreachable", "not-allowed"})
"""Errors that can pass by themselves: an API server applies a new right only after a moment."""

_RETRIES: Final = 3
_INTERVAL: Final = "500ms"


@dataclass(frozen=True, slots=True)
class StackTarget:
    """Targets of a stack's names: its cluster (`credfleet:cluster`), and Google (`gcp:` keys)."""

    cluster: str | None = None
    google: SecretManagerTarget = field(default_factory=SecretManagerTarget)

    @classmethod
    def configured(cls, read: Callable[[str], str | None]) -> StackTarget:
        """Read the targets from a stack's configuration."""
        return cls(read("cluster"), SecretManagerTarget.configured(read))

    @property
    def stack_cluster(self) -> StackCluster:
        """Cluster of the stack; raises ClusterError for an invalid one."""
        return StackCluster(ClusterTarget.parse(self.cluster))


def retry(use: Use, work: Callable[[], T], wait: Callable[[float], None] = time.sleep) -> T:
    """Run work that might fail temporarily, with the retries that the store's retrySettings allow."""
    given = use.store.spec.retry_settings or RetrySettings()
    interval = nanoseconds(given.retry_interval or _INTERVAL) / 1e9
    for _ in range(_RETRIES if given.max_retries is None else given.max_retries):
        try:
            return work()
        except (SecretManagerError, StoreError) as error:
            if error.code not in _PASSING:
                raise
        wait(interval)
    return work()


def client_of(use: Use, target: StackTarget, purpose: Purpose, clients: Clients = CLIENTS) -> SecretsClient:
    """Return the client of a use. Raises StoreError, also for a read from a store that is not ready."""
    title = use.provider.key.title
    caller = use.caller if use.kind.by_caller else ""
    key = ClientKey(target, use.provider.key, use.provider.spec.digest, caller)

    def make() -> SecretsClient:
        refuse_unasked(StoreError, title, "store")
        if use.kind.client is None:
            raise TypeError(f"{title} was admitted without a client")
        return use.kind.client(
            ClientRequest(
                title=title,
                spec=use.provider.spec,
                caller=use.caller,
                cluster=target.stack_cluster,
                google=target.google,
            )
        )

    client = clients.get(key, use.edition, make)
    if purpose is Purpose.READ and client.validate() is Validity.ERROR:
        raise StoreError(
            code="not-ready",
            place=use.store.title,
            problem=f"its provider {title} says that it cannot be used",
            fix="fix the provider, then run again",
        )
    return client
