"""When anything in some folders of the API changes, told by watches of the API server; metadata only."""

from __future__ import annotations

from collections.abc import Iterable
from queue import SimpleQueue
from threading import Thread
from time import sleep
from typing import Final

from components.connection import Connection, NoReply

_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_LIST: Final = _METADATA.replace("Metadata;", "MetadataList;")
_OK: Final = 200
_PAUSE_SECONDS: Final = 2.0
"""Between two looks of who may not watch, or whose API server does not answer."""


def folders(namespace: str) -> tuple[str, str]:
    """Return where a pool keeps its accounts, and its records and settings."""
    return f"/api/v1/namespaces/{namespace}/secrets", f"/api/v1/namespaces/{namespace}/configmaps"


class Changes:
    """Follows folders of the API; nothing that changes after `follow` returned is missed by `wait`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._told: SimpleQueue[str] = SimpleQueue()
        self._followed: set[str] = set()

    def follow(self, paths: Iterable[str]) -> bool:
        """Follow these as well; whether any of them was not followed yet."""
        added = {*paths} - self._followed
        self._followed |= added
        for path in added:
            version = self._version(path)
            Thread(target=self._tell, args=(path, version), name=f"watch {path}", daemon=True).start()
        return bool(added)

    def wait(self) -> None:
        """Return once something changed since the last call, or may have: then whoever asks looks again."""
        self._told.get()
        while not self._told.empty():
            self._told.get()

    def _tell(self, path: str, version: str) -> None:
        """Tell each change; a watch that ends, as all do, is begun anew where one may have been missed."""
        while True:
            if version:
                asked = (
                    f"{path}{'&' if '?' in path else '?'}watch=1&timeoutSeconds=300&resourceVersion={version}"
                )
                try:
                    for _ in self._connection.lines(asked, accept=_METADATA):
                        self._told.put(path)
                except NoReply:
                    sleep(_PAUSE_SECONDS)
            else:
                sleep(_PAUSE_SECONDS)
            version = self._version(path)
            self._told.put(path)

    def _version(self, path: str) -> str:
        """Return from where a watch begins; empty for who may not even list, and where nobody answers."""
        try:
            reply = self._connection.call("GET", f"{path}{'&' if '?' in path else '?'}limit=1", accept=_LIST)
        except NoReply:
            return ""
        return str(reply.body["metadata"]["resourceVersion"]) if reply.status == _OK else ""
