"""ASO's credentials from nothing to nothing, as the API server and the stand-in of Azure saw it."""

from __future__ import annotations

import base64
import json
from collections.abc import Generator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

import pytest
import requests

from components.aso_credentials.keys import OPERATOR_NAMESPACE
from operations import existing
from sandbox.services.cloud.journal import Request
from sandbox.services.cloud.kinds import Cloud
from sandbox.services.clouds import Clouds
from sandbox.services.control_plane import ControlPlane
from sandbox.services.ports import LOOPBACK, free_ports
from sandbox.services.users import ADMIN
from tests.support.aso import CLIENT, OTHER_SUB, SUB, TENANT, manifest
from tests.support.fleet_project import FleetProject

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

KINDS: Final = {
    "ResourceGroup": "resources.azure.com/v1api20200601",
    "Secret": "v1",
    "Namespace": "v1",
}
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
        """Tell the last words of the paths with this part that it was asked for, in their order."""
        return [
            each.path.rpartition("/")[2]
            for each in self.requests
            if each.method == method and part.lower() in each.path.lower()
        ]

    def one_at_a_time(self, identity: str) -> bool:
        """Tell whether no two writes of an identity's federated credentials were under way at once."""
        part = f"/{identity}{FEDERATIONS}".lower()
        paths = [each for each in self.requests if part in each.path.lower()]
        writes = [each for each in paths if each.method != "GET"]
        return not any(one.overlaps(other) for one, other in combinations(writes, 2))


