"""Secret stores of a stack where ESO's kinds are served, if its definitions lie beside the project.

The control plane is the test's own: definitions are the whole cluster's, and others count on one without.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from kubernetes.dynamic.exceptions import NotFoundError
from pulumi_sandbox.services.build import binaries
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN

from components.connection import ClusterTarget
from components.secret_stores.stack_cluster import StackCluster
from sandbox.tests.support.cluster import ROOT, client_for
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import FleetProject
from tests.support.noticed import until

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

DEFINITIONS = ROOT.parent / "shared/data/external-secrets-crds"
KINDS = {"ClusterSecretStore", "ExternalSecret"}
PLURALS = ("clustersecretstores", "externalsecrets")

pytestmark = pytest.mark.skipif(
    not DEFINITIONS.is_dir(), reason=f"ESO's CustomResourceDefinitions are not in {DEFINITIONS}"
)


@pytest.fixture
def own(tmp_path: Path) -> Generator[ControlPlane]:
    plane = ControlPlane.start(tmp_path / "plane", binaries=binaries(), die_with_parent=True)
    try:
        yield plane
    finally:
        plane.stop()


@pytest.fixture
def client(own: ControlPlane, tmp_path: Path) -> Generator[DynamicClient]:
    with client_for(own.kubeconfig(ADMIN.name), tmp_path / "discovery.json") as client:
        yield client


def install(client: DynamicClient, kubeconfig: Path) -> None:
    """Bring ESO's definitions into the cluster, and wait until its kinds are served."""
    api = client.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    for path in sorted(DEFINITIONS.glob("*.yaml")):
        for definition in yaml.safe_load_all(path.read_text()):
            api.create(body=definition)
    cluster = StackCluster(ClusterTarget(kubeconfig=str(kubeconfig)))
    until(
        lambda: (
            cluster.served("external-secrets.io/v1") >= KINDS and all(map(partial(listed, client), PLURALS))
        )
    )


def listed(client: DynamicClient, plural: str) -> bool:
    """Whether the API server answers for a kind, which is later than that it names it."""
    try:
        objects(client, plural)
    except NotFoundError:
        return False
    return True


def objects(client: DynamicClient, plural: str) -> list[Any]:
    return client.request("get", f"/apis/external-secrets.io/v1/{plural}").to_dict()["items"]


@pytest.mark.life
def test_esos_objects_are_declared_by_the_first_update_after_it_came_and_then_stay(
    own: ControlPlane, client: DynamicClient, tmp_path: Path
) -> None:
    kubeconfig = own.kubeconfig(ADMIN.name)
    project = FleetProject.make(tmp_path / "project", kubeconfig, f"t{secrets.token_hex(4)}")
    acme = tenant_of(project, "acme")
    reader = {"serviceAccount": {"name": "account-reader"}}
    account = {"key": {"account": "acme/aws", "key": "secretAccessKey"}}
    project.configure(
        credentials=CREDENTIALS,
        tenants={"acme": acme},
        pool=pool_of(1),
        further={
            "credfleet:secretStores": {
                "readyWithin": "0s",
                "providers": {
                    "api": {"kind": "Kubernetes", "spec": {"remoteNamespace": project.pool, "auth": reader}}
                },
                "stores": {
                    "shared": {
                        "cluster": True,
                        "providerRef": "api",
                        "conditions": [{"namespaces": [acme["namespace"]]}],
                    }
                },
                "reads": {
                    "key": {
                        "namespace": acme["namespace"],
                        "store": "shared",
                        "backend": "eso",
                        "data": account,
                    }
                },
            }
        },
    )
    assert "ExternalSecret key" in project.up().quiet().out

    install(client, kubeconfig)
    second = project.up().quiet()
    assert "External Secrets Operator has not looked at it" in second.out
    (store,) = objects(client, "clustersecretstores")
    assert store["spec"]["provider"]["kubernetes"]["remoteNamespace"] == project.pool
    assert store["spec"]["conditions"] == [{"namespaces": [acme["namespace"]]}]
    (read,) = objects(client, "externalsecrets")
    (value,) = read["spec"]["data"]
    assert value["remoteRef"]["key"] == "aws-1"
    assert project.preview("--expect-no-changes").code == 0
