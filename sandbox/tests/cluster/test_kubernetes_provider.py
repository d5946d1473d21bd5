"""The provider behind genuine gRPC, on a real API server."""

from __future__ import annotations

import base64
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

import grpc
import pytest
from pulumi_sandbox.protocol import wire
from pulumi_sandbox.protocol.stubs import provider_pb2
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Secret, Value, contains_secret, reveal
from pulumi_sandbox.providers.kubernetes import objects
from pulumi_sandbox.services.control_plane import ControlPlane

from sandbox.tests.support.kubernetes_provider import provider_at
from sandbox.tests.support.provider_engine import Engine, Recorded, urn

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

SECRET = "kubernetes:core/v1:Secret"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
POOL = urn(SECRET, "pool")


@pytest.fixture
def engine(control_plane: ControlPlane, namespace: str) -> Generator[Engine]:
    with provider_at(
        control_plane.kubeconfig("admin"), namespace=namespace, enableSecretMutable="true"
    ) as engine:
        yield engine


@pytest.fixture
def live(admin: DynamicClient) -> Callable[[Recorded | str], Properties]:
    """Read a Secret past the provider: by its record, or by `namespace/name`."""

    def read(which: Recorded | str) -> Properties:
        namespace, name = (which if isinstance(which, str) else which.id).split("/")
        return (
            admin.resources.get(api_version="v1", kind="Secret").get(name=name, namespace=namespace).to_dict()
        )

    return read


def secret(metadata: Properties | None = None, **fields: Value) -> Properties:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pool", **(metadata or {})}, **fields}


def managers(obj: Properties) -> dict[tuple[str, str], Properties]:
    """Return the managed fields by manager and operation."""
    entries = cast(dict[str, Any], obj)["metadata"]["managedFields"]
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


def failure(call: Callable[[], object]) -> str:
    with pytest.raises(grpc.RpcError) as refused:
        call()
    return str(cast(grpc.Call, refused.value).details())


def patch(admin: DynamicClient, recorded: Recorded, body: Properties, manager: str) -> None:
    """Write as somebody else."""
    namespace, name = recorded.id.split("/")
    admin.resources.get(api_version="v1", kind=str(recorded.inputs["kind"])).patch(
        name=name,
        namespace=namespace,
        body=body,
        content_type="application/merge-patch+json",
        field_manager=manager,
    )


def test_an_object_gets_a_namespace_and_the_outputs_of_the_api(engine: Engine, namespace: str):
    created = engine.create(POOL, secret(data={"k": Secret("dg==")}))
    assert created.id == f"{namespace}/pool"
    metadata = created.outputs["metadata"]
    assert isinstance(metadata, dict)
    assert {"uid", "resourceVersion", "creationTimestamp"} <= metadata.keys()
    assert created.outputs["type"] == "Opaque"
    assert created.outputs["data"] == Secret({"k": "dg=="})
    assert contains_secret(created.outputs["__inputs"])


def test_what_is_secret_in_the_inputs_is_secret_in_all_that_is_recorded(engine: Engine):
    data: Properties = {"k": Secret("v"), "open": "o"}
    metadata: Properties = {"name": "m", "annotations": {"token": Secret("t")}}
    given: Properties = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    created = engine.create(urn(CONFIG_MAP, "m"), given)
    read = engine.refresh(created)
    for kept in (created.outputs, created.outputs["__inputs"], read.outputs, read.inputs):
        match kept:
            case {"data": shown, "metadata": {"annotations": annotations}}:
                assert (shown, annotations) == (data, {"token": Secret("t")})
            case other:
                pytest.fail(str(other))


def test_an_object_is_created_under_the_genuine_providers_manager(
    engine: Engine, live: Callable[[Recorded], Properties]
):
    created = engine.create(POOL, secret(data={"k": "dg=="}))
    assert {"f:data", "f:type"} <= managers(live(created))["pulumi-kubernetes", "Update"].keys()
    assert created.outputs["__fieldManager"] == objects.manager_of(POOL)


def test_the_first_update_takes_the_fields_over_from_the_creator(
    engine: Engine, live: Callable[[Recorded], Properties]
):
    created = engine.create(POOL, secret(data={"k": "dg=="}))
    updated = engine.update(created, secret(data={"k": "dzI="}))
    assert list(managers(live(updated))) == [(objects.manager_of(POOL), "Apply")]


def test_the_field_manager_of_another_providers_state_is_kept(
    engine: Engine, live: Callable[[Recorded], Properties]
):
    created = engine.create(POOL, secret(data={"k": "dg=="}))
    theirs = {**created.outputs, "__fieldManager": "pulumi-kubernetes-9f8e7d6c"}
    updated = engine.update(Recorded(POOL, created.id, created.inputs, theirs), secret(data={"k": "dzI="}))
    assert ("pulumi-kubernetes-9f8e7d6c", "Apply") in managers(live(updated))
    assert updated.outputs["__fieldManager"] == "pulumi-kubernetes-9f8e7d6c"


