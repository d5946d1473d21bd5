"""The gcp provider behind genuine gRPC, against the stand-in of Secret Manager."""

from __future__ import annotations

import base64
from collections.abc import Generator
from typing import cast

import grpc
import pytest
import requests
from pulumi_sandbox.protocol.stubs import provider_pb2
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Secret, Value
from pulumi_sandbox.providers.contract import Patience
from pulumi_sandbox.providers.gcp.package import package
from pulumi_sandbox.services.cloud.front import Fault

from sandbox.tests.support.clouds import OWNER, Served, nothing_asked, secret_manager
from sandbox.tests.support.provider_engine import Engine, Recorded, message, refusals, served, urn

ENTRY = urn("gcp:secretmanager/secret:Secret", "entry")
VERSION = urn("gcp:secretmanager/secretVersion:SecretVersion", "version")
MEMBER = urn("gcp:secretmanager/secretIamMember:SecretIamMember", "reader")

NAME = "projects/acme-prod/secrets/pull"
READER = "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/subject/Ns/Sa"
ACCESSOR = "roles/secretmanager.secretAccessor"
PAYLOAD = "a payload nobody sees"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    with secret_manager(tmp_path_factory.mktemp("secret-manager")) as running:
        yield running


@pytest.fixture
def cloud(running: Served) -> Served:
    """Return the service without a secret and without a fault."""
    running.service.faults.clear()
    listed = cast("list[Properties]", live(running, "projects/acme-prod/secrets").get("secrets", []))
    for each in listed:
        changed(running, "DELETE", str(each["name"]))
    return running


@pytest.fixture
def engine(cloud: Served, pauses: list[float]) -> Generator[Engine]:
    with served(package()) as engine:
        configure(engine, cloud)
        yield engine


def configure(engine: Engine, cloud: Served) -> None:
    engine.configure(
        secretManagerCustomEndpoint=f"{cloud.url}/v1/", accessToken="a-token", project="acme-prod"
    )


def entry(**inputs: Value) -> Properties:
    return {"secretId": "pull", "replication": {"auto": {}}, "labels": {"cluster": "one"}, **inputs}


def version(data: str = PAYLOAD, **inputs: Value) -> Properties:
    return {"secret": NAME, "secretData": Secret(data), **inputs}


def grant(**inputs: Value) -> Properties:
    return {"secretId": NAME, "role": ACCESSOR, "member": READER, **inputs}


def live(cloud: Served, path: str) -> Properties:
    return cast("Properties", requests.get(f"{cloud.url}/v1/{path}", headers=OWNER, timeout=5).json())


def changed(cloud: Served, method: str, path: str, body: Properties | None = None) -> None:
    answer = requests.request(method, f"{cloud.url}/v1/{path}", json=body or {}, headers=OWNER, timeout=5)
    answer.raise_for_status()


def failing(cloud: Served, method: str, path: str, *, status: int | None = None, times: int = 1) -> None:
    cloud.service.faults.append(
        Fault(path=path, method=method, status=status, lost=status is None, times=times)
    )


# Secrets


def test_a_secret_has_the_id_the_name_and_the_labels_of_the_genuine_one(engine: Engine, cloud: Served):
    made = engine.create(ENTRY, entry())
    failing(cloud, "GET", NAME)
    assert engine.refresh(made).id == made.id == NAME
    assert made.outputs["project"] == "acme-prod"
    assert made.outputs["name"] == live(cloud, NAME)["name"]
    assert made.outputs["labels"] == {"cluster": "one"}
    everything = {"cluster": "one", "goog-pulumi-provisioned": "true"}
    assert made.outputs["pulumiLabels"] == made.outputs["effectiveLabels"] == everything
    assert live(cloud, NAME)["labels"] == everything
    assert made.outputs["deletionPolicy"] == "DELETE"
    assert made.outputs["deletionProtection"] is False


def test_an_existing_secret_is_an_error_with_the_import_command(engine: Engine):
    engine.create(ENTRY, entry())
    with pytest.raises(grpc.RpcError) as refused:
        engine.create(ENTRY, entry())
    assert "already exists" in message(refused)
    assert f"gcp:secretmanager/secret:Secret entry and the id {NAME}" in message(refused)


