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
    named,
)
from pulumi_sandbox.services.ports import free_ports
from pulumi_sandbox.services.progress import silent
from typer.testing import CliRunner, Result

from components.open_ports import VARIABLES
from components.pull_secret.hyperfleet import HyperFleet
from components.pull_secret.settings import PullSecretsSection
from operations.folders import Folders
from operations.main import app
from operations.sandbox import updates
from operations.sandbox.cloud_services import HYPERFLEET, SERVICES, stand_ins, start
from tests.support.cases import tabled
from tests.support.hyperfleet import moment


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["sandbox", *arguments])


def exported() -> dict[str, str]:
    """Return what a shell gets for stack dev."""
    words = [shlex.split(line)[1] for line in run("env").stdout.splitlines()]
    return dict(word.split("=", 1) for word in words)


def fleet(url: str, clusters: Mapping[str, object]) -> tuple[dict[str, str], PullSecretsSection]:
    section = {"hyperfleet": {"apiUrl": url}, "clusters": clusters}
    return {FLEET: json.dumps(section)}, PullSecretsSection.model_validate(section)


@pytest.fixture
def folders(project: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Folders]:
    monkeypatch.setenv("SSL_CERT_FILE", "")  # what a start sets is undone with the test
    yield Folders(project)
    stand_ins(Folders(project)).stop()


GCP, AZURE, FLEET = "gcp:secretManagerCustomEndpoint", "azure-native:metadataHost", "credfleet:pullSecrets"


@tabled("values, ports")
def test_only_what_a_stack_names_on_loopback_is_started(
    values: dict[str, str], ports: dict[str, int]
) -> None:
    assert {service.name: port for service, port in named(values, SERVICES).items()} == ports


def test_ports_that_a_file_leaves_open_are_told_to_a_shell_by_variables(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        f"config:\n  {GCP}: http://127.0.0.1:0/v1/\n  {AZURE}: 127.0.0.1:18552\n"
        f'  {FLEET}:\n    hyperfleet: {{apiUrl: "http://127.0.0.1:0"}}\n'
    )
    (folders.project / "Pulumi.dev.yaml").write_text(text)
    assert not {*VARIABLES.values()} & exported().keys()
    for service, port in {SECRET_MANAGER: 21, RESOURCE_MANAGER: 22, HYPERFLEET: 23}.items():
        record = folders.clouds / service.name / "service.json"
        record.parent.mkdir(parents=True)
        record.write_text(json.dumps({"port": port}))

    variables = exported()
    assert variables["GOOGLE_SECRET_MANAGER_CUSTOM_ENDPOINT"] == "http://127.0.0.1:21/v1/"
    assert variables["HYPERFLEET_API_URL"] == "http://127.0.0.1:23"
    assert "ARM_METADATA_HOSTNAME" not in variables, "its port is in the file"
    assert (folders.project / "Pulumi.dev.yaml").read_text() == text

    (folders.project / "Pulumi.prod.yaml").touch()
    monkeypatch.setenv("HYPERFLEET_API_URL", "http://of-a-former-stack")
    assert "unset HYPERFLEET_API_URL\n" in run("env", "--stack", "prod").stdout


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
    variables = exported()
    assert variables["SSL_CERT_FILE"] == os.environ["SSL_CERT_FILE"]
    metadata = requests.get(
        f"https://{host}/metadata/endpoints",
        params={"api-version": "2022-09-01"},
        verify=variables["SSL_CERT_FILE"],
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


def test_an_update_starts_the_services_of_its_stack_first(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = f"config:\n  {GCP}: http://127.0.0.1:0/v1/\n  credfleet:tenants: {{}}\n"
    (folders.project / "Pulumi.dev.yaml").write_text(stack)

    def choose(*_: object, **__: object) -> None:
        (started,) = stand_ins(folders).started()
        assert requests.get(f"{started.address}/sandbox/service", timeout=10).ok
        raise KeyboardInterrupt

    monkeypatch.setattr(updates, "choose", choose)
    assert run("up").exit_code != 0
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