class Stack:
    """A project with an operator in strict mode, and what it has in the cluster and in Azure."""

    def __init__(self, project: FleetProject, admin: DynamicClient, azure: Azure) -> None:
        self.project = project
        self.azure = azure
        self._admin = admin

    def space(self, letter: str) -> str:
        return f"{self.project.pool}-{letter}"

    def configure(
        self, *, secret: str = "sentinel-1", letters: str = "bc", alone: str = "", subscription: str = SUB
    ) -> None:
        """Declare a service principal in a, and an identity for the letters' namespaces.

        alone: letter of the one that has an identity to itself; the others have `shared`.
        """
        spaces = ["a", *letters]
        principal = {"subscriptionId": subscription, "tenantId": TENANT, "clientId": CLIENT}
        identities = {letter: "alone" if letter == alone else "shared" for letter in letters}
        role = {"role": "Contributor", "scope": f"/subscriptions/{SUB}"}
        self.project.configure(
            credentials={"sp": secret},
            tenants={},
            pool={},
            existing_namespaces=[OPERATOR_NAMESPACE, *map(self.space, spaces)],
            further={
                "azure-native:subscriptionId": SUB,
                "azure-native:metadataHost": f"{LOOPBACK}:{self.azure.port}",
                "credfleet:accountPool": {},
                "credfleet:asoCredentials": {
                    "operator": {"workloadIdentityMode": "strict", "issuer": "https://oidc.example/test/"},
                    "globalSettings": {"syncPeriod": "1h"},
                    "namespaces": {
                        self.space("a"): {"servicePrincipal": {**principal, "secretFrom": "sp"}},
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
                    "resources": self.resources(*spaces),
                },
            },
        )

    def configure_claim(self, secret: str, *, claimed: bool) -> None:
        """Declare tenant z, which has claimed an account, delivered as its credential, or has released it."""
        account = {"subscriptionID": SUB, "tenantID": TENANT, "clientID": CLIENT, "clientSecret": secret}
        claim = {"azure": {"type": "azure", "deliverTo": {"asoCredential": "servicePrincipalSecret"}}}
        member = {"type": "azure", "accountId": "1", "credentialsFrom": "azure-1"}
        self.project.configure(
            credentials={"azure-1": json.dumps(account)},
            tenants={"z": {"namespace": self.space("z"), "accounts": claim if claimed else {}}},
            pool={"allowDestroy": True, "members": {"azure-1": member}},
            further={"credfleet:asoCredentials": {"resources": self.resources("z") if claimed else {}}},
        )

    def resources(self, *letters: str) -> dict[str, Any]:
        """Write a manifest for each of these namespaces, and name it as the configuration does."""
        for letter in letters:
            text = json.dumps(manifest(self.space(letter), "it"))
            (self.project.folder / f"{letter}.yaml").write_text(text, encoding="utf-8")
        return {letter: {"file": f"{letter}.yaml"} for letter in letters}

    def up(self, *words: str) -> None:
        done = self.project.sandbox("up", *words)
        assert done.code == 0, done.out + done.err
        assert "sentinel-" not in done.out + done.err

    def kind(self, kind: str) -> Any:
        return self._admin.resources.get(api_version=KINDS[kind], kind=kind)

    def create_namespaces(self, *names: str) -> None:
        for name in names:
            self.kind("Namespace").create(body={"metadata": {"name": name}})

    def secret(self, letter: str) -> Any:
        return self.kind("Secret").get(name="aso-credential", namespace=self.space(letter))

    def data(self, letter: str) -> dict[str, str]:
        data = self.secret(letter).data.to_dict()
        return {key: base64.b64decode(value).decode() for key, value in data.items()}

    def version(self) -> str:
        """Give the point in the API server's history that is now."""
        return str(self.kind("Namespace").get().metadata.resourceVersion)

    def went(self, since: str, letter: str) -> list[str]:
        """Tell the kinds of what is gone from a namespace, in the order in which it went."""
        space = self.space(letter)
        wanted = {"ResourceGroup": (space, "it"), "Secret": (space, "aso-credential")}
        return sorted(wanted, key=lambda kind: self._deleted(kind, since, *wanted[kind]))

    def _deleted(self, kind: str, since: str, namespace: str, name: str) -> int:
        """Find the point in the API server's history at which an object went."""
        for event in self.kind(kind).watch(resource_version=since, timeout=20):
            metadata = event["raw_object"]["metadata"]
            place = (metadata.get("namespace", ""), metadata["name"])
            if event["type"] == "DELETED" and place == (namespace, name):
                return int(metadata["resourceVersion"])
        raise AssertionError(f"{kind} {namespace}/{name} is not gone")


@pytest.fixture
def stack(tmp_path: Path, control_plane: ControlPlane, admin: DynamicClient) -> Generator[Stack]:
    kubeconfig = control_plane.kubeconfig(ADMIN.name)
    existing.bring_kinds(kubeconfig)
    project = FleetProject.make(tmp_path / "project", kubeconfig, f"t{token_hex(4)}")
    (project.folder / "policies").unlink()  # they are asked in tests/components
    services = Clouds(project.folder.resolve() / ".sandbox" / "clouds")
    (port,) = free_ports(1)
    services.start({Cloud.RESOURCE_MANAGER: port})
    try:
        yield Stack(project, admin, Azure(port, services.certificate.authority))
    finally:
        services.stop()


def test_credentials_live_through_rotation_an_added_identity_and_a_destroy_in_the_right_order(
    stack: Stack,
) -> None:
    stack.create_namespaces(OPERATOR_NAMESPACE, *map(stack.space, "abcd"))
    stack.configure()
    stack.up()
    ids = {"AZURE_SUBSCRIPTION_ID": SUB, "AZURE_TENANT_ID": TENANT}
    assert stack.data("a") == {**ids, "AZURE_CLIENT_ID": CLIENT, "AZURE_CLIENT_SECRET": "sentinel-1"}
    identity = stack.azure.identity("shared")
    assert stack.data("b") == stack.data("c") == {**ids, "AZURE_CLIENT_ID": identity["clientId"]}
    assert identity["clientId"] != identity["principalId"]
    assert stack.azure.asked("PUT", FEDERATIONS) == [f"{stack.space(letter)}_aso-workload" for letter in "bc"]

    stack.azure.forget()
    stack.up("--expect-no-changes")
    stack.configure(subscription=OTHER_SUB)
    refused = stack.project.sandbox("preview")
    assert refused.code != 0
    assert "allowSubscriptionChange: true" in refused.out + refused.err
    assert [each for each in stack.azure.requests if each.method != "GET"] == []

    before = {letter: stack.secret(letter).metadata.uid for letter in "abc"}
    stack.configure(secret="sentinel-2", letters="bcd", alone="d")
    stack.up()
    assert stack.data("a")["AZURE_CLIENT_SECRET"] == "sentinel-2"
    assert {letter: stack.secret(letter).metadata.uid for letter in "abc"} == before
    assert stack.data("d")["AZURE_CLIENT_ID"] == stack.azure.identity("alone")["clientId"]
    assert stack.azure.asked("PUT", FEDERATIONS) == [f"{stack.space('d')}_aso-workload"]

    since = stack.version()
    stack.azure.forget()
    refusal = {"path": "(?i)federatedidentity", "method": "DELETE", "times": 9, "status": 403}
    stack.azure.call("POST", "sandbox/faults", **refusal)
    assert stack.project.sandbox("destroy").code != 0
    assert stack.went(since, "c") == ["ResourceGroup", "Secret"]
    stack.azure.call("DELETE", "sandbox/faults")
    assert stack.project.sandbox("destroy").code == 0
    for letter in "abd":
        assert stack.went(since, letter) == ["ResourceGroup", "Secret"]
    removed = stack.azure.asked("DELETE", "resourcegroups/rg-identities")
    shared = [f"{stack.space(letter)}_aso-workload" for letter in "cb"]
    assert [name for name in removed if name in shared][-2:] == shared
    assert {"shared", "alone"} <= set(removed[removed.index(shared[-1]) :])
    assert removed[-1] == "rg-identities"
    assert stack.azure.one_at_a_time("shared")


def test_a_claimed_account_serves_its_tenant_through_rotation_until_it_is_released(stack: Stack) -> None:
    stack.configure_claim("sentinel-1", claimed=True)
    stack.up()
    uid = stack.secret("z").metadata.uid
    stack.configure_claim("sentinel-2", claimed=True)
    stack.up()
    assert stack.secret("z").metadata.uid == uid
    assert stack.data("z") == {
        "AZURE_SUBSCRIPTION_ID": SUB,
        "AZURE_TENANT_ID": TENANT,
        "AZURE_CLIENT_ID": CLIENT,
        "AZURE_CLIENT_SECRET": "sentinel-2",
    }
    since = stack.version()
    stack.configure_claim("sentinel-2", claimed=False)
    stack.up()
    assert stack.went(since, "z") == ["ResourceGroup", "Secret"]
