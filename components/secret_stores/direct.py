"""Clients of the direct back end: lent to an admitted use, and tried again where a moment may fix it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from components.connection import RECORDED, ClusterTarget
from components.errors import StoreError
from components.secret_manager import SecretManagerTarget
from components.secret_stores.admission import Purpose, Use
from components.secret_stores.client_manager import ClientKey, ClientManager
from components.secret_stores.clients.client import ClientRequest, SecretsClient, Validity
from components.secret_stores.durations import nanoseconds
from components.secret_stores.model import RetrySettings
from components.secret_stores.stack_cluster import StackCluster

T = TypeVar("T")

CLIENTS: Final = ClientManager()
"""The clients of this process, for all its dynamic providers; abandoned with it."""

_PASSING: Final = frozenset({"unreachable", "not-allowed"})
"""What a moment may fix: a right that was granted just now takes the API server a moment to know."""

_RETRIES: Final = 3
_INTERVAL: Final = "500ms"


@dataclass(frozen=True, slots=True)
class StackTarget:
    """Where a stack's names lead: its cluster (`credfleet:cluster`), and Google by its `gcp:` keys."""

    cluster: str | None = None
    google: SecretManagerTarget = field(default_factory=SecretManagerTarget)

    @classmethod
    def configured(cls, read: Callable[[str], str | None]) -> StackTarget:
        """Read it from a stack's configuration by key."""
        return cls(read("cluster"), SecretManagerTarget.configured(read))

    @property
    def stack_cluster(self) -> StackCluster:
        """The cluster; raises ClusterError for one that makes no sense."""
        return StackCluster(ClusterTarget.parse(self.cluster))


def retry(use: Use, work: Callable[[], T], wait: Callable[[float], None] = time.sleep) -> T:
    """Do what may fail for a moment only, as often as the retrySettings of the store say."""
    given = use.store.spec.retry_settings or RetrySettings()
    interval = nanoseconds(given.retry_interval or _INTERVAL) / 1e9
    for _ in range(_RETRIES if given.max_retries is None else given.max_retries):
        try:
            return work()
        except StoreError as error:
            if error.code not in _PASSING:
                raise
        wait(interval)
    return work()


@contextmanager
def lent_client(
    use: Use, target: StackTarget, purpose: Purpose, clients: ClientManager = CLIENTS
) -> Generator[SecretsClient]:
    """Lend the client of a use. Raises StoreError, for reads of a store that is not ready."""
    title = use.provider.key.title
    caller = use.caller if use.kind.by_caller else ""
    key = ClientKey(target, use.provider.key, use.provider.spec.digest, caller)

    def make() -> SecretsClient:
        if RECORDED in os.environ:
            raise StoreError(
                code="unreachable",
                place=title,
                problem="this is a review without keys, and nobody is asked",
                fix="preview with the store to know",
            )
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

    with clients.lend(key, use.edition, make) as client:
        if purpose is Purpose.READ and client.validate() is Validity.ERROR:
            raise StoreError(
                code="not-ready",
                place=use.store.title,
                problem=f"its provider {title} says that it cannot be used",
                fix="fix the provider, then run again",
            )
        yield client
