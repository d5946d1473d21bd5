"""What HyperFleet's stand-in answers: clusters, and the reports of adapters that keep its contract.

Every answer is held to the published contract when a test ends (`served_hyperfleet`).
"""

from __future__ import annotations

import json
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from pulumi_sandbox.errors import SandboxError

from operations.sandbox.hyperfleet.app import REQUIRED, make_app
from sandbox.tests.support.clouds import Served
from tests.support.cases import tabled
from tests.support.hyperfleet import bring, delete, moment, say, served_hyperfleet

CLUSTERS = "/api/hyperfleet/v1/clusters"
STATUSES = f"{CLUSTERS}/cls-1/statuses"


def report(adapter: str = "pullsecret", generation: object = 1, **states: str) -> dict[str, Any]:
    said = {"Applied": "True", "Available": "True", "Health": "True", **states}
    return {
        "adapter": adapter,
        "observed_generation": generation,
        "observed_time": moment(),
        "conditions": [{"type": kind, "status": state} for kind, state in said.items()],
    }


@pytest.fixture
def service(tmp_path: Path) -> Generator[Served]:
    with served_hyperfleet(tmp_path) as running:
        bring(running, "cls-1", generation=3)
        yield running


def call(service: Served, method: str, path: str, body: object = None) -> requests.Response:
    return requests.request(method, f"{service.url}{path}", json=body, timeout=10)


def reports(service: Served, page: str = "") -> dict[str, int]:
    """Generation that each adapter last reported."""
    items = call(service, "GET", STATUSES + page).json()["items"]
    return {one["adapter"]: one["observed_generation"] for one in items}


def conditions(service: Served) -> dict[str, str]:
    cluster = call(service, "GET", f"{CLUSTERS}/cls-1").json()
    return {one["type"]: one["status"] for one in cluster["status"]["conditions"]}


def test_a_missing_cluster_and_a_wrong_path_are_told_apart(service: Served) -> None:
    for method, path in (("GET", "/cls-2"), ("DELETE", "/cls-2"), ("GET", "/cls-2/statuses")):
        missing = call(service, method, CLUSTERS + path)
        assert (missing.status_code, missing.json()["code"]) == (404, "HYPERFLEET-NTF-002")
    missing = call(service, "PUT", f"{CLUSTERS}/cls-2/statuses", report())
    assert (missing.status_code, missing.json()["code"]) == (404, "HYPERFLEET-NTF-002")
    wrong = call(service, "GET", "/api/hyperfleet/v2/clusters/cls-1")
    assert (wrong.status_code, wrong.json()["code"]) == (404, "HYPERFLEET-NTF-000")


def test_a_report_by_another_verb_is_not_served(service: Served) -> None:
    assert call(service, "POST", STATUSES, report()).status_code == 405
    assert reports(service) == {}


def test_a_report_takes_the_place_of_the_adapters_last_one(service: Served) -> None:
    for one in (report(), report("dns"), report(generation=2)):
        assert call(service, "PUT", STATUSES, one).status_code == 201
    assert reports(service) == {"dns": 1, "pullsecret": 2}


@pytest.mark.parametrize(
    "dropped",
    [
        report(Available="Unknown", generation=2),
        report(generation=4),
        report(generation=1),
        {**report(generation=2), "observed_time": (datetime.now(UTC) - timedelta(minutes=9)).isoformat()},
    ],
    ids=["unknown-again", "a-generation-to-come", "a-former-generation", "an-earlier-look"],
)
def test_a_report_that_adds_nothing_is_dropped_without_a_word(service: Served, dropped: object) -> None:
    call(service, "PUT", STATUSES, report(generation=2))
    answer = call(service, "PUT", STATUSES, dropped)
    assert (answer.status_code, answer.content) == (204, b"")
    assert reports(service) == {"pullsecret": 2}


@tabled("field, value")
def test_a_report_that_breaks_the_contract_is_refused_by_the_fields_name(
    service: Served, field: str, value: object
) -> None:
    answer = call(service, "PUT", STATUSES, {**report(), field: value})
    assert answer.status_code == 400
    assert field in answer.json()["detail"]
    assert reports(service) == {}


def test_reports_are_listed_by_pages(service: Served) -> None:
    for number in range(21):
        say(service.url, "cls-1", f"a-{number:02}")
    assert (len(reports(service)), len(reports(service, "?page=2"))) == (20, 1)


def test_a_cluster_is_reconciled_once_all_its_adapters_are_done_with_its_generation(service: Served) -> None:
    assert conditions(service) == {"Reconciled": "False", "LastKnownReconciled": "False"}
    for adapter in REQUIRED:
        say(service.url, "cls-1", adapter, generation=3)
    assert conditions(service)["Reconciled"] == "True"
    bring(service, "cls-1", generation=4)
    told = conditions(service)
    assert (told["Reconciled"], told["LastKnownReconciled"], told["DnsSuccessful"]) == (
        "False",
        "True",
        "True",
    )


def test_a_cluster_that_is_deleted_goes_with_the_last_adapter_that_has_cleaned_up(service: Served) -> None:
    delete(service, "cls-1")
    deleted = call(service, "GET", f"{CLUSTERS}/cls-1").json()
    assert (deleted["generation"], "deleted_time" in deleted) == (4, True)
    delete(service, "cls-1")
    assert call(service, "GET", f"{CLUSTERS}/cls-1").json() == deleted
    *others, last = REQUIRED
    for adapter in others:
        say(service.url, "cls-1", adapter, generation=4, Finalized="True")
    say(service.url, "cls-1", last, generation=3, Finalized="True")
    assert call(service, "GET", f"{CLUSTERS}/cls-1").status_code == 200
    say(service.url, "cls-1", last, generation=4, Finalized="True")
    assert call(service, "GET", f"{CLUSTERS}/cls-1").status_code == 404


def test_a_cluster_that_is_brought_again_keeps_its_reports(service: Served) -> None:
    say(service.url, "cls-1", "dns")
    bring(service, "cls-1", generation=4)
    assert call(service, "GET", f"{CLUSTERS}/cls-1").json()["generation"] == 4
    assert reports(service) == {"dns": 1}


def test_clusters_and_reports_are_there_after_a_restart(tmp_path: Path) -> None:
    with served_hyperfleet(tmp_path) as first:
        bring(first, "cls-1")
        say(first.url, "cls-1", "dns")
    with served_hyperfleet(tmp_path) as second:
        assert reports(second) == {"dns": 1}


def test_what_an_older_stand_in_has_kept_is_read(tmp_path: Path) -> None:
    kept = {"name": "east", "generation": 2, "status": {"phase": "Ready"}}
    documents = {"clusters": {"cls-1": kept}, "reports": {"cls-1": {"dns": report("dns")}}}
    (tmp_path / "clusters.json").write_text(json.dumps(documents))
    with served_hyperfleet(tmp_path) as running:
        assert call(running, "GET", f"{CLUSTERS}/cls-1").json()["generation"] == 2
        assert reports(running) == {"dns": 1}


def test_a_file_that_holds_no_clusters_is_named(tmp_path: Path) -> None:
    (tmp_path / "clusters.json").write_text("{}")
    with pytest.raises(SandboxError) as told:
        make_app(tmp_path)
    assert told.value.code == "state-unreadable"
