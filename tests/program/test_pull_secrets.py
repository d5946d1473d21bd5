"""Pull secrets of a stack from the configuration to the cluster, on stand-ins that fail."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest
import requests
from pulumi_sandbox.services.cloud.registry import SECRET_MANAGER
from pulumi_sandbox.services.ports import LOOPBACK, free_ports

from components.pull_secret.hyperfleet import HyperFleet, render_observed
from components.pull_secret.names import secret_labels
from components.secret_manager import SecretManagerTarget, open_secret_manager, secret_name, version_name
from operations.folders import Folders
from operations.sandbox.cloud_services import HYPERFLEET, stand_ins
from tests.support.fleet_project import FleetProject, Ran
from tests.support.hyperfleet import say
from tests.support.stacks import ROOT

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

PROJECT = "test-project"
EAST, WEST, SOUTH, NORTH, MIDDLE = (f"cls-00000000000{n}" for n in range(1, 6))
ADAPTERS = dict.fromkeys(("validation", "dns", "placement"), "True")
FLAPPING = {**ADAPTERS, "dns": "False"}
READER = "nodes@test-project.iam.gserviceaccount.com"
RUNNER = "user:r"  # so short that the policies take the token for no secret in plaintext
RIGHTS = (ROOT / "docs" / "pull-secrets.md").read_text(encoding="utf-8").partition("## Rights")[2]


def payload(password: str) -> str:
    auth = base64.b64encode(f"user:{password}".encode()).decode()
    return json.dumps({"auths": {"quay.io": {"auth": auth}}}) + "\n"


def cluster(pull_secret: str, **more: Any) -> dict[str, Any]:
    return {
        "name": pull_secret,
        "generation": 1,
        "project": PROJECT,
        "pullSecretFrom": pull_secret,
        "adapters": ADAPTERS,
        **more,
    }


def documented() -> set[str]:
    """What the page says whoever runs the update needs: `.get` goes on where `versions.add` began."""
    kind, found = "", set[str]()
    for row in RIGHTS.partition("| Permission `secretmanager.…` | For |")[2].splitlines()[2:]:
        if not row.startswith("|"):
            return found
        for name in re.findall(r"`([a-z]*\.[A-Za-z]+)`", row.split("|")[1]):
            kind = name.partition(".")[0] or kind
            found.add(f"{kind}.{name.partition('.')[2]}")
    return found


class Stack:
    """A project of pull secrets, with a Secret Manager and a HyperFleet of its own."""

    def __init__(self, project: FleetProject, google: str, hyperfleet: str, admin: DynamicClient) -> None:
        self.project = project
        self.google = google
        self.hyperfleet = hyperfleet
        self.manager = open_secret_manager(SecretManagerTarget(f"{google}/v1/", "any"))
        allowed = {"member": RUNNER, "permissions": [*documented()]}
        requests.put(f"{google}/sandbox/callers", json=allowed, timeout=10).raise_for_status()
        self._shared = ""
        self._secrets = admin.resources.get(api_version="v1", kind="Secret")

    def share(self, namespace: str) -> None:
        """Let every cluster read in a namespace that is there already."""
        self._shared = namespace

    def write(self, name: str, text: str) -> None:
        (self.project.folder / name).write_text(text)

    def configure(
        self, passwords: dict[str, str], clusters: dict[str, Any], *, bring: bool = True, **section: Any
    ) -> None:
        for id_, given in clusters.items() if bring else ():
            known = {"name": given["name"], "generation": given["generation"]}
            requests.put(f"{self.hyperfleet}/sandbox/clusters/{id_}", json=known, timeout=10)
        self.project.configure(
            existing_namespaces=[self._shared] if self._shared else [],
            credentials={name: payload(password) for name, password in passwords.items()},
            further={
                "credfleet:accountPool": {},
                "gcp:project": PROJECT,
                "gcp:secretManagerCustomEndpoint": f"{self.google}/v1/",
                "gcp:accessToken": RUNNER,
                "credfleet:pullSecrets": {
                    "namespaceTemplate": self.namespace("{id}"),
                    "hyperfleet": {"apiUrl": self.hyperfleet},
                    "reader": {"serviceAccount": READER},
                    "clusters": clusters,
                    **section,
                },
            },
        )

    def update(self) -> Ran:
        return self.project.up().quiet()

    def fail(self, service: str, **fault: Any) -> None:
        """Let a service fail the next requests that match."""
        requests.post(f"{service}/sandbox/faults", json=fault, timeout=10).raise_for_status()

    def versions(self, cluster_id: str) -> dict[int, str]:
        return {one.number: one.state.value for one in self.manager.versions(entry(cluster_id))}

    def secret(self, cluster_id: str) -> Any:
        return self._secrets.get(name=f"{cluster_id}-pull-secret", namespace=self.namespace(cluster_id))

    def content(self, cluster_id: str) -> str:
        return base64.b64decode(self.secret(cluster_id).data[".dockerconfigjson"]).decode()

    def namespace(self, cluster_id: str) -> str:
        return self._shared or f"{self.project.pool}-{cluster_id}"

    def remove_secret(self, cluster_id: str) -> None:
        self._secrets.delete(name=f"{cluster_id}-pull-secret", namespace=self.namespace(cluster_id))

    def spoil_secret(self, cluster_id: str) -> None:
        """Write something else into the cluster's Secret, as an editor does."""
        spoiled = {"data": {".dockerconfigjson": base64.b64encode(b'{"auths": {}}').decode()}}
        self._secrets.patch(
            name=f"{cluster_id}-pull-secret",
            namespace=self.namespace(cluster_id),
            body=spoiled,
            content_type="application/merge-patch+json",
            field_manager="editor",
        )

    def turn(self, cluster_id: str, number: int, how: str) -> None:
        """Disable or destroy a version, as somebody else does."""
        found = self.manager.version(version_name(entry(cluster_id), number))
        assert found is not None
        getattr(self.manager, how)(found)

    def secrets(self, cluster_id: str) -> list[str]:
        return [one.metadata.name for one in self._secrets.get(namespace=self.namespace(cluster_id)).items]

    def report(self, cluster_id: str) -> dict[str, Any]:
        """What HyperFleet was told last by this adapter."""
        path = f"{self.hyperfleet}/api/hyperfleet/v1/clusters/{cluster_id}/statuses"
        items = requests.get(path, timeout=10).json()["items"]
        return {one["adapter"]: one for one in items}["pullsecret"]

    def used(self) -> set[str]:
        """What whoever runs the updates needed."""
        answer = requests.get(f"{self.google}/sandbox/callers", params={"member": RUNNER}, timeout=10)
        return {*answer.json()}

    def readers(self, cluster_id: str) -> list[Any]:
        answer = requests.get(
            f"{self.google}/v1/{entry(cluster_id)}:getIamPolicy",
            headers={"Authorization": "Bearer any"},
            timeout=10,
        )
        return answer.json()["bindings"]


