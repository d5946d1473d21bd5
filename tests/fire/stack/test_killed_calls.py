"""An update that is killed at one of its calls is continued by the next one.

The call is one to the API server, or in `make prove` to the stand-in of Secret Manager, HyperFleet or
Azure. It is made and its answer lost, or it never arrives; the state is refreshed before the next update, or
not. The end is that of an update that nobody killed; before, what a cloud has of a creation that was killed
is deleted, as the next update asks for.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import signal
import subprocess
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import requests
from pulumi_sandbox.services.cloud.registry import RESOURCE_MANAGER, SECRET_MANAGER
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN
from pulumi_sandbox.services.ports import free_ports

from components.secret_manager import SecretManagerTarget, open_secret_manager
from operations.folders import Folders
from operations.sandbox.cloud_services import HYPERFLEET, stand_ins
from tests.program.accounts import accounts, owned
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.program.test_pull_secrets import PROJECT, READER, RUNNER, cluster, documented, entry, payload
from tests.support import pulumi_shell
from tests.support.aso import SUB
from tests.support.certificates import certificate_pem, curve_key, only_key
from tests.support.fault_proxy import Fault, FaultProxy, before, before_https, nothing, running
from tests.support.fleet_project import STACK, FleetProject, Ran
from tests.support.proving import PROVES, counted, tried

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

KILLS: Final = counted(1, 32)
NOBODYS: Final = "it exists and this stack has not made it"
"""What is said of an entry of Secret Manager whose creation was killed: nothing tells whose it is."""
NOBODYS_OF_AZURE: Final = re.compile(r"^ *(/subscriptions/\S+): it already exists", re.MULTILINE)
"""The same of a resource of Azure."""

ANYBODY: Final = {"Authorization": "Bearer any"}
MEMBERS: Final = {"aws-1", "aws-2", "aws-3"}


@dataclass
class Death:
    """A plan for proxies: at a call to any of them, whoever makes it is killed."""

    at: int
    fault: Fault
    update: subprocess.Popen[bytes] | None = None
    calls: Iterator[int] = field(default_factory=count, init=False)

    def __call__(self, _number: int, _method: str) -> Fault:
        if next(self.calls) != self.at:
            return Fault.NONE
        assert self.update is not None
        pulumi_shell.kill(self.update)
        return self.fault


@dataclass(frozen=True)
class Clouds:
    """The stand-ins, each behind a proxy; where none run, a stack has no pull secrets."""

    google: FaultProxy
    hyperfleet: FaultProxy
    azure: FaultProxy
    folder: Path
    trust: Mapping[str, str]

    @property
    def all(self) -> tuple[FaultProxy, ...]:
        return (self.google, self.hyperfleet, self.azure)

    def configuration(self, cluster_id: str, namespace: str) -> dict[str, Any]:
        """Bring a cluster, and return what the configuration says of it, and of a namespace's identity."""
        known = {"name": "east", "generation": 1}
        requests.put(f"{self.hyperfleet.url}/sandbox/clusters/{cluster_id}", json=known, timeout=10)
        return {
            "gcp:project": PROJECT,
            "gcp:secretManagerCustomEndpoint": f"{self.google.url}/v1/",
            "gcp:accessToken": RUNNER,
            "credfleet:pullSecrets": {
                "namespaceTemplate": "{id}",
                "hyperfleet": {"apiUrl": self.hyperfleet.url},
                "reader": {"serviceAccount": READER},
                "clusters": {cluster_id: cluster("east")},
            },
            "azure-native:subscriptionId": SUB,
            "azure-native:metadataHost": self.azure.url.removeprefix("https://"),
            "credfleet:asoCredentials": {
                "operator": {"namespace": f"{namespace}-operator", "issuer": "https://oidc.example/test/"},
                "namespaces": {namespace: {"workloadIdentity": {"subscriptionId": SUB, "identity": "own"}}},
                "resourceGroups": {cluster_id: {"location": "westeurope"}},
                "identities": {
                    "own": {
                        "resourceGroup": cluster_id,
                        "roles": {
                            "all": {
                                "role": "Contributor",
                                "scope": f"/subscriptions/{SUB}/resourceGroups/{cluster_id}",
                            }
                        },
                    }
                },
            },
        }

    def enabled(self, cluster_id: str) -> int:
        """Count the versions of a cluster's pull secret that may be read."""
        manager = open_secret_manager(SecretManagerTarget(f"{self.google.url}/v1/", "any"))
        return sum(each.state.value == "ENABLED" for each in manager.versions(entry(cluster_id)))

    def delete_nobodys(self, cluster_id: str, said: str) -> bool:
        """Delete what an update was told is there and not its own; whether there was any."""
        urls = [f"{self.google.url}/v1/{entry(cluster_id)}"] if NOBODYS in said else []
        urls += [f"{self.azure.url}{id_}?api-version=2023-01-31" for id_ in NOBODYS_OF_AZURE.findall(said)]
        authority = self.trust["SSL_CERT_FILE"]
        for url in urls:
            requests.delete(url, headers=ANYBODY, verify=authority, timeout=10).raise_for_status()
        return bool(urls)

    def of_azure(self, group: str) -> list[str]:
        """Return the ids of a resource group and of all that is in it."""
        kept = json.loads((self.folder / RESOURCE_MANAGER.name / "data" / "resources.json").read_text())
        return sorted(each["id"] for each in kept if f"/{group}/" in f"{each['id']}/")