def test_labels_are_updated_in_place_beside_those_of_others(engine: Engine, cloud: Served):
    made = engine.create(ENTRY, entry())
    theirs: Properties = {**cast("Properties", live(cloud, NAME)["labels"]), "theirs": "kept"}
    changed(cloud, "PATCH", f"{NAME}?updateMask=labels", {"labels": theirs})
    seen = engine.refresh(made)
    wanted = entry(labels={"region": "eu"})
    answer = engine.diff(seen, wanted)
    assert set(answer.detailedDiff) == {
        *(
            f"{labels}.{key}"
            for labels in ("labels", "pulumiLabels", "effectiveLabels")
            for key in ("cluster", "region")
        ),
    }
    assert not answer.replaces
    updated = engine.update(seen, wanted)
    expected = {"region": "eu", "theirs": "kept", "goog-pulumi-provisioned": "true"}
    assert updated.outputs["effectiveLabels"] == live(cloud, NAME)["labels"] == expected
    assert updated.outputs["labels"] == {"region": "eu"}


def test_a_label_changed_by_others_shows_on_refresh_and_is_set_back(engine: Engine, cloud: Served):
    made = engine.create(ENTRY, entry())
    changed(cloud, "PATCH", f"{NAME}?updateMask=labels", {"labels": {"cluster": "two", "theirs": "x"}})
    seen = engine.refresh(made)
    assert seen.inputs["labels"] == seen.outputs["labels"] == {"cluster": "two"}
    assert "labels.cluster" in engine.diff(seen, entry()).detailedDiff
    engine.update(seen, entry())
    assert live(cloud, NAME)["labels"] == {"cluster": "one", "theirs": "x"}


@pytest.mark.parametrize(
    ("inputs", "place"),
    [
        pytest.param(
            entry(replication={"userManaged": {"replicas": [{"location": "europe-west1"}]}}),
            "replication",
            id="replication",
        ),
        pytest.param(entry(secretId="other"), "secretId", id="id"),
        pytest.param(entry(project="other-project"), "project", id="project"),
    ],
)
def test_what_no_update_can_change_replaces(engine: Engine, inputs: Properties, place: str):
    answer = engine.diff(engine.create(ENTRY, entry()), inputs)
    assert {path.split(".")[0] for path in answer.replaces} == {place}
    assert answer.deleteBeforeReplace is (place == "replication")


def test_a_user_managed_replication_comes_back_as_it_was_declared(engine: Engine):
    wanted = entry(
        replication={"userManaged": {"replicas": [{"location": "us-east1"}, {"location": "europe-west1"}]}}
    )
    made = engine.create(ENTRY, wanted)
    assert made.outputs["replication"] == wanted["replication"]
    assert engine.refresh(made).inputs == made.inputs


@pytest.mark.parametrize(
    ("inputs", "place"),
    [
        pytest.param({"secretId": "pull"}, "replication", id="missing"),
        pytest.param(entry(label={"a": "b"}), "label", id="unknown property"),
        pytest.param(entry(ttl="3600s"), "ttl", id="not served"),
    ],
)
def test_bad_inputs_of_a_secret_are_refused_at_their_place(engine: Engine, inputs: Properties, place: str):
    assert place in refusals(engine.checked(ENTRY, inputs))


def test_deletion_follows_the_recorded_policy(engine: Engine, cloud: Served):
    engine.delete(engine.create(ENTRY, entry(deletionPolicy="ABANDON")))
    assert live(cloud, NAME)["name"]
    protected = engine.create(ENTRY, entry(secretId="other", deletionProtection=True))
    with pytest.raises(grpc.RpcError, match="forbids to delete it"):
        engine.delete(protected)
    freed = engine.update(protected, entry(secretId="other"))
    engine.delete(freed)
    engine.delete(freed)
    assert "error" in live(cloud, "projects/acme-prod/secrets/other")


