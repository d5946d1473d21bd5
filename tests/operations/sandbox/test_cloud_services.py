"""Which stand-ins of cloud services a stack starts, and where they are found until they stop."""

import json
import os
import shlex
import socket
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest
import requests
from pulumi_sandbox.services.cloud.registry import (
    RESOURCE_MANAGER,
    SECRET_MANAGER,
    CloudService,
    named,
    settled,
)
from pulumi_sandbox.services.ports import free_ports
from pulumi_sandbox.services.progress import silent
from typer.testing import CliRunner, Result

from components.pull_secret.hyperfleet import HyperFleet
from components.pull_secret.settings import PullSecretsSection
from operations.folders import Folders
from operations.main import app
from operations.sandbox import updates
from operations.sandbox.cloud_services import HYPERFLEET, SERVICES, stand_ins, start
from tests.support.hyperfleet import moment


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["sandbox", *arguments])


def fleet(url: str, clusters: Mapping[str, object]) -> tuple[dict[str, str], PullSecretsSection]:
    section = {"hyperfleet": {"apiUrl": url}, "clusters": clusters}
    return {FLEET: json.dumps(section)}, PullSecretsSection.model_validate(section)


@pytest.fixture
def folders(project: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Folders]:
    monkeypatch.setenv("SSL_CERT_FILE", "")  # what a start sets is undone with the test
    yield Folders(project)
    stand_ins(Folders(project)).stop()


GCP, AZURE, FLEET = "gcp:secretManagerCustomEndpoint", "azure-native:metadataHost", "credfleet:pullSecrets"


@pytest.mark.parametrize(
    ("values", "ports"),
    [
        ({}, {}),
        ({GCP: "http://127.0.0.1:18551/v1/"}, {SECRET_MANAGER: 18551}),
        ({GCP: "http://localhost:18551/v1/"}, {SECRET_MANAGER: 18551}),
        ({GCP: "http://localhost:0/v1/"}, {SECRET_MANAGER: 0}),
        ({GCP: "https://127.0.0.1:18551/v1/"}, {}),
        ({GCP: "https://secretmanager.googleapis.com/v1/"}, {}),
        ({GCP: "http://127.0.0.1/v1/"}, {}),
        ({AZURE: "127.0.0.1:18552"}, {RESOURCE_MANAGER: 18552}),
        ({AZURE: "management.azure.com"}, {}),
        ({AZURE: "127.0.0.1:port"}, {}),
        ({AZURE: "[127.0.0.1"}, {}),
        ({FLEET: '{"hyperfleet": {"apiUrl": "http://127.0.0.1:18553"}}'}, {HYPERFLEET: 18553}),
        ({FLEET: '{"hyperfleet": {"apiUrl": "http://localhost:18553/"}}'}, {HYPERFLEET: 18553}),
        ({FLEET: '{"hyperfleet": {"apiUrl": "https://127.0.0.1:18553"}}'}, {}),
        ({FLEET: '{"hyperfleet": {"apiUrl": "https://127.0.0.1.example:18553"}}'}, {}),
        ({FLEET: '{"hyperfleet": {"apiUrl": "https://hyperfleet.example"}}'}, {}),
        ({FLEET: '{"clusters": {}}'}, {}),
        ({FLEET: "no JSON"}, {}),
    ],
)
def test_only_what_a_stack_names_on_loopback_is_started(
    values: dict[str, str], ports: dict[CloudService, int]
) -> None:
    assert named(values, SERVICES) == ports


def test_a_port_that_is_left_open_is_put_where_it_is_left_open_and_nowhere_else() -> None:
    sections = {"hyperfleet": {"apiUrl": "http://127.0.0.1:0"}, "clusters": {"a": {"name": "127.0.0.1:0"}}}
    values = {GCP: "http://127.0.0.1:1/v1/", AZURE: "127.0.0.1:0", FLEET: json.dumps(sections)}

    given = settled(values, dict(zip((SECRET_MANAGER, RESOURCE_MANAGER, HYPERFLEET), (1, 2, 3), strict=True)))

    assert given.keys() == {AZURE, FLEET}
    assert given[AZURE] == "127.0.0.1:2"
    sections["hyperfleet"] = {"apiUrl": "http://127.0.0.1:3"}
    assert json.loads(given[FLEET]) == sections


def test_the_genuine_cli_gets_the_ports_by_a_copy_of_the_stacks_file(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'config:\n  {GCP}: http://127.0.0.1:0/v1/ # open\n  {FLEET}:\n    hyperfleet: {{apiUrl: "http://127.0.0.1:0"}}\n'
    (folders.project / "Pulumi.dev.yaml").write_text(text)
    assert "CONFIG_FILE" not in run("env").stdout
    ports = {SECRET_MANAGER: 21, HYPERFLEET: 23}
    for service, port in ports.items():
        record = folders.clouds / service.name / "service.json"
        record.parent.mkdir(parents=True)
        record.write_text(json.dumps({"port": port}))

    assert f"export PULUMI_OPTION_CONFIG_FILE={folders.settled('dev')}\n" in run("env").stdout
    copy = folders.settled("dev").read_text()
    assert copy == text.replace("127.0.0.1:0/", "127.0.0.1:21/").replace('127.0.0.1:0"', '127.0.0.1:23"')
    assert (folders.project / "Pulumi.dev.yaml").read_text() == text
    monkeypatch.setenv("PULUMI_OPTION_CONFIG_FILE", "of a former stack")
    assert "unset PULUMI_OPTION_CONFIG_FILE\n" in run("env", "--stack", "prod").stdout


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
    start(folders, *fleet(url, clusters), silent)
    observed = {id_: HyperFleet(url).observe(id_) for id_ in clusters}
    assert [one.known for one in observed.values()] == [True, True]
    assert observed["cls-000000000002"].adapters == {"dns": "False", "validation": "True"}

    changed = {"adapter": "dns", "observed_generation": 1, "observed_time": moment()}
    conditions = [{"type": kind, "status": "True"} for kind in ("Applied", "Available", "Health")]
    HyperFleet(url).report("cls-000000000002", {**changed, "conditions": conditions})
    start(folders, *fleet(url, clusters), silent)
    assert HyperFleet(url).observe("cls-000000000002").adapters["dns"] == "True"

    clusters["cls-000000000002"]["generation"] = 2
    start(folders, *fleet(url, clusters), silent)
    assert HyperFleet(url).observe("cls-000000000002").adapters["dns"] == "False"


@pytest.mark.parametrize("verb", ["up", "preview", "refresh", "destroy"])
def test_every_command_that_needs_a_stack_starts_its_services_first(
    folders: Folders, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    stack = f"config:\n  {GCP}: http://127.0.0.1:0/v1/\n  credfleet:tenants: {{}}\n"
    (folders.project / "Pulumi.dev.yaml").write_text(stack)

    def choose(*_: object, **__: object) -> None:
        (started,) = stand_ins(folders).started()
        assert requests.get(f"{started.address}/sandbox/service", timeout=10).ok
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
