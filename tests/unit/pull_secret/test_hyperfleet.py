"""What HyperFleet tells of clusters and is told of pull secrets: 404, errors, repetition."""

from __future__ import annotations

from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
import requests
from pulumi_sandbox.services.cloud.front import Fault
from pulumi_sandbox.services.ports import LOOPBACK

from components.errors import PullSecretError
from components.pull_secret.hyperfleet import TOKEN, HyperFleet, read_observed, render_observed
from components.pull_secret.model import Availability, Observed, Phase
from components.pull_secret.status import of_verified, report
from operations.sandbox.hyperfleet.app import REQUIRED
from sandbox.tests.support.clouds import Served
from tests.support.cases import tabled
from tests.support.hyperfleet import bring, delete, moment, say, served_hyperfleet

EAST = "cls-1"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    with served_hyperfleet(tmp_path_factory.mktemp("hyperfleet"), of_client=True) as running:
        yield running


@pytest.fixture
def hyperfleet(served: Served) -> Generator[HyperFleet]:
    bring(served, EAST, generation=3)
    yield HyperFleet(served.url, seconds=5.0)
    served.service.faults.clear()


def a_report(generation: int, observed_at: str | None = None) -> dict[str, Any]:
    return report(generation, of_verified(1, ""), {}, observed_at or moment())


def test_a_cluster_is_told_with_what_each_adapter_last_said(served: Served, hyperfleet: HyperFleet) -> None:
    say(served.url, EAST, "dns")
    say(served.url, EAST, "validation", Available="False")
    observed = hyperfleet.observe(EAST)
    assert (observed.phase, observed.deleted_time) == (None, None)
    assert {name: observed.adapters[name] for name in ("dns", "validation")} == {
        "dns": Availability.TRUE,
        "validation": Availability.FALSE,
    }


def test_a_cluster_is_ready_once_hyperfleet_says_it_is_reconciled(
    served: Served, hyperfleet: HyperFleet
) -> None:
    bring(served, "cls-ready")
    for adapter in REQUIRED:
        say(served.url, "cls-ready", adapter)
    assert hyperfleet.observe("cls-ready").phase is Phase.READY
    bring(served, "cls-ready", generation=2)
    assert hyperfleet.observe("cls-ready").phase is None


def test_a_cluster_that_is_deleted_is_told_with_the_time_and_its_generation(
    served: Served, hyperfleet: HyperFleet
) -> None:
    bring(served, "cls-leaving", generation=3)
    assert hyperfleet.deletion("cls-leaving") is None
    delete(served, "cls-leaving")
    assert (hyperfleet.observe("cls-leaving").deleted_time or "").endswith("Z")
    assert hyperfleet.deletion("cls-leaving") == 4


def test_what_adapters_report_is_read_to_the_last_page(served: Served, hyperfleet: HyperFleet) -> None:
    bring(served, "cls-many")
    for number in range(21):
        say(served.url, "cls-many", f"a-{number}")
    assert len(hyperfleet.observe("cls-many").adapters) == 21


def test_a_cluster_hyperfleet_does_not_know_is_no_failure(hyperfleet: HyperFleet) -> None:
    assert hyperfleet.observe("cls-unknown") == Observed({}, known=False)


class _SignIn(BaseHTTPRequestHandler):
    """What stands in front of many an API."""

    def do_GET(self) -> None:
        self.send_response(404 if "gone" in self.path else 200)
        self.end_headers()
        self.wfile.write(b"<html>sign in</html>")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(("path", "status"), [("", 200), ("/gone", 404)])
def test_a_page_for_people_tells_nothing_of_a_cluster(path: str, status: int) -> None:
    with HTTPServer((LOOPBACK, 0), _SignIn) as page:
        Thread(target=page.handle_request, daemon=True).start()
        with pytest.raises(PullSecretError, match=f"HTTP {status}, and in a form that is not its own"):
            HyperFleet(f"http://{LOOPBACK}:{page.server_port}{path}").observe(EAST)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_passes_is_tried_again(served: Served, hyperfleet: HyperFleet, status: int) -> None:
    served.service.faults.append(Fault(path="clusters", status=status, times=2))
    assert hyperfleet.observe(EAST).known


def test_no_answer_is_a_failure_once_the_time_is_over(served: Served) -> None:
    served.service.faults.append(Fault(path="clusters", status=503, times=10_000))
    with pytest.raises(PullSecretError) as failed:
        HyperFleet(served.url, seconds=0.3).observe(EAST)
    served.service.faults.clear()
    assert failed.value.code == "hyperfleet-unreachable"


def test_a_report_whose_answer_is_lost_is_made_again_and_is_one_report(
    served: Served, hyperfleet: HyperFleet
) -> None:
    served.service.faults.append(Fault(path="statuses", method="PUT", lost=True))
    hyperfleet.report(EAST, a_report(3))
    path = f"{served.url}/api/hyperfleet/v1/clusters/{EAST}/statuses"
    items = requests.get(path, timeout=10).json()["items"]
    assert [one["observed_generation"] for one in items if one["adapter"] == "pullsecret"] == [3]


def test_a_report_that_hyperfleet_drops_is_a_failure(hyperfleet: HyperFleet) -> None:
    with pytest.raises(PullSecretError, match="drops a report about generation 4") as failed:
        hyperfleet.report(EAST, a_report(4))
    assert failed.value.code == "hyperfleet-dropped"


def test_the_token_of_the_environment_is_sent_and_never_shown(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, "sentinel-token")
    served.service.faults.append(Fault(path="clusters", status=401))
    with pytest.raises(PullSecretError) as failed:
        HyperFleet(served.url).observe(EAST)
    assert "sentinel-token" not in str(failed.value)


def test_what_was_observed_is_read_back_as_it_was_written() -> None:
    observed = {
        "cls-1": Observed({"dns": Availability.FALSE, "validation": Availability.TRUE}, Phase.READY),
        "cls-2": Observed({}, known=False),
        "cls-3": Observed({"dns": Availability.UNKNOWN}, Phase.DELETING),
        "cls-4": Observed({}, deleted_time="2026-01-01T00:00:00Z"),
    }
    assert read_observed(render_observed(observed, "2026-01-01T00:00:00Z")) == observed


@tabled("text")
def test_a_file_nobody_wrote_so_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ValueError, match="credfleet pull-secret observe"):
        read_observed(text)
