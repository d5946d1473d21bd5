"""Calls by hand: one kept-alive connection with as little Python around it as there can be, and counts."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final
from urllib.parse import urlsplit

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True, slots=True)
class Traffic:
    """What went over the wire.

    received: bytes of answers. events: of the calls, those that wrote an Event.
    """

    calls: int = 0
    events: int = 0
    conflicts: int = 0
    received: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))


class Tally:
    """Counts the traffic of any number of threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._traffic = Traffic()

    def add(self, method: str, path: str, status: int, received: int) -> None:
        """Count one answered call."""
        is_event = method == "POST" and "/events" in path
        with self._lock:
            self._traffic += Traffic(1, int(is_event), int(status == 409), received)

    def take(self) -> Traffic:
        """Return what was counted since the last time."""
        with self._lock:
            traffic, self._traffic = self._traffic, Traffic()
        return traffic


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a server: its address, and for an API server the user's token and the CA's file."""

    address: str
    token: str = ""
    authority: str | None = None

    @classmethod
    def of(cls, kubeconfig: Path) -> Access:
        """Read it from a kubeconfig, as the official client does."""
        from kubernetes import config
        from kubernetes.client import Configuration

        read = Configuration()
        config.load_kube_config(config_file=str(kubeconfig), client_configuration=read)
        bearer = read.auth_settings().get("BearerToken")
        return cls(str(read.host), str(bearer["value"]) if bearer else "", read.ssl_ca_cert)


class KeptAlive:
    """One connection of one claimer, to be closed by who opened it."""

    def __init__(self, access: Access, tally: Tally) -> None:
        server = urlsplit(access.address)
        host, port = str(server.hostname), server.port
        if server.scheme == "https":
            trust = ssl.create_default_context(cafile=access.authority)
            self._connection = http.client.HTTPSConnection(host, port, context=trust)
        else:
            self._connection = http.client.HTTPConnection(host, port)
        self._token = access.token
        self._tally = tally

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def __call__(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        accept: str = JSON,
        content_type: str = JSON,
    ) -> tuple[int, Any]:
        """Make one call and read its answer: the status, and the JSON in it or else its text."""
        headers = {"Accept": accept}
        if self._token:
            headers["Authorization"] = self._token
        if body is not None:
            headers["Content-Type"] = content_type
        self._connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
        response = self._connection.getresponse()
        text = response.read()
        self._tally.add(method, path, response.status, len(text))
        return response.status, json.loads(text) if text.startswith(b"{") else text.decode()


def expect(answer: tuple[int, Any], *statuses: int) -> Any:
    """Return the body of an answer with one of these statuses; any other ends the benchmark."""
    status, body = answer
    if status not in statuses:
        raise SystemExit(f"unexpected HTTP {status}: {body}")
    return body
