"""A program of the genuine SDKs, deployed with the stand-in providers against the stand-in services."""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
import requests
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.protocol.values import Properties, Secret
from pulumi_sandbox.services.cloud.faults import Fault

from sandbox.tests.support.clouds import OWNER, Served, resource_manager, secret_manager, trusted
from sandbox.tests.support.engine_stack import Outcome, Stack
from sandbox.tests.support.recording_provider import RecordingProvider

PROGRAM = Path(__file__).parent / "programs" / "clouds"
NAMES = {"entry", "version", "reader", "group", "identity", "federation", "assignment"}
PAYLOAD = "a payload nobody sees"


@dataclass(frozen=True)
class Site:
    """The stack, and the clouds it deploys into."""

    stack: Stack
    google: Served
    azure: Served

    def configure(self, cluster: str, payload: str = PAYLOAD) -> None:
        self.stack.configure(
            f"  gcp:project: acme-prod\n"
            f"  gcp:secretManagerCustomEndpoint: {self.google.url}/v1/\n"
            f"  azure-native:metadataHost: {self.azure.authority}\n"
            f"  azure-native:subscriptionId: 00000000-0000-4000-8000-000000000001\n"
            f"  test:cluster: {cluster}\n"
            f"  test:payload:\n    secure: {self.stack.crypter.encrypt(payload)}\n"
        )

    def secret(self, path: str = "") -> requests.Response:
        path = f"/v1/projects/acme-prod/secrets/pull{path}"
        return requests.get(f"{self.google.url}{path}", headers=OWNER, timeout=5)

    def reject_writes(self) -> None:
        """Refuse every further write, until `accept_writes`."""
        for served in (self.google, self.azure):
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                served.service.faults.add(Fault(method=method, status=403, times=1000))

    def accept_writes(self) -> None:
        for served in (self.google, self.azure):
            served.service.faults.clear()


@pytest.fixture
def site(
    tmp_path: Path,
    crypter: PassphraseCrypter,
    provider: RecordingProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> Generator[Site]:
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted()))
    stack = Stack.genuine(tmp_path / "project", crypter, provider, PROGRAM)
    with secret_manager(tmp_path / "google") as google, resource_manager(tmp_path / "azure") as azure:
        site = Site(stack, google, azure)
        site.configure("one")
        yield site


def ops(outcome: Outcome) -> dict[str, list[str]]:
    """Return what was done to each resource of the clouds."""
    assert outcome.code == 0, outcome.messages
    return {name: outcome.ops(name) for name in NAMES}


def test_all_resources_go_through_their_lives_and_a_version_others_destroyed_is_made_anew(site: Site):
    stack = site.stack
    site.reject_writes()
    assert ops(stack.preview()) == {name: ["create"] for name in NAMES}
    site.accept_writes()
    made = stack.up()
    assert ops(made) == {name: ["create"] for name in NAMES}
    assert PAYLOAD not in made.text + stack.state_text
    record = stack.resource("version")
    assert record.inputs["secretData"] == record.outputs["secretData"] == Secret(PAYLOAD)
    assert site.secret("/versions/1").json()["state"] == "ENABLED"
    outputs = stack.snapshot.resources[0].outputs
    assert outputs["listed"] == 0
    assert outputs["version"] == stack.resource("version").id
    assert outputs["clientId"] == stack.resource("identity").outputs["clientId"]

    assert ops(stack.refresh()) == {name: ["same"] for name in NAMES}
    assert ops(stack.up(expect_no_changes=True)) == {name: ["same"] for name in NAMES}

    site.configure("two", "another payload nobody sees")
    changed = ops(stack.up())
    assert changed["entry"] == changed["federation"] == ["update"]
    assert changed["version"] == ["create-replacement", "replace", "delete-replaced"]
    assert {name for name, done in changed.items() if done == ["same"]} == {
        "reader",
        "group",
        "identity",
        "assignment",
    }
    assert site.secret().json()["labels"]["cluster"] == "two"
    assert site.secret("/versions/1").json()["state"] == "ENABLED"

    lost = f"{site.google.url}/v1/{stack.resource('version').id}:destroy"
    requests.post(lost, json={}, headers=OWNER, timeout=5).raise_for_status()
    assert ops(stack.refresh())["version"] == ["delete"]
    assert stack.records("version") == []
    assert ops(stack.up())["version"] == ["create"]
    versions = cast("list[Properties]", site.secret("/versions").json()["versions"])
    assert [each["state"] for each in versions] == ["ENABLED", "DESTROYED", "ENABLED"]

    assert ops(stack.destroy()) == {name: ["delete"] for name in NAMES}
    assert site.secret().status_code == 404
