"""Pools of any number of accounts, made as fast as an API server takes them."""

import base64
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final

from benchmarks.kept_alive import METADATA, Access, KeptAlive, Tally, expect
from components.labels import ACCOUNT_ID, HYPERSCALER_TYPE

TYPE: Final = "aws"
CREDENTIAL: Final = base64.b64encode(b"never to be downloaded by a claim " * 60).decode()
"""What each account holds: 2 kB, recognizable in any answer."""

_CONNECTIONS: Final = 8


def member_name(number: int) -> str:
    """Name an account; the API server lists them by number."""
    return f"{TYPE}-{number:05d}"


def make_pool(kubeconfig: Path, namespace: str, members: int) -> None:
    """Make the namespace with this many free accounts."""
    with closing(KeptAlive(Access.of(kubeconfig), Tally())) as call:
        expect(call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}), 201)
    fill_pool(kubeconfig, namespace, members)


def fill_pool(kubeconfig: Path, namespace: str, members: int, *, with_ids: bool = False) -> None:
    """Make this many free accounts; with_ids: each says its number as its account's id."""
    access, tally = Access.of(kubeconfig), Tally()
    path = f"/api/v1/namespaces/{namespace}/secrets"

    def add(first: int) -> None:
        with closing(KeptAlive(access, tally)) as call:
            for number in range(first, members, _CONNECTIONS):
                metadata = {"name": member_name(number), "labels": {HYPERSCALER_TYPE: TYPE}}
                ids = {"annotations": {ACCOUNT_ID: f"{number:012}"}} if with_ids else {}
                body = {"metadata": {**metadata, **ids}, "data": {"credential": CREDENTIAL}}
                expect(call("POST", path, body, accept=METADATA), 201)

    with ThreadPoolExecutor(_CONNECTIONS) as threads:
        list(threads.map(add, range(_CONNECTIONS)))
