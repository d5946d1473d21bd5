"""Faults and the journal, which every stand-in has."""

from collections.abc import Generator
from pathlib import Path

import pytest
import requests
from pulumi_sandbox.services.cloud.front import Fault

from sandbox.tests.support.clouds import OWNER, Served, secret_manager

SECRETS = "/v1/projects/acme-prod-1/secrets"
AUTOMATIC = {"replication": {"automatic": {}}}


@pytest.fixture
def service(tmp_path: Path) -> Generator[Served]:
    with secret_manager(tmp_path) as running:
        yield running


def create(service: Served, name: str = "orders") -> requests.Response:
    return requests.post(
        f"{service.url}{SECRETS}", json=AUTOMATIC, params={"secretId": name}, headers=OWNER, timeout=10
    )


def read(service: Served, name: str = "orders") -> requests.Response:
    return requests.get(f"{service.url}{SECRETS}/{name}", headers=OWNER, timeout=10)


@pytest.mark.parametrize(
    ("status", "name"),
    [(429, "RESOURCE_EXHAUSTED"), (503, "UNAVAILABLE")],
)
def test_a_refusal_meets_as_many_requests_as_it_was_asked_for_and_no_write(
    service: Served, status: int, name: str
):
    service.service.faults.append(Fault(method="POST", status=status, times=2))
    for _ in range(2):
        refused = create(service)
        assert (refused.status_code, refused.json()["error"]["status"]) == (status, name)
    assert read(service).status_code == 404
    assert create(service).status_code == 200


def test_a_lost_answer_leaves_the_write_behind_and_the_connection_closed(service: Served):
    service.service.faults.append(Fault(lost=True))
    with pytest.raises(requests.ConnectionError):
        create(service)
    assert read(service).status_code == 200
    assert [request.status for request in service.service.requests] == [None, 200]


def test_a_delay_is_waited_for_and_then_the_request_is_served(service: Served):
    service.service.faults.append(Fault(seconds=0.5))
    with pytest.raises(requests.Timeout):
        requests.get(f"{service.url}{SECRETS}", headers=OWNER, timeout=0.05)
    assert requests.get(f"{service.url}{SECRETS}", headers=OWNER, timeout=10).status_code == 200


def test_only_requests_that_match_meet_a_fault(service: Served):
    service.service.faults.append(Fault(path="/first$", method="GET", status=503))
    create(service, "first")
    create(service, "second")
    assert read(service, "second").status_code == 200
    assert read(service, "first").status_code == 503
    assert read(service, "first").status_code == 200


def test_faults_that_can_be_come_over_http_as_well(service: Served):
    fault = {"path": "x", "status": 429, "times": 3}
    assert requests.post(f"{service.url}/sandbox/faults", json=fault, timeout=10).ok
    for wrong in ({"colour": 1}, {"path": "("}):
        refused = requests.post(f"{service.url}/sandbox/faults", json=wrong, timeout=10)
        assert refused.status_code == 400
    assert service.service.faults == [Fault(path="x", status=429, times=3)]


def test_the_journal_names_requests_in_their_order_without_what_they_carried(service: Served):
    create(service)
    read(service)
    seen = requests.get(f"{service.url}/sandbox/requests", timeout=10).json()
    assert [(each["method"], each["path"], each["query"], each["status"]) for each in seen] == [
        ("POST", SECRETS, "secretId=orders", 200),
        ("GET", f"{SECRETS}/orders", "", 200),
    ]
    assert {*seen[0]} == {"began", "ended", "method", "path", "query", "status"}
    requests.delete(f"{service.url}/sandbox/requests", timeout=10)
    assert service.service.requests == []