def entry(cluster_id: str) -> str:
    return secret_name(PROJECT, f"hyperfleet-{cluster_id}-pull-secret")


@pytest.fixture
def stack(project: FleetProject, admin: DynamicClient) -> Generator[Stack]:
    services = stand_ins(Folders(project.folder.resolve()))
    google, hyperfleet = free_ports(2)
    services.start({SECRET_MANAGER: google, HYPERFLEET: hyperfleet})
    try:
        yield Stack(project, f"http://{LOOPBACK}:{google}", f"http://{LOOPBACK}:{hyperfleet}", admin)
    finally:
        services.stop()


@pytest.mark.life
def test_a_pull_secret_is_brought_rotated_in_place_repaired_and_taken_back(stack: Stack) -> None:
    first = {"east": "sentinel-1", "west": "sentinel-2", "south": "sentinel-3"}
    east, west = cluster("east"), cluster("west")
    waiting = cluster("east", adapters=FLAPPING)
    clusters = {EAST: east, WEST: west, SOUTH: cluster("south"), NORTH: waiting}
    stack.configure(first, clusters, onDelete="keep")
    brought = stack.update()
    assert f"skipped: pull secret {NORTH}: adapter dns reports False" in brought.out
    assert stack.manager.secret(entry(NORTH)) is None
    assert stack.manager.access(version_name(entry(EAST), 1)).content.decode() == payload("sentinel-1")
    assert stack.content(EAST) == payload("sentinel-1")
    assert stack.secret(EAST).type == "kubernetes.io/dockerconfigjson"
    assert stack.readers(EAST) == [
        {"role": "roles/secretmanager.secretAccessor", "members": [f"serviceAccount:{READER}"]}
    ]
    told = stack.report(EAST)
    assert [(one["type"], one["status"], one["reason"]) for one in told["conditions"]] == [
        ("Applied", "True", "SecretCreated"),
        ("Available", "True", "SecretAvailable"),
        ("Health", "True", "Healthy"),
    ]
    assert (told["observed_generation"], told["data"]["secretVersion"]) == (1, "1")
    uid = stack.secret(EAST).metadata.uid

    lost = stack.manager.version(version_name(entry(WEST), 1))
    assert lost is not None
    stack.manager.destroy(lost)
    assert f"{lost.name} is destroyed".partition("/secrets/")[2] in stack.project.refresh().quiet().out

    rotating = {EAST: {**east, "adapters": FLAPPING, "generation": 2}, WEST: west}
    stack.configure({**first, "east": "sentinel-4"}, rotating, onReplace="destroy")
    stack.fail(stack.hyperfleet, path=f"{EAST}/statuses", method="PUT", status=400)
    rotated = stack.update()
    assert stack.versions(EAST) == {2: "ENABLED", 1: "DESTROYED"}
    assert (stack.content(EAST), stack.secret(EAST).metadata.uid) == (payload("sentinel-4"), uid)
    assert "the cluster has its pull secret, but adapter dns reports False" in rotated.out
    assert f"cluster {EAST}: HyperFleet answers HTTP 400" in rotated.out
    assert stack.versions(WEST) == {2: "ENABLED", 1: "DESTROYED"}
    assert stack.content(WEST) == payload("sentinel-2")
    assert (stack.versions(SOUTH), stack.secrets(SOUTH)) == ({1: "ENABLED"}, [])

    left = stack.project.destroy().quiet()
    assert f"{entry(EAST)} stays; its versions are disabled (2)" in left.out
    assert (stack.versions(EAST), stack.secrets(EAST)) == ({2: "DISABLED", 1: "DESTROYED"}, [])