@pytest.fixture
def clouds(tmp_path: Path) -> Generator[Clouds | None]:
    if not PROVES:
        yield None
        return
    services = stand_ins(Folders(tmp_path))
    google, hyperfleet, azure = free_ports(3)
    services.start({SECRET_MANAGER: google, HYPERFLEET: hyperfleet, RESOURCE_MANAGER: azure})
    serving, trusted = tmp_path / "serving.pem", tmp_path / "trusted.pem"
    serving.write_bytes(certificate_pem(curve_key()) + only_key(curve_key()))
    trusted.write_bytes(certificate_pem(curve_key()))
    try:
        with (
            before(google) as manager,
            before(hyperfleet) as fleet,
            before_https(azure, services.certificate.authority, serving) as resources,
        ):
            allowed = {"member": RUNNER, "permissions": [*documented()]}
            requests.put(f"{manager.url}/sandbox/callers", json=allowed, timeout=10).raise_for_status()
            yield Clouds(manager, fleet, resources, services.folder, {"SSL_CERT_FILE": str(trusted)})
    finally:
        services.stop()


def made(folder: Path, kubeconfig: Path, clouds: Clouds | None, cluster_id: str) -> FleetProject:
    project = FleetProject.make(folder, kubeconfig, f"t{secrets.token_hex(4)}")
    if clouds:
        project = replace(project, trust=clouds.trust)
    tenants = {name: tenant_of(project, name) for name in ("acme", "globex")}
    pull_secret = {"east": payload("sentinel-1")} if clouds else {}
    further = clouds.configuration(cluster_id, tenants["acme"]["namespace"]) if clouds else {}
    project.configure(
        credentials={**CREDENTIALS, **pull_secret}, tenants=tenants, pool=pool_of(1, 2, 3), further=further
    )
    return project


def killed(project: FleetProject, death: Death | None = None) -> Ran:
    """Update, and let the death of it know whom it kills."""

    def attend(update: subprocess.Popen[bytes]) -> int:
        if death is not None:
            death.update = update
        return update.wait()

    return project.up_beside(attend)


def state(project: FleetProject) -> Sequence[Mapping[str, Any]]:
    """Return the resources of the state."""
    (path,) = project.folder.glob(f".sandbox/backend/**/{STACK}.json")
    latest = json.loads(path.read_text())["checkpoint"]["latest"]
    assert not latest.get("pending_operations")
    return latest["resources"]


def declared(project: FleetProject, cluster_id: str) -> list[str]:
    """Return the URNs of the state, without the part of their names that is this one's own."""
    unique = project.pool.removesuffix("-pool")
    return sorted(each["urn"].replace(unique, "").replace(cluster_id, "") for each in state(project))


def ids(project: FleetProject) -> list[str]:
    return sorted(each["id"] for each in state(project) if each.get("id"))


def judged(project: FleetProject, admin: DynamicClient, clouds: Clouds | None, cluster_id: str) -> list[str]:
    project.preview("--expect-no-changes").quiet()
    assert set(accounts(admin, project)) == MEMBERS
    assert set(owned(admin, project)) == {"acme", "globex"}
    records = admin.resources.get(api_version="v1", kind="ConfigMap").get(
        namespace=project.pool, label_selector="credfleet.io/pool-record"
    )
    assert sorted(each.data.phase for each in records.items) == ["Bound", "Bound"]
    if clouds:
        assert clouds.enabled(cluster_id) == 1
        secret = admin.resources.get(api_version="v1", kind="Secret").get(
            name=f"{cluster_id}-pull-secret", namespace=cluster_id
        )
        assert base64.b64decode(secret.data[".dockerconfigjson"]).decode() == payload("sentinel-1")
        assert clouds.of_azure(cluster_id) == [
            one for one in ids(project) if one.startswith("/subscriptions/")
        ]
    return declared(project, cluster_id)


@pytest.mark.life
def test_an_update_killed_at_a_call_ends_as_one_that_nobody_killed(
    admin: DynamicClient, control_plane: ControlPlane, clouds: Clouds | None, tmp_path: Path
) -> None:
    kubeconfig = control_plane.kubeconfig(ADMIN.name)
    with running(kubeconfig, tmp_path) as proxy:
        names = (f"cls-{secrets.token_hex(6)}" for _ in count())
        name = next(names)
        whole = made(tmp_path / "whole", proxy.kubeconfig, clouds, name)
        of_clouds = clouds.all if clouds else ()
        for each in of_clouds:
            each.restart_plan(nothing)
        killed(whole).quiet()
        called = [(proxy,), of_clouds]
        calls = [sum(each.counts().total() for each in proxies) for proxies in called]
        end = judged(whole, admin, clouds, name)
        for kill in range(KILLS):
            name = next(names)
            project = made(tmp_path / str(kill), proxy.kubeconfig, clouds, name)
            fault = (Fault.LOST, Fault.REFUSED)[kill % 2]
            where = int(bool(clouds) and kill % 4 > 1)
            death = Death(calls[where] * (2 * kill + 1) // (2 * KILLS), fault)
            for each in called[where]:
                each.restart_plan(death)
            ran = killed(project, death)
            assert ran.code in (-signal.SIGKILL, 0), ran.out
            for each in called[where]:
                each.restart_plan(nothing)
            if kill % 3 == 2:
                project.refresh().quiet()
            ended = project.up()
            while clouds and clouds.delete_nobodys(name, ended.out):
                ended = project.up()
            ended.quiet()
            project.refresh("--clear-pending-creates").quiet()  # the CLI keeps them through a good update
            what = ("the API server", "stand-ins")[where]
            told = f"killed at call {death.at} of {calls[where]} to {what}, {fault}"
            assert judged(project, admin, clouds, name) == end, told
            tried(f"kills of an update at a call to {what}")