def test_string_data_is_compared_and_removed_as_data(engine: Engine, live: Callable[[Recorded], Properties]):
    created = engine.create(POOL, secret(data={"a": "b2xk", "c": "b2xk"}, stringData={"a": "one", "b": "ö"}))
    assert reveal(created.inputs["data"]) == live(created)["data"] == {"a": "b25l", "b": "w7Y=", "c": "b2xk"}
    assert "stringData" not in created.inputs
    updated = engine.update(created, secret(stringData={"a": "one"}))
    assert live(updated)["data"] == {"a": "b25l"}


def test_equal_inputs_are_no_change_and_ask_no_server(control_plane: ControlPlane, engine: Engine):
    created = engine.create(POOL, secret(data={"k": "dg=="}))
    with provider_at(control_plane.folder / "no-such-kubeconfig", enableSecretMutable="true") as cut_off:
        answer = cut_off.stub.Diff(
            provider_pb2.DiffRequest(
                urn=POOL,
                id=created.id,
                olds=wire.encode(created.outputs),
                news=wire.encode(created.inputs),
            )
        )
    assert answer.changes == provider_pb2.DiffResponse.DIFF_NONE


def test_labels_and_tokens_of_others_survive_refresh_and_rotation_and_are_no_drift(
    engine: Engine, admin: DynamicClient, live: Callable[[Recorded], Properties]
):
    declared = secret(metadata={"labels": {"hyperscaler-type": "gcp"}}, data={"k": "dg=="})
    created = engine.create(POOL, declared)
    theirs: Properties = {"labels": {"tenant-name": "acme"}, "annotations": {"credfleet.io/token": "t"}}
    patch(admin, created, {"metadata": theirs}, "credfleet-claims")
    refreshed = engine.refresh(created)
    assert refreshed.inputs == created.inputs
    assert engine.diff(refreshed, declared).changes == provider_pb2.DiffResponse.DIFF_NONE
    rotated = engine.update(
        created, secret(metadata={"labels": {"hyperscaler-type": "aws"}}, data={"k": "dzI="})
    )
    match live(rotated):
        case {"metadata": {"labels": labels, "annotations": {"credfleet.io/token": token}}, "data": data}:
            assert labels == {"hyperscaler-type": "aws", "tenant-name": "acme"}
            assert (token, data) == ("t", {"k": "dzI="})
        case other:
            pytest.fail(str(other))


def test_a_declared_field_that_somebody_changed_shows_and_is_set_back(
    engine: Engine, admin: DynamicClient, live: Callable[[Recorded], Properties]
):
    declared = secret(data={"k": "dg==", "l": "dg=="})
    created = engine.create(POOL, declared)
    patch(admin, created, {"data": {"k": "eA==", "l": None}}, "pulumi-kubernetes")
    refreshed = engine.refresh(created)
    assert reveal(refreshed.inputs["data"]) == {"k": "eA=="}
    assert set(engine.diff(refreshed, declared).detailedDiff) == {"data.k", "data.l"}
    assert live(engine.update(refreshed, declared))["data"] == {"k": "dg==", "l": "dg=="}


def test_a_field_that_another_manager_took_is_a_conflict_that_names_it(
    engine: Engine, admin: DynamicClient, live: Callable[[Recorded], Properties]
):
    created = engine.create(POOL, secret(metadata={"labels": {"tenant-name": "mine"}}))
    updated = engine.update(created, secret(metadata={"labels": {"tenant-name": "mine", "a": "b"}}))
    patch(admin, updated, {"metadata": {"labels": {"tenant-name": "theirs"}}}, "credfleet-claims")
    text = failure(lambda: engine.update(updated, secret(metadata={"labels": {"tenant-name": "again"}})))
    assert "credfleet-claims" in text
    assert "tenant-name" in text
    assert "→ leave the field to its owner" in text
    match live(updated):
        case {"metadata": {"labels": {"tenant-name": owner}}}:
            assert owner == "theirs"
        case other:
            pytest.fail(str(other))


def test_an_object_that_is_there_already_is_an_error_with_the_import_line(engine: Engine, namespace: str):
    named = secret(metadata={"name": "taken"}, data={"k": "dg=="})
    engine.create(POOL, named)
    text = failure(lambda: engine.create(urn(SECRET, "renamed"), named))
    assert "already exists" in text
    assert f"{SECRET} renamed and the id {namespace}/taken" in text


def test_an_object_that_a_killed_run_created_for_this_resource_is_brought_up_to_the_inputs(
    engine: Engine, admin: DynamicClient, live: Callable[[Recorded], Properties]
):
    unrecorded = engine.create(POOL, secret(metadata={"name": "fixed"}, data={"k": "dg=="}))
    patch(admin, unrecorded, {"metadata": {"labels": {"tenant-name": "acme"}}}, "credfleet-claims")
    again = engine.create(POOL, secret(metadata={"name": "fixed"}, data={"k": "dzI="}))
    assert live(again)["data"] == {"k": "dzI="}
    match live(again), live(unrecorded):
        case {"metadata": {"uid": after, "labels": labels}}, {"metadata": {"uid": before}}:
            assert (after, labels) == (before, {"tenant-name": "acme"})
        case other:
            pytest.fail(str(other))


