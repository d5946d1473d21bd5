"""HyperFleet's stand-in in the test's own process, on a free port."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import requests

from operations.sandbox.hyperfleet.app import make_app
from sandbox.tests.support.clouds import Served, served
from sandbox.tests.witness.contract import Contract
from tests.support.stacks import ROOT

CONTRACTS = ROOT / "tests" / "witness" / "contracts"
NEWEST = Contract(CONTRACTS / "hyperfleet-v1.0.24.json")


@contextmanager
def served_hyperfleet(folder: Path, *, of_client: bool = False) -> Generator[Served]:
    """Serve HyperFleet over a folder; `pullSecrets.hyperfleet.apiUrl` is `url`.

    It knows no cluster until `bring` has brought one. What is said is held to its contract; of_client: also
    what a request asks that is refused.
    """
    with served(make_app(folder), contract=NEWEST, of_client=of_client) as running:
        yield running


def bring(running: Served, id_: str, *, generation: int = 1) -> None:
    """Let HyperFleet know a cluster; what is known of it already is replaced, but for its reports."""
    cluster = {"name": id_, "generation": generation}
    answer = requests.put(f"{running.url}/sandbox/clusters/{id_}", json=cluster, timeout=10)
    answer.raise_for_status()


def delete(running: Served, id_: str) -> None:
    """Let HyperFleet begin to delete a cluster."""
    path = f"{running.url}/api/hyperfleet/v1/clusters/{id_}"
    requests.delete(path, timeout=10).raise_for_status()


def say(url: str, id_: str, adapter: str, generation: int = 1, **states: str) -> None:
    """Let an adapter report to the HyperFleet at a URL that all is well, but for what is said."""
    conditions = {"Applied": "True", "Available": "True", "Health": "True", **states}
    body = {
        "adapter": adapter,
        "observed_generation": generation,
        "observed_time": moment(),
        "conditions": [{"type": kind, "status": state} for kind, state in conditions.items()],
    }
    path = f"{url}/api/hyperfleet/v1/clusters/{id_}/statuses"
    requests.put(path, json=body, timeout=10).raise_for_status()


def moment() -> str:
    """Return the present one, RFC 3339: HyperFleet takes no report that is older than half an hour."""
    return datetime.now(UTC).isoformat()
