"""ASO's credentials from nothing to nothing, as the API server and the stand-in of Azure saw it."""

from __future__ import annotations

import base64
import json
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

import pytest
import requests
from kubernetes.dynamic.exceptions import ForbiddenError
from pulumi_sandbox.services.cloud.front import Request
from pulumi_sandbox.services.cloud.registry import RESOURCE_MANAGER
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN
from pulumi_sandbox.services.ports import LOOPBACK, free_ports

from components.aso_credentials.azure import AUDIENCE
from operations.folders import Folders
from operations.sandbox import existing
from operations.sandbox.cloud_services import stand_ins
from sandbox.tests.support.clouds import overlap
from tests.support.aso import CLIENT, OTHER_SUB, SUB, TENANT, manifest
from tests.support.fleet_project import FleetProject
from tests.support.people import impersonating

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

KINDS: Final = {
    "ResourceGroup": "resources.azure.com/v1api20200601",
    "Secret": "v1",
    "Namespace": "v1",
}
NAMES: Final = {"ResourceGroup": "it", "Secret": "aso-credential"}
SPACES: Final = "abcdefo"
"""Letters of the namespaces that are there already; the operator is in o."""

FEDERATIONS: Final = "/federatedIdentityCredentials/"


@dataclass(frozen=True)
class Azure:
    """The stand-in of Resource Manager that a project's sandbox uses, and what it was asked."""

    port: int
    authority: Path

    def call(self, verb: str, where: str, **body: Any) -> Any:
        """Ask it; below `sandbox` are its handles for tests."""
        answer = requests.request(
            verb,
            f"https://{LOOPBACK}:{self.port}/{where}",
            headers={"Authorization": "Bearer any"},
            json=body or None,
            verify=str(self.authority),
            timeout=10,
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def identity(self, name: str) -> dict[str, str]:
        path = f"subscriptions/{SUB}/resourceGroups/rg-identities/providers/Microsoft.ManagedIdentity"
        return self.call("GET", f"{path}/userAssignedIdentities/{name}?api-version=2023-01-31")["properties"]

    def forget(self) -> None:
        self.call("DELETE", "sandbox/requests")

    @property
    def requests(self) -> list[Request]:
        return [Request(**each) for each in self.call("GET", "sandbox/requests")]

    def asked(self, method: str, part: str) -> list[str]:
        """Return the last words of the paths with this part that it was asked for, in their order."""
        return [
            each.path.rpartition("/")[2]
            for each in self.requests
            if each.method == method and part.lower() in each.path.lower()
        ]

    def one_at_a_time(self, identity: str) -> bool:
        """Whether no two writes of an identity's federated credentials were under way at once."""
        part = f"/{identity}{FEDERATIONS}".lower()
        paths = [each for each in self.requests if part in each.path.lower()]
        writes = [each for each in paths if each.method != "GET"]
        return not any(overlap(one, other) for one, other in combinations(writes, 2))


class Stack:
    """A project with an operator in strict mode, and what it has in the cluster and in Azure."""

    def __init__(self, project: FleetProject, admin: DynamicClient, azure: Azure, kubeconfig: Path) -> None:
        self.project = project
        self.azure = azure
        self._admin = admin
        self._kubeconfig = kubeconfig
        self._discovered = project.folder / "discovery.json"

    def space(self, letter: str) -> str:
        return f"{self.project.pool}-{letter}"

    def configure(
        self,
        *,
        secret: str = "sentinel-1",
        pod: str = "",
        shared: str = "bcf",
        alone: str = "",
        tenants: str = "yz",
        claimed: str = "yz",
        subscription: str = SUB,
    ) -> None:
        """Declare credentials of namespaces by their letters: a and d have a service principal.

        pod: those of them that have a pod identity instead. shared, alone: those that have workload identity
        `shared`, and the one that has `alone`.
        claimed: letters of the tenants that have claimed an account, delivered as their credential.
        """
        principal = {"subscriptionId": subscription, "tenantId": TENANT, "clientId": CLIENT}
        identities = {**dict.fromkeys(shared, "shared"), **dict.fromkeys(alone, "alone")}
        role = {"role": "Contributor", "scope": f"/subscriptions/{SUB}"}
        account = {"subscriptionID": SUB, "tenantID": TENANT, "clientID": CLIENT, "clientSecret": secret}
        claim = {"azure": {"type": "azure", "deliverTo": {"asoCredential": "servicePrincipalSecret"}}}
        members = {
            f"azure-{number}": {"type": "azure", "accountId": account_id, "credentialsFrom": "account"}
            for number, account_id in ((1, SUB), (2, CLIENT))
        }
        self.project.configure(
            credentials={"sp": secret, "account": json.dumps(account)},
            tenants={
                letter: {"namespace": self.space(letter), "accounts": claim if letter in claimed else {}}
                for letter in tenants
            },
            pool={"allowDestroy": True, "members": members},
            existing_namespaces=[*map(self.space, SPACES)],
            further={
                "azure-native:subscriptionId": SUB,
                "azure-native:metadataHost": f"{LOOPBACK}:{self.azure.port}",
                **({} if tenants else {"credfleet:accountPool": {}}),
                "credfleet:asoCredentials": {
                    "operator": {
                        "namespace": self.space("o"),
                        "workloadIdentityMode": "strict",
                        "issuer": "https://oidc.example/test/",
                    },
                    "globalSettings": {"syncPeriod": "1h"},
                    "namespaces": {
                        **{
                            self.space(letter): {"podIdentity": principal}
                            if letter in pod
                            else {"servicePrincipal": {**principal, "secretFrom": "sp"}}
                            for letter in "ad"
                        },
                        **{
                            self.space(letter): {
                                "workloadIdentity": {"subscriptionId": SUB, "identity": name}
                            }
                            for letter, name in identities.items()
                        },
                    },
                    "resourceGroups": {"rg-identities": {"location": "westeurope"}},
                    "identities": {
                        name: {"resourceGroup": "rg-identities", "roles": {"all": role}}
                        for name in {*identities.values()}
                    },
                    "resources": self.resources("a", "d", *identities, *claimed),
                },
            },
        )

    def resources(self, *letters: str) -> dict[str, Any]:
        """Write a manifest for each of these namespaces, and name it as the configuration does."""
        for letter in letters:
            text = json.dumps(manifest(self.space(letter), "it"))
            (self.project.folder / f"{letter}.yaml").write_text(text, encoding="utf-8")
        return {letter: {"file": f"{letter}.yaml"} for letter in letters}

    def up(self) -> None:
        self.project.up().quiet()

    def federations(self, letters: str) -> list[str]:
        """Name the federated credentials for the ServiceAccounts of these namespaces."""
        return [f"{self.space(letter)}_aso-workload" for letter in letters]

    def kind(self, kind: str) -> Any:
        return self._admin.resources.get(api_version=KINDS[kind], kind=kind)

    def create_namespaces(self) -> None:
        for letter in SPACES:
            self.kind("Namespace").create(body={"metadata": {"name": self.space(letter)}})

    def secret(self, letter: str) -> Any:
        return self.kind("Secret").get(name="aso-credential", namespace=self.space(letter))

    def gets_token(self, operator: str, account: str, letter: str) -> bool:
        """Ask for a token of a ServiceAccount in a namespace, as the operator does that runs as another."""
        user = f"system:serviceaccount:{self.space('o')}:{operator}"
        with impersonating(self._kubeconfig, self._discovered, user) as client:
            tokens = client.resources.get(api_version="v1", kind="ServiceAccount").subresources["token"]
            body = {"spec": {"audiences": [AUDIENCE]}}
            try:
                granted = tokens.create(name=account, namespace=self.space(letter), body=body)
            except ForbiddenError:
                return False
        return bool(granted.status.token)

    def data(self, letter: str) -> dict[str, str]:
        data = self.secret(letter).data.to_dict()
        return {key: base64.b64decode(value).decode() for key, value in data.items()}

    def version(self) -> str:
        """Return the point in the API server's history that is now."""
        return str(self.kind("Namespace").get().metadata.resourceVersion)

    def group(self, letter: str, **metadata: Any) -> None:
        """Change metadata of the resource group in a namespace."""
        self.kind("ResourceGroup").patch(
            body={"metadata": metadata},
            name="it",
            namespace=self.space(letter),
            content_type="application/merge-patch+json",
        )

    def await_request(self, since: str, letter: str) -> None:
        """Wait until somebody asks for the deletion of the resource group in a namespace."""
        for event in self.kind("ResourceGroup").watch(
            namespace=self.space(letter), resource_version=since, timeout=60
        ):
            if event["raw_object"]["metadata"].get("deletionTimestamp"):
                return
        raise AssertionError(f"nobody deletes the resource group in {letter}")

    def deletions(self, kind: str, since: str, letters: str) -> dict[str, int]:
        """Return at which point of the API server's history a namespace's object of a kind went."""
        spaces = {self.space(letter): letter for letter in letters}
        gone: dict[str, int] = {}
        for event in self.kind(kind).watch(resource_version=since, timeout=240):
            metadata = event["raw_object"]["metadata"]
            if event["type"] == "DELETED" and metadata["name"] == NAMES[kind]:
                letter = spaces.get(metadata["namespace"])
                gone |= {} if letter is None else {letter: int(metadata["resourceVersion"])}
                if len(gone) == len(spaces):
                    break
        assert sorted(gone) == sorted(letters)
        return gone

    @contextmanager
    def resources_go_first(self, letters: str) -> Generator[None]:
        """See meanwhile that the resource group of each namespace goes before its Secret."""
        since = self.version()
        with ThreadPoolExecutor(len(NAMES)) as threads:
            watched = [threads.submit(self.deletions, kind, since, letters) for kind in NAMES]
            yield
        groups, secrets = (each.result() for each in watched)
        assert all(groups[letter] < secrets[letter] for letter in letters)


@pytest.fixture
def stack(tmp_path: Path, control_plane: ControlPlane, admin: DynamicClient) -> Generator[Stack]:
    kubeconfig = control_plane.kubeconfig(ADMIN.name)
    existing.bring_kinds(kubeconfig)
    project = FleetProject.make(tmp_path / "project", kubeconfig, f"t{token_hex(4)}")
    (project.folder / "policies").unlink()  # they are asked in tests/components
    services = stand_ins(Folders(project.folder.resolve()))
    (port,) = free_ports(1)
    services.start({RESOURCE_MANAGER: port})
    try:
        trusting = replace(project, trust=services.trust())
        yield Stack(trusting, admin, Azure(port, services.certificate.authority), kubeconfig)
    finally:
        services.stop()


@pytest.mark.life
def test_credentials_live_through_rotation_release_and_other_identities(stack: Stack) -> None:
    stack.create_namespaces()
    stack.configure()
    stack.up()
    ids = {"AZURE_SUBSCRIPTION_ID": SUB, "AZURE_TENANT_ID": TENANT}
    principal = {**ids, "AZURE_CLIENT_ID": CLIENT, "AZURE_CLIENT_SECRET": "sentinel-1"}
    identity = stack.azure.identity("shared")
    own = {**ids, "AZURE_CLIENT_ID": identity["clientId"]}
    assert [stack.data(letter) for letter in "adyz"] == [principal] * 4
    assert [stack.data(letter) for letter in "bcf"] == [own] * 3
    assert identity["clientId"] != identity["principalId"]
    assert stack.azure.asked("PUT", FEDERATIONS) == stack.federations("bcf")
    operator = "azureserviceoperator-default"
    assert stack.gets_token(operator, "aso-workload", "b")
    assert not stack.gets_token(operator, "default", "b")
    assert not stack.gets_token("another", "aso-workload", "b")

    stack.azure.forget()
    stack.configure(subscription=OTHER_SUB)
    refused = stack.project.preview()
    assert refused.code != 0
    assert f"opens subscription {SUB}; with {OTHER_SUB} instead" in refused.said
    assert "allowSubscriptionChange: true" in refused.said
    assert [each for each in stack.azure.requests if each.method != "GET"] == []

    before = {letter: stack.secret(letter).metadata.uid for letter in "abdfz"}
    stack.configure(secret="sentinel-2", pod="d", shared="bf", alone="e", claimed="z")
    with stack.resources_go_first("cy"):
        stack.up()
    rotated = {**principal, "AZURE_CLIENT_SECRET": "sentinel-2"}
    assert [stack.data(letter) for letter in "abz"] == [rotated, own, rotated]
    assert stack.data("d") == {**ids, "AZURE_CLIENT_ID": CLIENT, "AUTH_MODE": "podidentity"}
    assert {letter: stack.secret(letter).metadata.uid for letter in "abdfz"} == before
    assert stack.data("e")["AZURE_CLIENT_ID"] == stack.azure.identity("alone")["clientId"]
    assert stack.azure.asked("PUT", FEDERATIONS) == stack.federations("e")
    assert stack.azure.asked("DELETE", "") == stack.federations("c")
    stack.project.preview("--expect-no-changes").quiet()


def test_a_preview_refuses_a_resource_whose_kind_the_cluster_does_not_serve(stack: Stack) -> None:
    stack.create_namespaces()
    stack.configure(shared="", tenants="", claimed="")
    file = stack.project.folder / "a.yaml"
    group, kind = "nobody.azure.com/v1api20200601", "ResourceGroup"
    file.write_text(file.read_text(encoding="utf-8").replace(KINDS[kind], group), encoding="utf-8")

    refused = stack.project.preview()

    assert refused.code != 0
    assert f"the cluster does not serve {group}/{kind}, so nothing can be made of it" in refused.said
    assert refused.out.partition("Diagnostics:")[2].count("so nothing can be made of it") == 1


@pytest.mark.life
def test_a_destroy_takes_from_azure_what_no_resource_needs_any_more_one_at_a_time(stack: Stack) -> None:
    stack.create_namespaces()
    stack.configure(shared="bc", alone="e", tenants="", claimed="")
    stack.up()
    stack.azure.forget()
    stack.group("b", finalizers=["test.example/held"])  # as ASO holds it while it deletes in Azure
    since = stack.version()
    with stack.resources_go_first("abcde"), ThreadPoolExecutor(1) as thread:
        destroyed = thread.submit(stack.project.destroy)
        try:
            stack.await_request(since, "b")
            assert stack.data("b")["AZURE_CLIENT_ID"] == stack.azure.identity("shared")["clientId"]
            assert not {*stack.federations("b"), "shared"} & {*stack.azure.asked("DELETE", "")}
        finally:
            stack.group("b", finalizers=None)
        assert destroyed.result().code == 0, destroyed.result().err
    removed = stack.azure.asked("DELETE", "resourcegroups/rg-identities")
    assert [name for name in removed if name in stack.federations("bc")] == stack.federations("cb")
    assert {"shared", "alone"} <= {*removed[removed.index(stack.federations("b")[0]) :]}
    assert removed[-1] == "rg-identities"
    assert stack.azure.one_at_a_time("shared")
