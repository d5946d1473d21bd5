"""Verification, retention and report of pull secrets in the genuine host, on stand-ins that fail."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import grpc
import pytest
import requests
from pulumi_sandbox.services.cloud.front import Fault

from components.errors import PullSecretError
from components.projection.sources import Source
from components.pull_secret import provider
from components.pull_secret.provider import (
    PullSecretRetentionProvider,
    PullSecretStartProvider,
    PullSecretStatusProvider,
    PullSecretVerificationProvider,
)
from components.pull_secret.verification import digest_of
from components.secret_manager import (
    Patience,
    SecretManager,
    SecretManagerTarget,
    open_secret_manager,
    secret_name,
    version_name,
)
from sandbox.tests.support.clouds import Served
from tests.support.cases import tabled
from tests.support.dynamic_host import Host, Properties, Provider, dynamic_host, provided
from tests.support.hyperfleet import bring, delete

PROJECT = "test-project"
OURS, THEIRS = b"sentinel-ours", b"sentinel-theirs"


@pytest.fixture(scope="module")
def host(google: Served, hyperfleet: Served) -> Generator[Host]:
    config = {"gcp:secretManagerCustomEndpoint": f"{google.url}/v1/", "gcp:accessToken": "any"}
    with dynamic_host({**config, "pullSecrets": {"hyperfleet": {"apiUrl": hyperfleet.url}}}) as host:
        yield host


@pytest.fixture(autouse=True)
def sound(google: Served, hyperfleet: Served) -> Generator[None]:
    yield
    google.service.faults.clear()
    hyperfleet.service.faults.clear()


class Entry:
    """A secret of Secret Manager with one version."""

    def __init__(self, manager: SecretManager) -> None:
        self.id = f"s-{uuid4()}"
        self._manager, self._name = manager, secret_name(PROJECT, self.id)
        manager.create(self._name, {})
        self.add(OURS)

    def states(self) -> dict[int, str]:
        return {one.number: one.state.value for one in self._manager.versions(self._name)}

    def add(self, content: bytes) -> None:
        self._manager.add(self._name, content)

    def lose(self) -> None:
        entry = self._manager.secret(self._name)
        assert entry is not None
        self._manager.delete(entry.name, entry.etag)

    def turn(self, number: int, how: str) -> None:
        getattr(self._manager, how)(self._manager.version(version_name(self._name, number)))


@pytest.fixture
def secret(google: Served) -> Entry:
    target = SecretManagerTarget(f"{google.url}/v1/", "any")
    return Entry(open_secret_manager(target, Patience(first_pause=0.01)))


verification = provided(PullSecretVerificationProvider)
retention = provided(PullSecretRetentionProvider)
status = provided(PullSecretStatusProvider)


def verified(secret: str, version: object = "1", content: bytes = OURS, **more: Any) -> Properties:
    return {
        "project": PROJECT,
        "secretId": secret,
        "version": version,
        "owner": "east",
        "digest": digest_of("east", content),
        "namespace": "clusters-east",
        "secretName": "east-pull-secret",
        **more,
    }


def retained(secret: str, version: object = 1, **more: Any) -> Properties:
    given = {"project": PROJECT, "secretId": secret, "version": version}
    return {**given, "onReplace": "keep", "onDelete": "disable", **more}


def test_a_version_is_verified_and_no_byte_of_it_is_in_the_state(
    verification: Provider, secret: Entry
) -> None:
    made = verification.create(verified(secret.id))
    assert {key: made.outputs[key] for key in ("reference", "state", "latest", "overtaken", "version")} == {
        "reference": f"projects/{PROJECT}/secrets/{secret.id}/versions/1",
        "state": "ENABLED",
        "latest": 1,
        "overtaken": "",
        "version": 1,
    }
    assert "sentinel" not in repr(made)
    assert not verification.is_changed(made, verified(secret.id))


def test_a_pull_secret_elsewhere_that_kubelet_refuses_is_refused_by_preview_and_update(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = b'{"auths":{"quay.io":{"auth":"dTpw"},"r":{"auth":"sentinel"}}}'
    monkeypatch.setattr(provider, "open_secrets", Mock())
    monkeypatch.setattr(provider, "content_of", Mock(return_value=content))
    asked = {"source": {"place": "here"}, "namespace": "clusters-east", "strict": False}
    version = provider.PullSecretVersionProvider()
    (failure,) = version.failures(asked, {})
    with pytest.raises(PullSecretError, match="kubelet refuses the whole") as refused:
        version.create_resource(asked)
    assert failure.reason == str(refused.value)
    assert failure.reason.startswith('here (auths["r"]): kubelet refuses the whole pull secret for it')
    assert "sentinel" not in failure.reason


def test_pull_secrets_elsewhere_merge_and_the_preview_says_who_wins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], google: Served, secret: Entry
) -> None:
    contents = {
        "own": b'{"auths":{"quay.io":{"auth":"dTpw"}}}',
        "org": b'{"auths":{"quay.io":{"auth":"djpw"},"ghcr.io":{"auth":"djpw"}}}',
    }
    manager = open_secret_manager(SecretManagerTarget(f"{google.url}/v1/", "any"))
    monkeypatch.setattr(provider, "open_secrets", Mock())
    monkeypatch.setattr(provider, "configured_secret_manager", Mock(return_value=manager))

    def content_of(source: Source, *_: object) -> bytes:
        return contents[source.place]

    monkeypatch.setattr(provider, "content_of", content_of)
    asked = {"source": {"place": "own"}, "additional": [{"place": "org"}], "namespace": "clusters-east"}
    given = {**asked, "strict": False, "project": PROJECT, "secretId": secret.id, "owner": "east"}
    version = provider.PullSecretVersionProvider()
    assert [*version.failures(given, {})] == []
    assert capsys.readouterr().out.splitlines() == ["registry quay.io is that of own, not of org"]
    made = version.create_resource(given)
    stored = manager.access(version_name(secret_name(PROJECT, secret.id), int(made["version"]))).content
    assert stored == b'{"auths":{"quay.io":{"auth":"dTpw"},"ghcr.io":{"auth":"djpw"}}}'
    assert version.is_current(given, made["digest"])
    contents["org"] = contents["own"]
    assert not version.is_current(given, made["digest"])


def test_a_version_nobody_can_read_is_refused_in_two_lines(verification: Provider, secret: Entry) -> None:
    secret.turn(1, "destroy")
    with pytest.raises(grpc.RpcError) as refused:
        verification.create(verified(secret.id))
    assert "so it cannot be read" in str(refused.value.details())


def test_content_that_differs_is_refused_and_told_by_no_one(verification: Provider, secret: Entry) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        verification.create(verified(secret.id, content=THEIRS))
    told = str(refused.value.details())
    assert "version-content-differs" in told
    assert "sentinel" not in told


def test_a_lost_answer_has_left_a_version_that_is_disabled_and_told(google: Served, secret: Entry) -> None:
    secret.add(OURS)
    config = {"gcp:secretManagerCustomEndpoint": f"{google.url}/v1/", "gcp:accessToken": "any"}
    with dynamic_host(config) as host:
        host.provider(PullSecretVerificationProvider()).create(verified(secret.id, "2"))
        said = host.said()
    assert secret.states() == {2: "ENABLED", 1: "DISABLED"}
    assert any(
        f"{secret.id}: version 1 held the same, and the answer to adding it was lost" in line for line in said
    )


def test_after_a_rotation_only_what_came_since_the_last_version_counts_as_lost(
    verification: Provider, secret: Entry
) -> None:
    made = verification.create(verified(secret.id))
    for content in (THEIRS, OURS, OURS):
        secret.add(content)
    updated = verification.update(made, verified(secret.id, "4"))
    assert secret.states() == {4: "ENABLED", 3: "DISABLED", 2: "ENABLED", 1: "ENABLED"}
    assert (updated.outputs["version"], updated.outputs["latest"]) == (4, 4)


def test_a_newer_version_of_somebody_else_is_told_and_the_cluster_keeps_its_own(
    verification: Provider, secret: Entry
) -> None:
    secret.add(THEIRS)
    made = verification.create(verified(secret.id))
    assert made.outputs["latest"] == 2
    assert made.outputs["overtaken"].startswith("version 2, which another writer added at 2")
    assert secret.states() == {2: "ENABLED", 1: "ENABLED"}


@pytest.mark.parametrize("how", ["disable", "destroy"])
def test_a_version_nobody_can_read_any_more_is_a_change_without_a_refresh(
    verification: Provider, secret: Entry, how: str
) -> None:
    made = verification.create(verified(secret.id))
    assert not verification.is_changed(made, verified(secret.id))
    secret.turn(1, how)
    assert verification.is_changed(made, verified(secret.id))


def test_an_update_enables_a_version_that_somebody_disabled(verification: Provider, secret: Entry) -> None:
    made = verification.create(verified(secret.id))
    secret.turn(1, "disable")
    assert verification.update(made, verified(secret.id)).outputs["state"] == "ENABLED"
    assert secret.states() == {1: "ENABLED"}


def test_a_newer_version_of_somebody_else_is_a_change_once(verification: Provider, secret: Entry) -> None:
    made = verification.create(verified(secret.id))
    secret.add(THEIRS)
    assert verification.is_changed(made, verified(secret.id))
    updated = verification.update(made, verified(secret.id))
    assert updated.outputs["overtaken"].startswith("version 2, ")
    assert not verification.is_changed(updated, verified(secret.id))


def test_a_version_that_cannot_be_looked_at_is_no_change(
    verification: Provider, google: Served, secret: Entry
) -> None:
    made = verification.create(verified(secret.id))
    secret.turn(1, "disable")
    google.service.faults.append(Fault(path=secret.id, status=403))
    assert not verification.is_changed(made, verified(secret.id))
    assert google.service.faults == []
    assert verification.is_changed(made, verified(secret.id))


@pytest.mark.parametrize(("how", "state"), [("disable", "DISABLED"), ("destroy", "DESTROYED")])
def test_a_refresh_finds_a_version_nobody_can_read_any_more_and_the_next_update_looks_again(
    verification: Provider, secret: Entry, how: str, state: str
) -> None:
    made = verification.create(verified(secret.id))
    secret.turn(1, how)
    found = verification.refresh(made)
    assert (found.id, found.outputs["state"], found.inputs) == (made.id, state, made.inputs)
    assert verification.is_changed(found, verified(secret.id))
    secret.add(OURS)
    assert verification.update(found, verified(secret.id, "2")).outputs["state"] == "ENABLED"


def test_a_refresh_finds_a_secret_gone(verification: Provider, secret: Entry) -> None:
    made = verification.create(verified(secret.id))
    secret.lose()
    assert verification.refresh(made).id == ""


@pytest.mark.parametrize(
    ("policy", "left"), [("keep", "ENABLED"), ("disable", "DISABLED"), ("destroy", "DESTROYED")]
)
def test_the_former_version_becomes_what_the_policy_says(
    retention: Provider, secret: Entry, policy: str, left: str
) -> None:
    made = retention.create(retained(secret.id, onReplace=policy))
    secret.add(THEIRS)
    updated = retention.update(made, retained(secret.id, 2, onReplace=policy))
    assert secret.states() == {2: "ENABLED", 1: left}
    assert updated.lasting == {
        **retained(secret.id, 2, onReplace=policy),
        "replaced": updated.outputs["replaced"],
    }
    assert updated.outputs["replaced"].startswith("version 1 is")


@pytest.mark.parametrize("policy", ["disable", "destroy"])
def test_another_policy_reaches_what_was_kept_before(retention: Provider, secret: Entry, policy: str) -> None:
    made = retention.create(retained(secret.id))
    for content in (THEIRS, OURS):
        secret.add(content)
    made = retention.update(made, retained(secret.id, 3))
    assert secret.states() == {3: "ENABLED", 2: "ENABLED", 1: "ENABLED"}
    updated = retention.update(made, retained(secret.id, 3, onReplace=policy))
    assert secret.states() == {3: "ENABLED", 2: "DISABLED", 1: "DISABLED"}
    assert updated.outputs["replaced"] == "what else was there before is disabled (1, 2)"


@pytest.mark.parametrize(("policy", "left"), [("disable", "DISABLED"), ("destroy", "DESTROYED")])
def test_a_lost_answer_to_settling_a_version_is_not_taken_for_a_refusal(
    retention: Provider, google: Served, *, secret: Entry, policy: str, left: str
) -> None:
    made = retention.create(retained(secret.id, onReplace=policy))
    secret.add(THEIRS)
    google.service.faults.append(Fault(path=f":{policy}", lost=True))
    retention.update(made, retained(secret.id, 2, onReplace=policy))
    assert secret.states() == {2: "ENABLED", 1: left}


def test_a_rotation_that_was_interrupted_is_finished_by_running_it_again(
    retention: Provider, google: Served, secret: Entry
) -> None:
    made = retention.create(retained(secret.id, onReplace="disable"))
    secret.add(THEIRS)
    google.service.faults.append(Fault(path=":disable", status=403))
    with pytest.raises(grpc.RpcError):
        retention.update(made, retained(secret.id, 2, onReplace="disable"))
    retention.update(made, retained(secret.id, 2, onReplace="disable"))
    assert secret.states() == {2: "ENABLED", 1: "DISABLED"}


def test_a_version_that_was_added_and_never_verified_is_not_left_readable(
    retention: Provider, secret: Entry
) -> None:
    made = retention.create(retained(secret.id, onReplace="destroy"))
    for content in (THEIRS, OURS):
        secret.add(content)
    retention.update(made, retained(secret.id, 3, onReplace="destroy"))
    assert secret.states() == {3: "ENABLED", 2: "DISABLED", 1: "DESTROYED"}


@tabled("policy, left")
def test_when_a_cluster_leaves_its_versions_become_what_the_policy_says(
    retention: Provider, secret: Entry, policy: str, left: dict[int, str]
) -> None:
    secret.add(THEIRS)
    retention.delete(retention.create(retained(secret.id, 2, onDelete=policy)))
    assert secret.states() == left


def test_a_cluster_leaves_a_secret_that_is_gone_already(retention: Provider, secret: Entry) -> None:
    made = retention.create(retained(secret.id))
    secret.lose()
    retention.delete(made)


def test_what_began_once_has_begun_whatever_is_reported_later(host: Host) -> None:
    start = host.provider(PullSecretStartProvider())
    waiting, ready = {"cluster": "cls-1", "ready": False}, {"cluster": "cls-1", "ready": True}
    made = start.create(waiting)
    assert (made.outputs["begun"], start.is_changed(made, waiting)) == (False, False)
    assert start.is_changed(made, ready)
    begun = start.refresh(start.update(made, ready))
    assert begun.outputs["begun"] is True
    assert not start.is_changed(begun, waiting)
    assert start.create(ready).outputs["begun"] is True


@pytest.fixture
def cluster(hyperfleet: Served) -> str:
    id_ = f"cls-{uuid4()}"
    bring(hyperfleet, id_)
    return id_


def begun(cluster: str) -> Properties:
    return {"cluster": cluster, "ready": True}


def test_hyperfleet_hears_that_all_is_gone_of_a_cluster_that_it_deletes(
    host: Host, hyperfleet: Served, cluster: str
) -> None:
    delete(hyperfleet, cluster)
    start = host.provider(PullSecretStartProvider())
    start.delete(start.create(begun(cluster)))
    (told,) = reports(hyperfleet, cluster)
    assert (told["adapter"], told["observed_generation"]) == ("pullsecret", 2)
    assert {one["type"]: one["status"] for one in told["conditions"]} == {
        "Applied": "False",
        "Available": "False",
        "Health": "True",
        "Finalized": "True",
    }


def test_hyperfleet_hears_nothing_of_a_cluster_that_only_leaves_the_stack(
    host: Host, hyperfleet: Served, cluster: str
) -> None:
    start = host.provider(PullSecretStartProvider())
    start.delete(start.create(begun(cluster)))
    assert reports(hyperfleet, cluster) == []
    start.delete(start.create(begun("cls-unknown")))


def test_a_deletion_that_hyperfleet_cannot_be_told_of_is_told_by_the_next_update(
    host: Host, hyperfleet: Served, cluster: str
) -> None:
    delete(hyperfleet, cluster)
    start = host.provider(PullSecretStartProvider())
    made = start.create(begun(cluster))
    hyperfleet.service.faults.append(Fault(path=cluster, status=403))
    with pytest.raises(grpc.RpcError) as refused:
        start.delete(made)
    assert "HyperFleet answers HTTP 403" in str(refused.value.details())
    start.delete(made)
    assert len(reports(hyperfleet, cluster)) == 1


@pytest.mark.parametrize("section", [{}, {"hyperfleet": {"apiUrl": "http://127.0.0.1:1", "contract": "v1"}}])
def test_a_stack_without_a_hyperfleet_that_waits_for_it_asks_nobody(section: Properties) -> None:
    with dynamic_host({"pullSecrets": section}) as host:
        start = host.provider(PullSecretStartProvider())
        start.delete(start.create(begun("cls-1")))


def reported(url: str, cluster: str, **more: Any) -> Properties:
    conditions = [
        {"type": kind, "status": "True", "reason": "Healthy", "message": ""}
        for kind in ("Applied", "Available", "Health")
    ]
    given = {"apiUrl": url, "cluster": cluster, "generation": 1, "conditions": conditions}
    return {**given, "data": {"secretName": "s"}, **more}


def reports(served: Served, cluster: str) -> list[Any]:
    path = f"{served.url}/api/hyperfleet/v1/clusters/{cluster}/statuses"
    return requests.get(path, timeout=10).json()["items"]


def test_a_report_is_made_once_for_a_generation(status: Provider, hyperfleet: Served, cluster: str) -> None:
    made = status.create(reported(hyperfleet.url, cluster))
    (told,) = reports(hyperfleet, cluster)
    assert (told["adapter"], told["observed_generation"]) == ("pullsecret", 1)
    assert isinstance(told["observed_generation"], int)
    assert made.outputs["trouble"] == ""
    assert made.outputs["reportedAt"] == told["last_report_time"]
    assert not status.is_changed(status.refresh(made), reported(hyperfleet.url, cluster))


def test_another_generation_takes_the_place_of_the_last_report(
    status: Provider, hyperfleet: Served, cluster: str
) -> None:
    made = status.create(reported(hyperfleet.url, cluster))
    bring(hyperfleet, cluster, generation=2)
    assert status.is_changed(made, reported(hyperfleet.url, cluster, generation=2))
    status.update(made, reported(hyperfleet.url, cluster, generation=2))
    (told,) = reports(hyperfleet, cluster)
    assert told["observed_generation"] == 2


def test_a_report_that_does_not_get_through_fails_nothing_and_is_made_again(
    status: Provider, hyperfleet: Served, cluster: str
) -> None:
    hyperfleet.service.faults.append(Fault(path=cluster, status=403))
    made = status.create(reported(hyperfleet.url, cluster))
    assert "HyperFleet answers HTTP 403" in made.outputs["trouble"]
    assert reports(hyperfleet, cluster) == []
    assert status.is_changed(made, reported(hyperfleet.url, cluster))
    again = status.update(made, reported(hyperfleet.url, cluster))
    assert again.outputs["trouble"] == ""
    assert len(reports(hyperfleet, cluster)) == 1


def test_a_report_made_before_there_were_contracts_is_no_change(
    status: Provider, hyperfleet: Served, cluster: str
) -> None:
    made = status.create(reported(hyperfleet.url, cluster))
    del made.outputs["contract"]
    assert not status.is_changed(made, reported(hyperfleet.url, cluster))
