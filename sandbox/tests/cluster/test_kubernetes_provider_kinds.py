"""Kinds that need more than a write: namespaces, definitions, waits; and clusters that say no."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi_sandbox.protocol.stubs import provider_pb2_grpc
from pulumi_sandbox.protocol.values import Properties, Value, reveal
from pulumi_sandbox.providers.kubernetes.provider import package
from pulumi_sandbox.services.control_plane import ControlPlane

from sandbox.tests.support.kubernetes_provider import provider_at
from sandbox.tests.support.provider_engine import Engine, served, urn

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

NAMESPACE = "kubernetes:core/v1:Namespace"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"


@pytest.fixture
def engine(control_plane: ControlPlane, namespace: str) -> Generator[Engine]:
    with provider_at(control_plane.kubeconfig("admin"), namespace=namespace) as engine:
        yield engine


@pytest.fixture
def group() -> str:
    """A group of kinds that no other test has."""
    return f"g{secrets.token_hex(4)}.example.com"


def bucket(
    group: str, name: str = "b", *, annotations: Properties | None = None, **spec: Value
) -> Properties:
    metadata: Properties = {"name": name, "annotations": annotations or {}}
    return {"apiVersion": f"{group}/v1", "kind": "Bucket", "metadata": metadata, "spec": spec}


def config_map(metadata: Properties | None = None, **fields: Value) -> Properties:
    named: Properties = {"name": "m", **(metadata or {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, **fields}


def failed(call: Callable[[], object]) -> grpc.Call:
    with pytest.raises(grpc.RpcError) as refused:
        call()
    return cast(grpc.Call, refused.value)


def failure(call: Callable[[], object]) -> str:
    return str(failed(call).details())


def test_a_namespace_is_gone_when_its_delete_returns(engine: Engine, admin: DynamicClient):
    name = f"brief-{secrets.token_hex(4)}"
    space = engine.create(
        urn(NAMESPACE, "brief"), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    )
    engine.create(urn(CONFIG_MAP, "inside"), config_map(metadata={"namespace": name}))
    assert space.id == name
    engine.delete(space)
    assert name not in [
        item.metadata.name for item in admin.resources.get(api_version="v1", kind="Namespace").get().items
    ]


def test_a_namespace_given_to_a_cluster_wide_kind_is_left_out(engine: Engine):
    role: Properties = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "reader", "namespace": "somewhere"},
    }
    checked = engine.check(urn("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole", "reader"), role)
    assert checked["metadata"] == {"name": "reader"}


def test_an_objects_own_namespace_goes_before_the_providers_and_that_before_the_contexts(
    control_plane: ControlPlane, namespace: str
):
    def placed(inputs: Properties, **options: str) -> Value:
        with provider_at(control_plane.kubeconfig("admin"), **options) as engine:
            checked = engine.check(urn(CONFIG_MAP, "m"), inputs)
        return cast(Properties, checked["metadata"])["namespace"]

    assert placed(config_map(metadata={"namespace": "own"}), namespace=namespace) == "own"
    assert placed(config_map(), namespace=namespace) == namespace
    assert placed(config_map()) == "default"


def test_objects_of_a_kind_defined_meanwhile_are_made_and_gone_with_their_kind(
    engine: Engine, group: str, admin: DynamicClient
):
    kinds = admin.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    named, names = f"buckets.{group}", {"kind": "Bucket", "plural": "buckets"}
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
    pail = urn(f"kubernetes:{group}/v1:Bucket", "b")
    assert "status" not in engine.preview_create(pail, bucket(group, size=1))
    kinds.create(body={"metadata": {"name": named}, "spec": spec})
    made = engine.create(pail, bucket(group, size=1))
    assert reveal(made.outputs["spec"]) == {"size": 1}
    updated = engine.update(made, bucket(group, size=2))
    assert reveal(updated.outputs["spec"]) == {"size": 2}
    since = kinds.delete(name=named).metadata.resourceVersion
    events = kinds.watch(field_selector=f"metadata.name={named}", resource_version=since, timeout=60)
    assert "DELETED" in (event["type"] for event in events)
    assert engine.refresh(updated).id == ""
    engine.delete(updated)


def test_an_object_of_an_unknown_kind_is_refused_with_its_name(
    engine: Engine, group: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pulumi_sandbox.providers.kubernetes.apply._RETRY_SECONDS", (0.01,))
    text = failure(lambda: engine.create(urn(f"kubernetes:{group}/v1:Bucket", "b"), bucket(group)))
    assert f"serves no kind Bucket in {group}/v1" in text
    assert "CustomResourceDefinition" in text


def test_a_delete_that_a_finalizer_holds_up_names_it(engine: Engine):
    held = engine.create(urn(CONFIG_MAP, "m"), config_map(metadata={"finalizers": ["example.com/hold"]}))
    assert "example.com/hold" in failure(lambda: engine.delete(held, timeout=0.2))


def test_a_wait_ends_when_the_run_is_cancelled(engine: Engine):
    held = engine.create(urn(CONFIG_MAP, "m"), config_map(metadata={"finalizers": ["example.com/hold"]}))
    engine.stub.Cancel(empty_pb2.Empty())
    assert "being stopped" in failure(lambda: engine.delete(held))


def test_an_object_without_a_name_is_refused(engine: Engine):
    unnamed = config_map(metadata={"name": None, "generateName": "m-"})
    (problem,) = engine.checked(urn(CONFIG_MAP, "m"), unnamed).failures
    assert (problem.property, "give the object one" in problem.reason) == ("metadata.name", True)


def test_functions_are_refused_by_name(engine: Engine):
    assert "kubernetes:yaml:decode" in failure(lambda: engine.invoke("kubernetes:yaml:decode"))


def test_a_user_without_rights_is_told_which_right_is_missing(control_plane: ControlPlane, namespace: str):
    with provider_at(control_plane.kubeconfig("janitor"), namespace=namespace) as engine:
        assert "data" in engine.preview_create(urn(CONFIG_MAP, "m"), config_map(data={"a": "b"}))
        text = failure(lambda: engine.create(urn(CONFIG_MAP, "m"), config_map(data={"a": "b"})))
    assert 'cannot create resource "configmaps"' in text
    assert "let an administrator bind a role" in text


@pytest.mark.parametrize("server", ["https://127.0.0.1:1", "https://nowhere.invalid:6443"])
def test_a_cluster_out_of_reach_is_told_at_the_first_preview(tmp_path: Path, server: str):
    file = tmp_path / "kubeconfig"
    away: Properties = {
        "current-context": "away",
        "clusters": [{"name": "away", "cluster": {"server": server}}],
        "contexts": [{"name": "away", "context": {"cluster": "away", "user": "nobody"}}],
        "users": [{"name": "nobody", "user": {"token": "hunter2-token"}}],
    }
    file.write_text(json.dumps(away))
    with provider_at(file) as engine:
        text = failure(lambda: engine.check(urn(CONFIG_MAP, "m"), config_map()))
    assert f"Kubernetes API {server}: it does not answer" in text
    assert "hunter2" not in text


def test_a_context_that_is_not_there_is_told_with_the_kubeconfig(control_plane: ControlPlane):
    with provider_at(control_plane.kubeconfig("admin"), context="prod") as engine:
        text = failure(lambda: engine.check(urn(CONFIG_MAP, "m"), config_map()))
    assert str(control_plane.kubeconfig("admin")) in text
    assert "name prod" in text


def test_a_resource_before_the_configuration_is_an_error_not_a_crash():
    with served(package()) as engine:
        assert "before it was configured" in failure(lambda: engine.check(urn(CONFIG_MAP, "m"), config_map()))


def test_the_provider_runs_as_a_process_that_prints_its_port_and_ends_at_a_signal(
    control_plane: ControlPlane, namespace: str
):
    command = [sys.executable, "-m", "pulumi_sandbox.providers.kubernetes", "127.0.0.1:1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            engine = Engine(provider_pb2_grpc.ResourceProviderStub(channel))
            assert engine.check_config({"enablePatchForce": "true"}).keys() == {"enablePatchForce"}
            answer = engine.configure(kubeconfig=str(control_plane.kubeconfig("admin")), namespace=namespace)
            assert (answer.acceptSecrets, answer.supportsPreview) == (True, True)
            made = engine.create(urn(CONFIG_MAP, "m"), config_map())
            assert engine.refresh(made).id == made.id
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