@pytest.mark.life
def test_an_update_whose_answers_are_lost_is_finished_by_the_next_one_as_is_what_others_break(
    stack: Stack, namespace: str
) -> None:
    stack.share(namespace)
    stack.configure({"east": "sentinel-1"}, {EAST: cluster("east")}, onDelete="destroy")
    stack.fail(stack.google, path=":addVersion", lost=True)
    stack.fail(stack.google, path="secrets", method="GET", status=429, times=2)
    assert stack.project.up().code != 0
    assert stack.secrets(EAST) == []

    brought = stack.update()
    assert f"{entry(EAST)}: version 1 held the same, and the answer to adding it was lost" in brought.out
    assert stack.versions(EAST) == {2: "ENABLED", 1: "DISABLED"}
    assert stack.content(EAST) == payload("sentinel-1")

    names = {EAST: "east", WEST: "west", SOUTH: "south", NORTH: "north", MIDDLE: "middle"}
    passwords, clusters = (
        dict.fromkeys(names.values(), "sentinel-1"),
        {id_: cluster(names[id_]) for id_ in names},
    )
    stack.configure(passwords, clusters, onDelete="destroy")
    stack.update()
    made, readers = stack.manager.secret(entry(EAST)), stack.readers(EAST)
    assert made is not None
    assert readers
    stack.manager.delete(entry(EAST), made.etag)
    stack.remove_secret(WEST)
    stack.spoil_secret(SOUTH)
    stack.turn(NORTH, 1, "disable")
    stack.turn(MIDDLE, 1, "destroy")
    stack.remove_secret(MIDDLE)
    told = stack.update().out
    assert f"{entry(EAST)} can never be read again; the update adds the pull secret again" in told
    assert f"Secret {namespace}/{WEST}-pull-secret is gone; the update recreates it" in told
    assert f"Secret {namespace}/{SOUTH}-pull-secret holds something else than it was given" in told
    assert (
        f"{entry(NORTH)}/versions/1: it is disabled; the update enables it".partition("/secrets/")[2] in told
    )
    destroyed = f"{entry(MIDDLE)}/versions/1 can never be read again; the update adds the pull secret again"
    assert destroyed.partition("/secrets/")[2] in told
    assert {stack.content(id_) for id_ in names} == {payload("sentinel-1")}
    assert stack.versions(MIDDLE) == {2: "ENABLED", 1: "DESTROYED"}
    assert [stack.versions(id_) for id_ in (EAST, WEST, SOUTH, NORTH)] == [{1: "ENABLED"}] * 4
    assert stack.readers(EAST) == readers
    fixed = stack.project.up("--refresh").quiet().out
    assert not [word for word in ("is gone", "versions/", "recreates") if word in fixed]
    states = (stack.project.folder / ".sandbox" / "backend").rglob("*.json*")
    assert not any(b"sentinel-" in path.read_bytes() for path in states)

    renamed = {**clusters, EAST: cluster("east", name="another")}
    stack.configure({**passwords, "east": "sentinel-2"}, renamed, onDelete="destroy", onReplace="destroy")
    stack.update()
    assert stack.versions(EAST) == {2: "ENABLED", 1: "DESTROYED"}

    stack.project.destroy().quiet()
    assert [stack.manager.secret(entry(id_)) for id_ in names] == [None] * 5
    assert stack.used() == documented()


