"""What the providers of a stack get, and that none exists for a cluster other than the configured one."""

import json
from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from components.providers import azure_provider, gcp_provider, kubernetes_provider
from components.stack_config.models import Cluster
from tests.support.cases import table
from tests.support.recorder import Recorder, Secret, record

PROVIDER = "pulumi:providers:kubernetes"
UID = "0a1b2c3d-0000-4000-8000-000000000001"
CONSTANT = {"clusterIdentifier": "credfleet"}
FLAGS = table(__file__, "FLAGS")


def declared(cluster: Cluster, *, found: str = UID, preview: bool = False) -> Recorder:
    def program() -> None:
        kubernetes_provider(cluster, pulumi.ResourceOptions())

    kube_system: Any = {"metadata": {"name": "kube-system", "uid": found}}
    return record(program, preview=preview, outputs={"kubernetes:core/v1:Namespace": kube_system})


def test_the_provider_keeps_claims_and_uses_the_configured_context_only() -> None:
    recorder = declared(Cluster(context="fleet", kubeconfig="/etc/kubeconfig"))

    assert {one.name: one.inputs for one in recorder.registrations} == {
        "kubernetes": {"context": "fleet", "kubeconfig": "/etc/kubeconfig", **CONSTANT, **FLAGS}
    }


def test_the_environment_cannot_turn_a_flag_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("ENABLE_PATCH_FORCE", "UPSERT_EXISTING_OBJECTS"):
        monkeypatch.setenv(f"PULUMI_K8S_{variable}", "true")
    for variable in ("ENABLE_SECRET_MUTABLE", "ENABLE_SERVER_SIDE_APPLY"):
        monkeypatch.setenv(f"PULUMI_K8S_{variable}", "false")

    provider = declared(Cluster(context="fleet")).named(PROVIDER, "kubernetes")

    assert {flag: json.loads(provider.inputs[flag]) for flag in FLAGS} == {
        flag: json.loads(value) for flag, value in FLAGS.items()
    }


ENVIRONMENT: Any = table(__file__, "ENVIRONMENT")


@pytest.mark.parametrize(
    "provider",
    [
        lambda: kubernetes_provider(Cluster(context="fleet")),
        lambda: kubernetes_provider(Cluster(context="fleet", uid=UID)),
        lambda: gcp_provider(pulumi.ResourceOptions()),
        lambda: azure_provider(pulumi.ResourceOptions()),
        lambda: azure_provider(pulumi.ResourceOptions(), "00000000-0000-4000-8000-000000000001"),
    ],
    ids=["kubernetes", "kubernetes-with-uid", "gcp", "azure", "azure-subscription"],
)
def test_no_provider_has_an_input_of_this_machines_environment(
    provider: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kube_system: Any = {"metadata": {"name": "kube-system", "uid": UID}}

    def inputs() -> list[Any]:
        recorder = record(provider, outputs={"kubernetes:core/v1:Namespace": kube_system})
        return [one.inputs for one in recorder.registrations]

    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    before = inputs()
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    assert inputs() == before


def test_a_cluster_with_a_new_address_or_a_renamed_context_is_the_same_to_the_provider() -> None:
    """The genuine provider replaces every object of a cluster it takes for another one, claims included."""
    before, after = (declared(Cluster(context=name)).named(PROVIDER, "kubernetes") for name in ("one", "two"))

    assert before.inputs["clusterIdentifier"] == after.inputs["clusterIdentifier"]


@pytest.mark.parametrize("preview", [False, True])
def test_a_cluster_with_the_configured_uid_is_let_through(*, preview: bool) -> None:
    recorder = declared(Cluster(context="fleet", uid=UID), preview=preview)

    assert recorder.named(PROVIDER, "kubernetes").inputs == {"context": "fleet", **CONSTANT, **FLAGS}
    looked = recorder.named("kubernetes:core/v1:Namespace", "kube-system")
    assert looked.read_id == "kube-system"
    assert "kubernetes-lookout" in looked.provider
    assert looked.inputs == {"apiVersion": "v1", "kind": "Namespace"}, "else a refresh finds it changed"


@pytest.mark.parametrize("preview", [False, True])
def test_another_cluster_is_refused_before_a_provider_that_writes_exists(*, preview: bool) -> None:
    other = "ffffffff-0000-4000-8000-000000000001"

    with pytest.raises(pulumi.RunError, match=f"uid {other}; nothing was written\n→ point KUBECONFIG"):
        declared(Cluster(context="fleet", uid=UID), found=other, preview=preview)


def clouds(make: Callable[[pulumi.ResourceOptions], object], **config: str) -> Recorder:
    secret = {key for key in config if key.endswith("Token")}

    def program() -> None:
        make(pulumi.ResourceOptions())

    return record(program, config=config, secret_keys=secret)


def test_the_providers_of_the_clouds_get_the_keys_of_the_stack() -> None:
    google = clouds(
        gcp_provider,
        **{
            "gcp:project": "fleet",
            "gcp:accessToken": "t",
            "gcp:userProjectOverride": "true",
            "azure-native:subscriptionId": "not Google's",
        },
    )
    azure = clouds(azure_provider, **{"azure-native:metadataHost": "127.0.0.1:1", "gcp:project": "fleet"})

    assert google.named("pulumi:providers:gcp", "gcp").inputs == {
        "project": "fleet",
        "accessToken": Secret("t"),
        "userProjectOverride": "true",
    }
    made = azure.named("pulumi:providers:azure-native", "azure-native").inputs
    assert made["metadataHost"] == "127.0.0.1:1"
    assert "project" not in made


@pytest.mark.parametrize(
    ("key", "fix"),
    [("gcp:projcet", "did you mean project"), ("gcp:zzz", "remove it")],
)
def test_a_key_that_the_provider_of_a_cloud_has_not_is_refused(key: str, fix: str) -> None:
    with pytest.raises(pulumi.RunError, match=f"{key}: the provider has no such option.*\n→ {fix}"):
        clouds(gcp_provider, **{key: "x"})
