"""The azure-native provider behind genuine gRPC, against the stand-in of Resource Manager."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event
from typing import cast

import grpc
import pytest
import requests
from pulumi_sandbox.protocol.stubs import provider_pb2
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Value
from pulumi_sandbox.providers.azure_native.package import package
from pulumi_sandbox.providers.contract import Patience
from pulumi_sandbox.services.cloud.front import Fault

from sandbox.tests.support.clouds import Served, nothing_asked, resource_manager, trusted
from sandbox.tests.support.provider_engine import Engine, Recorded, message, refusals, served, urn

GROUP = urn("azure-native:resources:ResourceGroup", "group")
IDENTITY = urn("azure-native:managedidentity:UserAssignedIdentity", "identity")
FEDERATION = urn("azure-native:managedidentity:FederatedIdentityCredential", "federation")
ASSIGNMENT = urn("azure-native:authorization:RoleAssignment", "assignment")

SUBSCRIPTION = "00000000-0000-4000-8000-000000000001"
GROUP_ID = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/aso"
IDENTITY_ID = f"{GROUP_ID}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/reader"
FEDERATION_ID = f"{IDENTITY_ID}/federatedIdentityCredentials/cluster"
NAME = "11111111-0000-4000-8000-000000000001"
ROLE = "/providers/Microsoft.Authorization/roleDefinitions/acdd72a7-3385-48ef-bd42-f606fba81ae7"
VERSIONS = {"Microsoft.Authorization": "2022-04-01", "Microsoft.ManagedIdentity": "2023-01-31"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("resource-manager")
    with resource_manager(folder) as running:
        yield running


@pytest.fixture
def cloud(running: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    """Return the service without the group of the tests, and without a fault."""
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted()))
    running.service.faults.clear()
    request(running, "DELETE", GROUP_ID)
    return running


@pytest.fixture
def engine(cloud: Served, pauses: list[float]) -> Generator[Engine]:
    with served(package()) as engine:
        engine.configure(metadataHost=cloud.authority, subscriptionId=SUBSCRIPTION)
        yield engine


def group(**inputs: Value) -> Properties:
    return {"resourceGroupName": "aso", "location": "westeurope", **inputs}


def identity(**inputs: Value) -> Properties:
    return {"location": "westeurope", "resourceGroupName": "aso", "resourceName": "reader", **inputs}


def federation(**inputs: Value) -> Properties:
    return {
        "audiences": ["api://AzureADTokenExchange"],
        "federatedIdentityCredentialResourceName": "cluster",
        "issuer": "https://issuer.example/",
        "resourceGroupName": "aso",
        "resourceName": "reader",
        "subject": "system:serviceaccount:aso:aso-workload",
        **inputs,
    }


def assignment(principal: Value, **inputs: Value) -> Properties:
    return {
        "principalId": principal,
        "principalType": "ServicePrincipal",
        "roleAssignmentName": NAME,
        "roleDefinitionId": ROLE,
        "scope": GROUP_ID,
        **inputs,
    }


def reader(engine: Engine) -> Recorded:
    """Make the group and the identity."""
    engine.create(GROUP, group())
    return engine.create(IDENTITY, identity())


def request(cloud: Served, method: str, id_: str, body: Properties | None = None) -> requests.Response:
    namespace = next((version for name, version in VERSIONS.items() if name in id_), "2024-03-01")
    return requests.request(
        method,
        f"{cloud.url}{id_}",
        params={"api-version": namespace},
        json=body or {},
        headers={"Authorization": "Bearer another"},
        verify=str(trusted()),
        timeout=5,
    )


def live(cloud: Served, id_: str) -> Properties:
    return cast("Properties", request(cloud, "GET", id_).json())


def failing(cloud: Served, method: str, *, status: int | None = None, times: int = 1) -> None:
    fault = Fault(path="/subscriptions/", method=method, status=status, lost=status is None, times=times)
    cloud.service.faults.append(fault)


# Lives


def test_a_group_is_made_changed_and_deleted(engine: Engine, cloud: Served):
    made = engine.create(GROUP, group(tags={"team": "blue"}))
    assert made.id == GROUP_ID
    assert made.outputs == {
        "azureApiVersion": "2024-03-01",
        "location": "westeurope",
        "name": "aso",
        "properties": {"provisioningState": "Succeeded"},
        "tags": {"team": "blue"},
        "type": "Microsoft.Resources/resourceGroups",
    }
    assert engine.diff(made, group(tags={"team": "blue"})).changes == provider_pb2.DiffResponse.DIFF_NONE
    answer = engine.diff(made, group(tags={"team": "red"}))
    assert (list(answer.detailedDiff), list(answer.replaces)) == (["tags.team"], [])
    assert engine.update(made, group(tags={"team": "red"})).outputs["tags"] == {"team": "red"}
    engine.delete(made)
    engine.delete(made)
    assert request(cloud, "GET", GROUP_ID).status_code == 404


def test_an_identity_tells_its_three_ids(engine: Engine, cloud: Served):
    made = reader(engine)
    properties = cast("Properties", live(cloud, IDENTITY_ID)["properties"])
    assert made.id == IDENTITY_ID
    assert {key: made.outputs[key] for key in ("clientId", "principalId", "tenantId")} == properties


def test_a_resource_without_a_location_stays_where_it_is_else_it_is_where_the_stack_says(
    engine: Engine, cloud: Served
):
    engine.configure(metadataHost=cloud.authority, subscriptionId=SUBSCRIPTION, location="northeurope")
    homeless = identity(location=None)
    assert engine.check(IDENTITY, homeless)["location"] == "northeurope"
    assert engine.check(IDENTITY, homeless, {"location": "francecentral"})["location"] == "francecentral"


def test_a_federated_credential_is_changed_in_place(engine: Engine, cloud: Served):
    reader(engine)
    made = engine.create(FEDERATION, federation())
    assert made.id == FEDERATION_ID
    assert made.outputs["subject"] == "system:serviceaccount:aso:aso-workload"
    moved = federation(subject="system:serviceaccount:aso:other")
    assert not engine.diff(made, moved).replaces
    engine.update(made, moved)
    properties = cast("Properties", live(cloud, FEDERATION_ID)["properties"])
    assert properties["subject"] == "system:serviceaccount:aso:other"
    engine.delete(made)
    assert engine.refresh(made).id == ""


def test_a_role_is_assigned_as_declared(engine: Engine, cloud: Served):
    principal = reader(engine).outputs["principalId"]
    made = engine.create(ASSIGNMENT, assignment(principal))
    assert made.id == f"{GROUP_ID}/providers/Microsoft.Authorization/roleAssignments/{NAME}"
    assert made.outputs["scope"] == GROUP_ID
    assert made.outputs["principalType"] == "ServicePrincipal"
    assert engine.refresh(made).inputs == made.inputs
    engine.delete(made)
    assert request(cloud, "GET", made.id).status_code == 404


# Replacement


@pytest.mark.parametrize(
    ("inputs", "place"),
    [
        pytest.param(group(location="northeurope"), "location", id="location"),
        pytest.param(group(resourceGroupName="other"), "resourceGroupName", id="name"),
    ],
)
def test_what_forms_the_id_and_the_location_replace_a_group(engine: Engine, inputs: Properties, place: str):
    answer = engine.diff(engine.create(GROUP, group()), inputs)
    assert list(answer.replaces) == [place]
    assert answer.deleteBeforeReplace


def test_what_a_role_is_assigned_to_replaces_and_the_role_does_not(engine: Engine):
    made = engine.create(ASSIGNMENT, assignment(reader(engine).outputs["principalId"]))
    principal = made.inputs["principalId"]
    assert list(engine.diff(made, assignment(NAME)).replaces) == ["principalId"]
    assert list(engine.diff(made, assignment(principal, scope="/")).replaces) == ["scope"]
    role = assignment(principal, roleDefinitionId=ROLE.replace("acdd", "bcdd"))
    assert not engine.diff(made, role).replaces
    with pytest.raises(grpc.RpcError, match="RoleAssignmentUpdateNotPermitted"):
        engine.update(made, role)


def test_case_and_blanks_of_a_location_do_not_count(engine: Engine):
    made = engine.create(GROUP, group(location="West Europe"))
    assert engine.diff(made, group(location="westeurope")).changes == provider_pb2.DiffResponse.DIFF_NONE


# What is there already, and what is refused


def test_an_existing_resource_is_never_taken_over(engine: Engine, cloud: Served):
    engine.create(GROUP, group(tags={"owner": "them"}))
    with pytest.raises(grpc.RpcError) as refused:
        engine.create(GROUP, group())
    assert "already exists" in message(refused)
    assert f"azure-native:resources:ResourceGroup group and the id {GROUP_ID}" in message(refused)
    assert live(cloud, GROUP_ID)["tags"] == {"owner": "them"}


@pytest.mark.parametrize(
    ("which", "inputs", "place"),
    [
        pytest.param(GROUP, {"resourceGroupName": "aso"}, "location", id="no location"),
        pytest.param(GROUP, {"location": "westeurope"}, "resourceGroupName", id="no name"),
        pytest.param(IDENTITY, {"location": "x", "resourceName": "me"}, "resourceGroupName", id="no group"),
        pytest.param(FEDERATION, federation(subject=None), "subject", id="no subject"),
        pytest.param(FEDERATION, federation(labels={}), "labels", id="unknown property"),
        pytest.param(ASSIGNMENT, assignment(None), "principalId", id="no principal"),
    ],
)
def test_bad_inputs_are_refused_at_their_place(engine: Engine, which: str, inputs: Properties, place: str):
    assert list(refusals(engine.checked(which, inputs))) == [place]


# Refresh


def test_drift_shows_on_refresh_and_is_set_back(engine: Engine, cloud: Served):
    made = engine.create(GROUP, group(tags={"team": "blue"}))
    request(cloud, "PUT", GROUP_ID, {"location": "westeurope", "tags": {"team": "red"}})
    seen = engine.refresh(made)
    assert seen.inputs["tags"] == seen.outputs["tags"] == {"team": "red"}
    assert list(engine.diff(seen, group(tags={"team": "blue"})).detailedDiff) == ["tags.team"]


def test_what_the_service_fills_in_stays_out_of_the_inputs(engine: Engine):
    made = engine.create(GROUP, group())
    assert made.outputs["tags"] == {}
    assert engine.refresh(made).inputs == made.inputs


def test_a_resource_is_found_by_its_id_alone(engine: Engine):
    made = reader(engine)
    engine.create(FEDERATION, federation())
    assert engine.get(IDENTITY, made.id).inputs == {
        **identity(),
        "azureApiVersion": "2023-01-31",
    }
    found = engine.get(FEDERATION, FEDERATION_ID.replace("resourceGroups", "resourcegroups"))
    assert found.inputs == {**federation(), "azureApiVersion": "2023-01-31"}
    role = engine.create(ASSIGNMENT, assignment(made.outputs["principalId"]))
    assert engine.get(ASSIGNMENT, role.id).inputs == role.inputs
    with pytest.raises(grpc.RpcError, match="not an id of such a resource"):
        engine.get(IDENTITY, GROUP_ID)


# Faults


@pytest.mark.parametrize("status", [408, 503])
def test_a_busy_service_is_asked_again_after_twenty_sixty_and_a_hundred_and_twenty_seconds(
    engine: Engine, cloud: Served, pauses: list[float], status: int
):
    failing(cloud, "PUT", status=status, times=3)
    assert engine.create(GROUP, group()).id == GROUP_ID
    assert pauses == [20, 60, 120]


def test_other_refusals_are_told_at_once(engine: Engine, cloud: Served, pauses: list[float]):
    failing(cloud, "PUT", status=409)
    with pytest.raises(grpc.RpcError, match="409"):
        engine.create(GROUP, group())
    assert pauses == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_lost_answer_is_no_failure(engine: Engine, cloud: Served, pauses: list[float], method: str):
    failing(cloud, method)
    engine.delete(engine.create(GROUP, group()))
    assert pauses == [20]
    assert request(cloud, "GET", GROUP_ID).status_code == 404


def test_concurrent_writes_under_one_identity_are_repeated_until_each_is_through(
    tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted()))
    written, together = Event(), Barrier(2)

    def pause(_patience: Patience, seconds: float) -> None:
        pauses.append(seconds)
        written.wait(5)

    monkeypatch.setattr(Patience, "wait", pause)
    with (
        resource_manager(tmp_path, federated_write=2) as cloud,
        served(package()) as engine,
    ):
        engine.configure(metadataHost=cloud.authority, subscriptionId=SUBSCRIPTION)
        reader(engine)

        def create(index: int) -> Recorded:
            together.wait()
            own = federation(subject=f"s{index}", federatedIdentityCredentialResourceName=f"cluster{index}")
            made = engine.create(FEDERATION, own)
            written.set()
            return made

        with ThreadPoolExecutor(2) as threads:
            made = list(threads.map(create, range(2)))
    assert [each.outputs["subject"] for each in made] == ["s0", "s1"]
    assert pauses == [20]


# Previews, connection and options


def test_a_preview_writes_nothing_and_knows_no_answers(engine: Engine, cloud: Served):
    with nothing_asked(cloud):
        shown = engine.preview_create(IDENTITY, identity(resourceGroupName=UNKNOWN))
        assert shown["clientId"] is UNKNOWN
        assert engine.preview_create(ASSIGNMENT, assignment(UNKNOWN))["principalId"] is UNKNOWN
        assert engine.preview_create(GROUP, group())["name"] is UNKNOWN


def test_a_preview_of_an_update_keeps_name_and_location_only(engine: Engine, cloud: Served):
    made = reader(engine)
    with nothing_asked(cloud):
        shown = engine.update(made, identity(tags={"a": "b"}), preview=True).outputs
    assert (shown["name"], shown["location"], shown["tags"]) == ("reader", "westeurope", {"a": "b"})
    assert shown["principalId"] is UNKNOWN


def test_a_certificate_of_another_authority_is_refused(cloud: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    with served(package()) as engine:
        engine.configure(metadataHost=cloud.authority, subscriptionId=SUBSCRIPTION)
        with pytest.raises(grpc.RpcError, match="SSL_CERT_FILE"):
            engine.create(GROUP, group())


def test_a_service_that_does_not_run_is_told_at_once(engine: Engine, pauses: list[float]):
    engine.configure(metadataHost="127.0.0.1:1", subscriptionId=SUBSCRIPTION)
    with pytest.raises(grpc.RpcError, match="cannot be reached"):
        engine.create(GROUP, group())
    assert pauses == []


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"environment": "public", "tenantId": SUBSCRIPTION, "version": "3.29.0"}, []),
        ({"metadataHost": UNKNOWN}, []),
        ({"metadataHost": None}, ["metadataHost"]),
        ({"subscriptionId": ""}, ["subscriptionId"]),
    ],
)
def test_options_without_which_no_stand_in_is_reached_are_missed_by_name(
    engine: Engine, options: Properties, refused: list[str]
):
    complete: Properties = {"metadataHost": "127.0.0.1:1", "subscriptionId": SUBSCRIPTION}
    assert list(engine.check_config(complete | options)) == refused
