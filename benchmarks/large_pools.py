"""Pools of any number of accounts, made as fast as an API server takes them."""

import base64
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final

from benchmarks.kept_alive import METADATA, Access, KeptAlive, Tally, expect
from components.labels import HYPERSCALER_TYPE

TYPE: Final = "aws"
CREDENTIAL: Final = base64.b64encode(b"never to be downloaded by a claim " * 60).decode()
"""What each account holds: 2 kB, recognizable in any answer."""

_CONNECTIONS: Final = 8


def member_name(number: int) -> str:
    """Name an account; the API server lists them by number."""
    return f"{TYPE}-{number:05d}"


def make_pool(kubeconfig: Path, namespace: str, members: int) -> None:
    """Make the namespace with this many free accounts."""
    access, tally = Access.of(kubeconfig), Tally()
    with closing(KeptAlive(access, tally)) as call:
        expect(call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}), 201)
    path = f"/api/v1/namespaces/{namespace}/secrets"

    def add(first: int) -> None:
        with closing(KeptAlive(access, tally)) as call:
            for number in range(first, members, _CONNECTIONS):
                metadata = {"name": member_name(number), "labels": {HYPERSCALER_TYPE: TYPE}}
                body = {"metadata": metadata, "data": {"credential": CREDENTIAL}}
                expect(call("POST", path, body, accept=METADATA), 201)

    with ThreadPoolExecutor(_CONNECTIONS) as threads:
        for done in [threads.submit(add, first) for first in range(_CONNECTIONS)]:
            done.result()
