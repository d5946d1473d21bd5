"""The clients of this process: one for each provider and each way its selectors are read.

A client is found by the provider and a digest of its spec with every namespace written out, so that two
callers share one only where they read the same. A client that is outdated goes when its
last user has left; only closing the manager takes clients from under their users.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from types import TracebackType
from typing import Final, Self

from components.secret_stores.clients.client import SecretsClient
from components.secret_stores.model import ProviderKey

MAX_AGE: Final = 300.0
"""Seconds a client is used: then a rotated credential is read again, and no token it was made with ends."""


@dataclass(frozen=True, slots=True)
class ClientKey:
    """What a client is found by.

    where: the cluster and the services the provider's names are looked up in. spec: digest of the spec with
    every selector's namespace. caller: empty unless clients of the kind use the caller's namespace.
    """

    where: Hashable
    provider: ProviderKey
    spec: str
    caller: str = ""


class _Entry:
    """A client, or the place of one that is being made."""

    __slots__ = ("client", "edition", "made", "making", "retired", "users")

    def __init__(self, edition: str) -> None:
        self.edition = edition
        self.client: SecretsClient | None = None
        self.made = 0.0
        self.making = Lock()
        self.retired = False
        self.users = 0


class ClientManager:
    """Lends clients; safe for any number of threads."""

    def __init__(self, max_age: float = MAX_AGE, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_age = max_age
        self._clock = clock
        self._lock = Lock()
        self._entries: dict[ClientKey, _Entry] = {}
        self._failures: list[Exception] = []
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        """Count the clients that are kept."""
        with self._lock:
            return len(self._entries)

    @contextmanager
    def lend(
        self, key: ClientKey, edition: str, make: Callable[[], SecretsClient]
    ) -> Generator[SecretsClient]:
        """Lend the client of a key, made by whoever asks first; the others wait for it.

        edition: digest of the provider's spec as it is written; clients of an earlier edition go. What `make`
        raises is raised to whoever made it, and nothing is kept.
        """
        entry = self._enter(key, edition)
        try:
            with entry.making:
                if entry.client is None:
                    made = make()
                    entry.made = self._clock()  # first, or another thread takes the client for an old one
                    entry.client = made
                client = entry.client
            yield client
        finally:
            self._leave(key, entry)

    def close(self) -> None:
        """Close every client, each once. Raises ExceptionGroup of what went wrong with any, ever."""
        with self._lock:
            entries, self._entries, self._closed = [*self._entries.values()], {}, True
        for entry in entries:
            self._dismiss(entry)
        with self._lock:
            failures, self._failures = self._failures, []
        if failures:
            raise ExceptionGroup("clients of secret stores could not be closed", failures)

    def _enter(self, key: ClientKey, edition: str) -> _Entry:
        with self._lock:
            if self._closed:
                raise RuntimeError("the manager of clients is closed")
            outdated = [
                each
                for each, entry in self._entries.items()
                if (each.where, each.provider) == (key.where, key.provider)
                and (entry.edition != edition or (each == key and self._is_old(entry)))
            ]
            retired = [self._entries.pop(each) for each in outdated]
            for each in retired:
                each.retired = True
            idle = [each for each in retired if not each.users]
            entry = self._entries.setdefault(key, _Entry(edition))
            entry.users += 1
        for each in idle:
            self._dismiss(each)
        return entry

    def _leave(self, key: ClientKey, entry: _Entry) -> None:
        with self._lock:
            entry.users -= 1
            if entry.users:
                return
            if entry.client is None and self._entries.get(key) is entry:
                del self._entries[key]
        if entry.retired:
            self._dismiss(entry)

    def _is_old(self, entry: _Entry) -> bool:
        return entry.client is not None and self._clock() - entry.made >= self._max_age

    def _dismiss(self, entry: _Entry) -> None:
        with self._lock:
            client, entry.client = entry.client, None
        if client is None:
            return
        try:
            client.close()
        except Exception as error:
            with self._lock:
                self._failures.append(error)