def test_an_object_with_nothing_but_a_name_is_known_again_however_often_its_record_was_lost(
    engine: Engine, live: Callable[[Recorded], Properties]
):
    bare = secret(metadata={"name": "bare"})
    first, *others = (live(engine.create(POOL, bare))["metadata"] for _ in range(3))
    assert others == [first, first]


def test_an_update_of_an_object_that_was_made_anew_meanwhile_lands_on_the_new_one(
    engine: Engine, admin: DynamicClient, live: Callable[[Recorded], Properties], namespace: str
):
    created = engine.create(POOL, secret(metadata={"name": "restored"}, data={"k": "dg=="}))
    secrets = admin.resources.get(api_version="v1", kind="Secret")
    secrets.delete(name="restored", namespace=namespace)
    secrets.create(
        body={"metadata": {"name": "restored"}, "data": {"k": "dg=="}},
        namespace=namespace,
        field_manager="kubectl",
    )
    assert live(engine.update(created, secret(metadata={"name": "restored"}, data={"k": "dzI="})))[
        "data"
    ] == {"k": "dzI="}


def test_an_update_of_an_object_that_is_gone_creates_nothing(
    engine: Engine, admin: DynamicClient, namespace: str
):
    created = engine.create(POOL, secret(data={"k": "dg=="}))
    name = created.id.split("/")[1]
    secrets = admin.resources.get(api_version="v1", kind="Secret")
    secrets.delete(name=name, namespace=namespace)
    assert "not found" in failure(lambda: engine.update(created, secret(data={"k": "dzI="})))
    assert name not in [item.metadata.name for item in secrets.get(namespace=namespace).items]


def test_an_object_that_is_gone_is_read_as_gone_and_deleted_without_complaint(
    engine: Engine, admin: DynamicClient, namespace: str
):
    created = engine.create(POOL, secret())
    admin.resources.get(api_version="v1", kind="Secret").delete(
        name=created.id.split("/")[1], namespace=namespace
    )
    assert engine.refresh(created).id == ""
    engine.delete(created)


def test_a_resource_that_is_only_read_has_what_was_declared_as_its_inputs(engine: Engine, namespace: str):
    engine.create(POOL, secret(metadata={"name": "there", "labels": {"a": "b"}}, data={"k": "dg=="}))
    found = engine.get(urn(SECRET, "read"), f"{namespace}/there")
    assert reveal(found.inputs) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {"name": "there", "namespace": namespace, "labels": {"a": "b"}},
        "data": {"k": "dg=="},
    }
    assert found.outputs["data"] == Secret({"k": "dg=="})


def test_a_preview_shows_what_the_server_would_make_and_writes_nothing(
    engine: Engine, admin: DynamicClient, namespace: str
):
    shown = engine.preview_create(POOL, secret(stringData={"k": Secret("v")}))
    assert shown["type"] == "Opaque"
    assert shown["data"] == Secret({"k": base64.b64encode(b"v").decode()})
    assert admin.resources.get(api_version="v1", kind="Secret").get(namespace=namespace).items == []


def test_a_preview_of_an_update_shows_it_and_writes_nothing(
    engine: Engine, live: Callable[[Recorded], Properties]
):
    created = engine.create(POOL, secret(data={"k": "dg=="}))
    shown = engine.update(created, secret(data={"k": "dzI="}), preview=True)
    assert shown.outputs["data"] == Secret({"k": "dzI="})
    assert live(created)["data"] == {"k": "dg=="}


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param(secret(data={"k": UNKNOWN}), id="an unknown value"),
        pytest.param(secret(metadata={"namespace": "not-there-yet"}), id="an unborn namespace"),
    ],
)
def test_a_preview_that_the_server_cannot_make_shows_the_inputs(engine: Engine, inputs: Properties):
    shown = engine.preview_create(POOL, inputs)
    assert shown["kind"] == "Secret"
    assert "type" not in shown


def test_a_preview_of_a_wrong_object_is_refused_as_the_update_would_be(engine: Engine):
    text = failure(lambda: engine.preview_create(POOL, secret(data={"bad key": "dg=="})))
    assert "bad key" in text


def test_a_refusal_shows_no_secret(engine: Engine):
    wrong = Secret("hunter2-is-not-base64")
    text = failure(lambda: engine.create(POOL, secret(data={"k": wrong})))
    assert "refused to create it" in text
    assert "hunter2" not in text


def test_many_objects_are_created_at_once(engine: Engine, admin: DynamicClient, namespace: str):
    def create(number: int) -> str:
        data: Properties = {"n": str(number)}
        inputs: Properties = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
        named: Properties = {"metadata": {"name": f"map-{number}"}}
        return engine.create(urn(CONFIG_MAP, f"map-{number}"), {**inputs, **named}).id

    with ThreadPoolExecutor(16) as parallel:
        ids = set(parallel.map(create, range(50)))
    there = admin.resources.get(api_version="v1", kind="ConfigMap").get(namespace=namespace).items
    made = [item.metadata.name for item in there if item.metadata.name.startswith("map-")]
    assert ids == {f"{namespace}/{name}" for name in made}
    assert len(ids) == 50
