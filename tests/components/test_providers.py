from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

from components.providers import kubernetes_provider
from components.settings.nouns import Cluster
from tests.support.recorder import Recorder, record

PROVIDER = "pulumi:providers:kubernetes"
UID = "0a1b2c3d-0000-4000-8000-000000000001"
CONSTANT = {"clusterIdentifier": "credfleet"}
FLAGS = {
    "enableConfigMapMutable": "true",
    "enablePatchForce": "false",
    "enableSecretMutable": "true",
    "enableServerSideApply": "true",
    "upsertExistingObjects": "false",
}


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


@pytest.mark.parametrize("preview", [False, True])
def test_another_cluster_is_refused_before_a_provider_that_writes_exists(*, preview: bool) -> None:
    other = "ffffffff-0000-4000-8000-000000000001"

    with pytest.raises(pulumi.RunError, match=f"uid {other}; nothing was written\n→ point KUBECONFIG"):
        declared(Cluster(context="fleet", uid=UID), found=other, preview=preview)
