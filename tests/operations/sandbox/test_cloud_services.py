"""Which stand-ins of cloud services a stack starts, and where they are found until they stop."""

import json
import os
import shlex
import socket
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest
import requests
from pulumi_sandbox.services.cloud.registry import RESOURCE_MANAGER, SECRET_MANAGER, CloudService
from pulumi_sandbox.services.ports import free_ports
from pulumi_sandbox.services.progress import silent
from typer.testing import CliRunner, Result

from components.pull_secret.hyperfleet import HyperFleet
from components.pull_secret.settings import PullSecretsSection
from operations.folders import Folders
from operations.main import app
from operations.sandbox import updates
from operations.sandbox.cloud_services import HYPERFLEET, ports, stand_ins, start
from tests.support.hyperfleet import moment


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["sandbox", *arguments])


def fleet(url: str, clusters: Mapping[str, object] | None = None) -> PullSecretsSection:
    return PullSecretsSection.model_validate({"hyperfleet": {"apiUrl": url}, "clusters": clusters or {}})


@pytest.fixture
def folders(project: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Folders]:
    monkeypatch.setenv("SSL_CERT_FILE", "")  # what a start sets is undone with the test
    yield Folders(project)
    stand_ins(Folders(project)).stop()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({}, {}),
        ({"gcp:secretManagerCustomEndpoint": "http://127.0.0.1:18551/v1/"}, {SECRET_MANAGER: 18551}),
        ({"gcp:secretManagerCustomEndpoint": "http://localhost:18551/v1/"}, {SECRET_MANAGER: 18551}),
        ({"gcp:secretManagerCustomEndpoint": "https://127.0.0.1:18551/v1/"}, {}),
        ({"gcp:secretManagerCustomEndpoint": "https://secretmanager.googleapis.com/v1/"}, {}),
        ({"gcp:secretManagerCustomEndpoint": "http://127.0.0.1/v1/"}, {}),
        ({"azure-native:metadataHost": "127.0.0.1:18552"}, {RESOURCE_MANAGER: 18552}),
        ({"azure-native:metadataHost": "management.azure.com"}, {}),
        ({"azure-native:metadataHost": "127.0.0.1:port"}, {}),
        ({"azure-native:metadataHost": "[127.0.0.1"}, {}),
    ],
)
def test_only_what_a_stack_names_on_loopback_is_started(
    values: dict[str, str], named: dict[CloudService, int]
) -> None:
    assert ports(values, None) == named


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("http://127.0.0.1:18553", {HYPERFLEET: 18553}),
        ("http://localhost:18553/", {HYPERFLEET: 18553}),
        ("https://127.0.0.1:18553", {}),
        ("https://127.0.0.1.example:18553", {}),
        ("https://hyperfleet.example", {}),
    ],
)
def test_hyperfleet_is_started_where_pull_secrets_name_it_on_loopback(
    url: str, named: dict[CloudService, int]
) -> None:
    assert ports({}, fleet(url)) == named
    assert ports({}, PullSecretsSection()) == {}


def test_services_are_found_in_the_status_and_the_exports_until_they_are_stopped(folders: Folders) -> None:
    secret_manager, resource_manager = free_ports(2)
    endpoint = f"http://127.0.0.1:{secret_manager}/v1/"
    host = f"127.0.0.1:{resource_manager}"
    values = {"gcp:secretManagerCustomEndpoint": endpoint, "azure-native:metadataHost": host}
    start(folders, values, None, silent)

    told = json.loads(run("status", "--output", "json").stdout)["services"]
    assert {name: each["address"] for name, each in told.items()} == {
        "secret-manager": f"http://127.0.0.1:{secret_manager}",
        "resource-manager": f"https://127.0.0.1:{resource_manager}",
    }
    assert all(each["running"] and Path(each["log"]).is_file() for each in told.values())
    assert host in run("status").stdout
    words = [shlex.split(line)[1] for line in run("env").stdout.splitlines()]
    exported = dict(word.split("=", 1) for word in words)
    assert exported["SSL_CERT_FILE"] == os.environ["SSL_CERT_FILE"]
    metadata = requests.get(
        f"https://{host}/metadata/endpoints",
        params={"api-version": "2022-09-01"},
        verify=exported["SSL_CERT_FILE"],
        timeout=10,
    )
    assert metadata.json()["resourceManager"] == f"https://{host}"

    assert "✓ stopped" in run("down").stdout
    told = json.loads(run("status", "--output", "json").stdout)["services"]
    assert {(each["running"], each["pid"]) for each in told.values()} == {(False, None)}
    assert "SSL_CERT_FILE" not in run("env").stdout


def test_hyperfleet_is_told_of_the_stacks_clusters_once(folders: Folders) -> None:
    (port,) = free_ports(1)
    clusters = {
        "cls-000000000001": {"name": "east", "generation": 2},
        "cls-000000000002": {
            "name": "west",
            "generation": 1,
            "adapters": {"dns": "False", "validation": "True"},
        },
    }
    url = f"http://127.0.0.1:{port}"
    start(folders, {}, fleet(url, clusters), silent)
    observed = {id_: HyperFleet(url).observe(id_) for id_ in clusters}
    assert [one.known for one in observed.values()] == [True, True]
    assert observed["cls-000000000002"].adapters == {"dns": "False", "validation": "True"}

    changed = {"adapter": "dns", "observed_generation": 1, "observed_time": moment()}
    conditions = [{"type": kind, "status": "True"} for kind in ("Applied", "Available", "Health")]
    HyperFleet(url).report("cls-000000000002", {**changed, "conditions": conditions})
    start(folders, {}, fleet(url, clusters), silent)
    assert HyperFleet(url).observe("cls-000000000002").adapters["dns"] == "True"

    clusters["cls-000000000002"]["generation"] = 2
    start(folders, {}, fleet(url, clusters), silent)
    assert HyperFleet(url).observe("cls-000000000002").adapters["dns"] == "False"


@pytest.mark.parametrize("verb", ["up", "preview", "refresh", "destroy"])
def test_every_command_that_needs_a_stack_starts_its_services_first(
    folders: Folders, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}/v1/"
    stack = f"config:\n  gcp:secretManagerCustomEndpoint: {address}\n  credfleet:tenants: {{}}\n"
    (folders.project / "Pulumi.dev.yaml").write_text(stack)

    def choose(*_: object, **__: object) -> None:
        assert requests.get(f"http://127.0.0.1:{port}/sandbox/service", timeout=10).ok
        raise KeyboardInterrupt

    monkeypatch.setattr(updates, "choose", choose)
    assert run(verb).exit_code != 0
    assert stand_ins(folders).runs(SECRET_MANAGER)


def test_a_taken_port_stops_an_update_before_anything_else_is_done(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def choose(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(updates, "choose", choose)
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        address = f"http://127.0.0.1:{stranger.getsockname()[1]}/v1/"
        stack = f"config:\n  gcp:secretManagerCustomEndpoint: {address}\n  credfleet:tenants: {{}}\n"
        (folders.project / "Pulumi.dev.yaml").write_text(stack)
        result = run("up")
    assert result.exit_code == 1
    assert f"(pid {os.getpid()})" in result.stderr