def test_a_secret_is_found_by_its_id_alone_and_no_label_counts_as_declared(engine: Engine):
    engine.create(ENTRY, entry())
    found = engine.get(ENTRY, NAME)
    assert found.id == NAME
    assert found.inputs == {
        "deletionPolicy": "DELETE",
        "deletionProtection": False,
        "project": "acme-prod",
        "replication": {},
        "secretId": "pull",
        "__defaults": ["deletionPolicy", "deletionProtection"],
    }
    assert engine.get(ENTRY, "projects/acme-prod/secrets/none").id == ""


# Versions


def test_a_version_is_named_by_the_service_and_its_payload_is_secret(engine: Engine, cloud: Served):
    engine.create(ENTRY, entry())
    made = engine.create(VERSION, version())
    assert made.id == made.outputs["name"] == live(cloud, f"{NAME}/versions/1")["name"]
    assert made.id.endswith("/secrets/pull/versions/1")
    assert made.outputs["version"] == "1"
    assert made.outputs["enabled"] is True
    assert made.outputs["secretData"] == Secret(PAYLOAD)
    stored = cast("Properties", live(cloud, f"{NAME}/versions/1:access")["payload"])
    assert base64.b64decode(str(stored["data"])).decode() == PAYLOAD


def test_another_payload_is_another_version_made_before_the_old_one_goes(engine: Engine):
    engine.create(ENTRY, entry())
    made = engine.create(VERSION, version())
    assert engine.diff(made, version()).changes == provider_pb2.DiffResponse.DIFF_NONE
    answer = engine.diff(made, version("another"))
    assert list(answer.replaces) == ["secretData"]
    assert not answer.deleteBeforeReplace
    elsewhere = version(secret=NAME.replace("acme-prod", "other-project"))
    assert list(engine.diff(made, elsewhere).replaces) == ["secret"]


@pytest.mark.parametrize(("policy", "state"), [("DELETE", "DESTROYED"), ("ABANDON", "ENABLED")])
def test_a_version_is_deleted_as_its_policy_says(engine: Engine, cloud: Served, policy: str, state: str):
    engine.create(ENTRY, entry())
    engine.delete(engine.create(VERSION, version(deletionPolicy=policy)))
    assert live(cloud, f"{NAME}/versions/1")["state"] == state


def test_a_version_disabled_by_others_shows_on_refresh_and_is_enabled_again(engine: Engine, cloud: Served):
    engine.create(ENTRY, entry())
    made = engine.create(VERSION, version())
    changed(cloud, "POST", f"{NAME}/versions/1:disable")
    seen = engine.refresh(made)
    assert seen.outputs["enabled"] is False
    assert seen.outputs["secretData"] == Secret(PAYLOAD)
    assert list(engine.diff(seen, version()).detailedDiff) == ["enabled"]
    assert engine.update(seen, version()).outputs["enabled"] is True
    assert live(cloud, f"{NAME}/versions/1")["state"] == "ENABLED"


def test_a_version_destroyed_by_others_is_gone_on_refresh(engine: Engine, cloud: Served):
    engine.create(ENTRY, entry())
    made = engine.create(VERSION, version())
    changed(cloud, "POST", f"{NAME}/versions/1:destroy")
    assert engine.refresh(made).id == ""


@pytest.mark.parametrize(
    ("inputs", "place"),
    [
        ({"secret": NAME}, "secretData"),
        ({"secretData": PAYLOAD}, "secret"),
        (version(secretDataWo=Secret(PAYLOAD)), "secretDataWo"),
        (version(enabled=True), "enabled"),
    ],
)
def test_bad_inputs_of_a_version_are_refused_at_their_place(engine: Engine, inputs: Properties, place: str):
    told = refusals(engine.checked(VERSION, inputs))
    assert place in told
    assert PAYLOAD not in str(told)


def test_a_version_is_found_by_its_id_alone(engine: Engine):
    engine.create(ENTRY, entry())
    made = engine.create(VERSION, version())
    found = engine.get(VERSION, made.id)
    assert found.inputs["secretData"] == Secret(PAYLOAD)
    assert str(found.inputs["secret"]).endswith("/secrets/pull")
    with pytest.raises(grpc.RpcError, match="names nothing in Secret Manager"):
        engine.get(VERSION, NAME)


