"""What HyperFleet's stand-in answers: clusters, and the reports of adapters that keep its contract."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import requests
from pulumi_sandbox.errors import SandboxError

from operations.sandbox.hyperfleet.app import make_app
from sandbox.tests.support.clouds import Served
from tests.support.hyperfleet import bring, served_hyperfleet

CLUSTERS = "/api/hyperfleet/v1/clusters"


def report(adapter: str = "pullsecret", generation: object = 1, **states: str) -> dict[str, Any]:
    said = {"Applied": "True", "Available": "True", "Health": "True", **states}
    return {
        "adapter": adapter,
        "observed_generation": generation,
        "observed_time": "2026-01-01T00:00:00Z",
        "conditions": [{"type": kind, "status": state} for kind, state in said.items()],
    }


@pytest.fixture
def service(tmp_path: Path) -> Generator[Served]:
    with served_hyperfleet(tmp_path) as running:
        bring(running, "cls-1", generation=3, phase="Ready")
        yield running


def call(service: Served, method: str, path: str, body: object = None) -> requests.Response:
    return requests.request(method, f"{service.url}{path}", json=body, timeout=10)


def reports(service: Served, cluster: str = "cls-1") -> list[dict[str, Any]]:
    return call(service, "GET", f"{CLUSTERS}/{cluster}/statuses").json()["items"]


def test_a_cluster_tells_its_generation_and_phase(service: Served) -> None:
    cluster = call(service, "GET", f"{CLUSTERS}/cls-1").json()
    assert (cluster["id"], cluster["generation"], cluster["status"]) == ("cls-1", 3, {"phase": "Ready"})


def test_a_missing_cluster_and_a_wrong_path_are_told_apart(service: Served) -> None:
    for path in ("/cls-2", "/cls-2/statuses"):
        missing = call(service, "GET", CLUSTERS + path)
        assert (missing.status_code, missing.json()["code"]) == (404, "HYPERFLEET-NTF-001")
    missing = call(service, "POST", f"{CLUSTERS}/cls-2/statuses", report())
    assert (missing.status_code, missing.json()["code"]) == (404, "HYPERFLEET-NTF-001")
    wrong = call(service, "GET", "/api/hyperfleet/v2/clusters/cls-1")
    assert (wrong.status_code, wrong.json()["code"]) == (404, "HYPERFLEET-NTF-000")


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_report_takes_the_place_of_the_adapters_last_one(service: Served, method: str) -> None:
    path = f"{CLUSTERS}/cls-1/statuses"
    assert call(service, method, path, report()).status_code == 201
    assert call(service, method, path, report("dns")).status_code == 201
    assert call(service, method, path, report(generation=2)).status_code == 200
    assert reports(service) == [report("dns"), report(generation=2)]


def test_a_report_that_does_not_know_whether_it_is_available_is_dropped(service: Served) -> None:
    path = f"{CLUSTERS}/cls-1/statuses"
    call(service, "POST", path, report())
    assert call(service, "POST", path, report(Available="Unknown")).status_code == 204
    assert reports(service) == [report()]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("adapter", ""),
        ("observed_generation", 0),
        ("observed_generation", 1.5),
        ("observed_generation", "1"),
        ("observed_time", "yesterday"),
        ("observed_time", "2026-01-01T00:00:00"),
        ("conditions", []),
        ("conditions", [{"type": "Available", "status": "yes"}]),
    ],
)
def test_a_report_that_breaks_the_contract_is_refused_by_the_fields_name(
    service: Served, field: str, value: object
) -> None:
    answer = call(service, "POST", f"{CLUSTERS}/cls-1/statuses", {**report(), field: value})
    assert answer.status_code == 400
    assert field in answer.json()["reason"]
    assert reports(service) == []


def test_a_cluster_that_is_brought_again_keeps_its_reports(service: Served) -> None:
    call(service, "POST", f"{CLUSTERS}/cls-1/statuses", report())
    bring(service, "cls-1", generation=4)
    assert call(service, "GET", f"{CLUSTERS}/cls-1").json()["generation"] == 4
    assert reports(service) == [report()]


def test_clusters_and_reports_are_there_after_a_restart(tmp_path: Path) -> None:
    with served_hyperfleet(tmp_path) as first:
        bring(first, "cls-1")
        call(first, "POST", f"{CLUSTERS}/cls-1/statuses", report())
    with served_hyperfleet(tmp_path) as second:
        assert reports(second) == [report()]


def test_a_file_that_holds_no_clusters_is_named(tmp_path: Path) -> None:
    (tmp_path / "clusters.json").write_text("{}")
    with pytest.raises(SandboxError) as told:
        make_app(tmp_path)
    assert told.value.code == "state-unreadable"
