"""HyperFleet's stand-in in the test's own process, on a free port."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import requests

from operations.sandbox.hyperfleet.app import make_app
from sandbox.tests.support.clouds import Served, served


@contextmanager
def served_hyperfleet(folder: Path) -> Generator[Served]:
    """Serve HyperFleet over a folder; `pullSecrets.hyperfleet.apiUrl` is `url`.

    It knows no cluster until `bring` has brought one.
    """
    with served(make_app(folder)) as running:
        yield running


def bring(running: Served, id_: str, *, generation: int = 1, phase: str = "NotReady") -> None:
    """Let HyperFleet know a cluster; what is known of it already is replaced, but for its reports."""
    cluster = {"name": id_, "generation": generation, "status": {"phase": phase}}
    answer = requests.put(f"{running.url}/sandbox/clusters/{id_}", json=cluster, timeout=10)
    answer.raise_for_status()