def test_a_payload_never_enters_an_error(engine: Engine):
    engine.create(ENTRY, entry())
    with pytest.raises(grpc.RpcError) as refused:
        engine.create(VERSION, version("x" * 70_000))
    assert "70000 bytes" in message(refused)
    assert "xxxxx" not in message(refused)


# Grants


def test_a_grant_enters_the_policy_and_leaves_it(engine: Engine, cloud: Served):
    engine.create(ENTRY, entry())
    account = "serviceAccount:a@acme.iam.gserviceaccount.com"
    other = engine.create(MEMBER, grant(secretId="pull", member=account))
    with pytest.raises(grpc.RpcError, match="write projects/PROJECT/secrets/SECRET"):
        engine.create(MEMBER, grant(secretId="a/b"))
    made = engine.create(MEMBER, grant())
    assert made.id == f"{NAME}/{ACCESSOR}/{READER}"
    assert made.outputs["secretId"] == NAME
    policy = live(cloud, f"{NAME}:getIamPolicy")
    assert policy["bindings"] == [
        {"role": ACCESSOR, "members": [READER, "serviceAccount:a@acme.iam.gserviceaccount.com"]}
    ]
    assert engine.refresh(made).inputs == made.inputs
    assert made.outputs["etag"] == policy["etag"]
    engine.delete(made)
    engine.delete(other)
    assert "bindings" not in live(cloud, f"{NAME}:getIamPolicy")


def test_whatever_changes_in_a_grant_replaces_it(engine: Engine):
    engine.create(ENTRY, entry())
    made = engine.create(MEMBER, grant())
    assert engine.diff(made, grant()).changes == provider_pb2.DiffResponse.DIFF_NONE
    assert engine.diff(made, grant(secretId="pull")).changes == provider_pb2.DiffResponse.DIFF_NONE
    elsewhere = NAME.replace("acme-prod", "other-project")
    assert "secretId" in engine.diff(made, grant(secretId=elsewhere)).replaces
    assert list(engine.diff(made, grant(role="roles/secretmanager.viewer")).replaces) == ["role"]
    assert list(engine.diff(made, grant(member=READER.lower())).replaces) == ["member"]
    assert "condition" in refusals(engine.checked(MEMBER, grant(condition={})))
    assert list(engine.diff(made, grant(secretId=UNKNOWN)).replaces) == ["secretId"]


def test_a_revoked_grant_is_gone_on_refresh_and_so_is_one_on_a_vanished_secret(engine: Engine, cloud: Served):
    engine.create(ENTRY, entry())
    made = engine.create(MEMBER, grant())
    changed(cloud, "POST", f"{NAME}:setIamPolicy", {"policy": {}})
    assert engine.refresh(made).id == ""
    changed(cloud, "DELETE", NAME)
    assert engine.refresh(made).id == ""
    engine.delete(made)


def test_a_policy_written_by_others_at_the_same_moment_is_read_again(
    engine: Engine, cloud: Served, pauses: list[float], monkeypatch: pytest.MonkeyPatch
):
    other: Properties = {"role": "roles/secretmanager.viewer", "members": ["allUsers"]}

    def pause(_patience: Patience, seconds: float) -> None:
        pauses.append(seconds)
        changed(cloud, "POST", f"{NAME}:setIamPolicy", {"policy": {"bindings": [other]}})

    monkeypatch.setattr(Patience, "wait", pause)
    configure(engine, cloud)
    engine.create(ENTRY, entry())
    failing(cloud, "POST", ":setIamPolicy", status=409)
    engine.create(MEMBER, grant())
    assert pauses == [1]
    assert len(cast("list[Value]", live(cloud, f"{NAME}:getIamPolicy")["bindings"])) == 2


# Listing