@pytest.mark.life
def test_what_a_cluster_has_is_taken_down_before_hyperfleet_lets_it_go(stack: Stack, namespace: str) -> None:
    stack.share(namespace)
    east, file = cluster("east"), {"adaptersFrom": "observed.json"}
    stack.configure({"east": "sentinel-1"}, {EAST: east})
    stack.update()
    path = f"{stack.hyperfleet}/api/hyperfleet/v1/clusters/{EAST}"
    requests.delete(path, timeout=10).raise_for_status()
    for adapter in ("validation", "dns", "placement"):
        say(stack.hyperfleet, EAST, adapter, generation=2, Finalized="True")
    stack.write("observed.json", render_observed({EAST: HyperFleet(stack.hyperfleet).observe(EAST)}, "now"))
    stack.configure({"east": "sentinel-1"}, {EAST: east}, bring=False, **file)

    stack.fail(stack.hyperfleet, path=f"{EAST}$", method="GET", status=403)
    refused = stack.project.up()
    assert refused.code != 0
    assert f"cluster {EAST}: HyperFleet answers HTTP 403" in refused.said
    assert (stack.versions(EAST), stack.secrets(EAST)) == ({1: "DISABLED"}, [])
    assert requests.get(path, timeout=10).status_code == 200

    left = stack.update()
    assert "it was reported to HyperFleet that its pull secret is gone" in left.out
    assert requests.get(path, timeout=10).status_code == 404
    assert f"skipped: pull secret {EAST}: HyperFleet deletes the cluster" in stack.update().out