def test_secrets_are_listed_by_a_filter_and_none_is_no_error(engine: Engine):
    function = "gcp:secretmanager/getSecrets:getSecrets"
    assert engine.invoke(function)["secrets"] == []
    for index in range(4):
        engine.create(ENTRY, entry(secretId=f"s{index}", labels={"half": str(index % 2)}))
    assert len(cast("list[Value]", engine.invoke(function)["secrets"])) == 4
    listed = engine.invoke(function, filter="labels.half=1", project="acme-prod")
    found = cast("list[Properties]", listed["secrets"])
    assert len(found) == 2
    assert found[0]["labels"] == {"half": "1", "goog-pulumi-provisioned": "true"}
    assert found[0]["secretId"] in {f"s{index}" for index in (1, 3)}
    assert listed["id"] == "projects/acme-prod/secrets/filter=labels.half=1"


def test_other_functions_and_resources_are_refused_by_name(engine: Engine):
    with pytest.raises(grpc.RpcError, match="getSecretVersion"):
        engine.invoke("gcp:secretmanager/getSecretVersion:getSecretVersion")
    told = refusals(engine.checked(urn("gcp:storage/bucket:Bucket", "b"), {}))
    assert "serves only" in told[""]


# Faults


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_asked_again_with_growing_pauses(
    engine: Engine, cloud: Served, pauses: list[float], status: int
):
    failing(cloud, "POST", "/secrets$", status=status, times=3)
    assert engine.create(ENTRY, entry()).id == NAME
    assert pauses == [0.5, 1, 2]


@pytest.mark.parametrize("status", [400, 403])
def test_other_refusals_are_told_at_once(engine: Engine, cloud: Served, pauses: list[float], status: int):
    failing(cloud, "POST", "/secrets$", status=status)
    with pytest.raises(grpc.RpcError) as refused:
        engine.create(ENTRY, entry())
    assert message(refused).startswith(NAME)
    assert pauses == []


def test_a_lost_answer_to_a_new_version_is_an_error_and_the_version_stays_unrecorded(
    engine: Engine, cloud: Served
):
    engine.create(ENTRY, entry())
    failing(cloud, "POST", ":addVersion")
    with pytest.raises(grpc.RpcError, match="its answer was lost"):
        engine.create(VERSION, version())
    assert engine.create(VERSION, version()).outputs["version"] == "2"


# Previews and options


def test_a_preview_writes_nothing_and_knows_no_answers(engine: Engine, cloud: Served):
    with nothing_asked(cloud):
        shown = engine.preview_create(ENTRY, entry())
        assert shown["secretId"] == "pull"
        assert shown["name"] is UNKNOWN
        assert shown["pulumiLabels"] == {"cluster": "one", "goog-pulumi-provisioned": "true"}
        assert engine.preview_create(VERSION, version(secret=UNKNOWN))["version"] is UNKNOWN
        assert engine.preview_create(MEMBER, grant(secretId=UNKNOWN))["etag"] is UNKNOWN
        unknown = engine.preview_create(ENTRY, entry(labels={"cluster": UNKNOWN}))
        assert unknown["effectiveLabels"] is unknown["pulumiLabels"] is UNKNOWN


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"secretManagerCustomEndpoint": UNKNOWN, "region": "r"}, []),
        ({"secretManagerCustomEndpoint": ""}, ["secretManagerCustomEndpoint"]),
        ({"accessToken": None}, ["accessToken"]),
    ],
)
def test_options_without_which_no_stand_in_is_reached_are_missed_by_name(
    engine: Engine, options: Properties, refused: list[str]
):
    complete: Properties = {"secretManagerCustomEndpoint": "http://x/v1/", "accessToken": "t"}
    assert list(engine.check_config(complete | options)) == refused


def test_a_change_of_the_labels_of_a_secret_in_a_state_of_the_genuine_provider_is_no_replacement(
    engine: Engine,
):
    made = engine.create(ENTRY, entry())
    genuine: Properties = {
        **made.outputs,
        "replication": {"auto": {"customerManagedEncryption": None}},
        "annotations": None,
        "rotation": None,
        "topics": [],
        "ttl": None,
    }
    answer = engine.diff(Recorded(ENTRY, made.id, made.inputs, genuine), entry())
    assert answer.changes == provider_pb2.DiffResponse.DIFF_NONE