@pytest.mark.life
def test_an_entry_somebody_else_made_is_refused_until_it_is_imported(stack: Stack, namespace: str) -> None:
    stack.share(namespace)
    stack.manager.create(entry(EAST), {"team": "platform"})
    stack.manager.add(entry(EAST), payload("sentinel-1").encode())
    stack.configure({"east": "sentinel-1"}, {EAST: cluster("east")})
    refused = stack.project.up()
    assert refused.code != 0
    assert f"{entry(EAST)}: it exists and this stack has not made it" in refused.out
    assert "its labels: team=platform" in refused.out
    assert f"$credfleet:index:PullSecret::{EAST}' --provider 'provider=urn:pulumi:test::" in refused.out
    assert f"gcp:secretmanager/secret:Secret {EAST}-entry {entry(EAST)}" in refused.out
    assert (stack.versions(EAST), stack.secrets(EAST)) == ({1: "ENABLED"}, [])

    (line,) = {*re.findall(r"pulumi import .*", refused.out)}
    stack.project.typed(f"{line} --yes --non-interactive").quiet()
    stack.update()
    assert stack.versions(EAST) == {2: "ENABLED", 1: "DISABLED"}
    found = stack.manager.secret(entry(EAST))
    assert found is not None
    assert found.labels.items() >= secret_labels(EAST, "east").items()


@pytest.mark.life
def test_a_pull_secret_goes_from_an_entry_to_a_version_that_is_followed_and_kept_nowhere_else(
    stack: Stack,
) -> None:
    stack.configure({"east": "sentinel-1"}, {EAST: cluster("east", handOver=True)})
    stack.update()
    uid = stack.secret(EAST).metadata.uid

    source = secret_name(PROJECT, "quay")
    stack.manager.create(source, {})
    stack.manager.add(source, payload("sentinel-1").encode())
    given = {"gcpSecret": version_name(source, "latest")}
    stack.configure({}, {EAST: {**cluster("east"), "pullSecretFrom": given}}, bring=False)
    stack.update()
    assert stack.versions(EAST) == {1: "ENABLED"}
    assert (stack.content(EAST), stack.secret(EAST).metadata.uid) == (payload("sentinel-1"), uid)

    stack.manager.add(source, payload("sentinel-2").encode())
    stack.update()
    assert stack.versions(EAST) == {2: "ENABLED", 1: "ENABLED"}
    assert (stack.content(EAST), stack.secret(EAST).metadata.uid) == (payload("sentinel-2"), uid)
    assert stack.report(EAST)["data"]["secretVersion"] == "2"
    annotations = stack.secret(EAST).metadata.annotations.to_dict()
    assert annotations["credfleet.io/secret-manager-version"] == version_name(entry(EAST), 2)
    stack.project.preview("--expect-no-changes").quiet()
    states = [path.read_text() for path in (stack.project.folder / ".sandbox" / "backend").rglob("*.json")]
    told = base64.b64encode(b"user:sentinel-2").decode()
    assert told in payload("sentinel-2")
    assert states
    assert not any(told in state for state in states)

    stack.remove_secret(EAST)
    assert "is gone; the update recreates it" in stack.project.preview().quiet().out
    stack.update()
    assert stack.content(EAST) == payload("sentinel-2")
    stack.turn(EAST, 2, "destroy")
    stack.update()
    assert stack.versions(EAST) == {3: "ENABLED", 2: "DESTROYED", 1: "ENABLED"}
    assert stack.content(EAST) == payload("sentinel-2")

    stack.manager.add(source, b"no pull secret")
    refused = stack.project.preview()
    assert refused.code != 0
    assert f"credfleet:pullSecrets.clusters.{EAST}.pullSecretFrom (" in refused.said
    stack.manager.add(source, payload("sentinel-2").encode())
    stack.project.destroy().quiet()
    assert (set(stack.versions(EAST).values()), stack.secrets(EAST)) == ({"DISABLED", "DESTROYED"}, [])
