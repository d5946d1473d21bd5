"""Which kind a resource type names, and at which path the API serves it."""

import pytest
from pulumi_sandbox.providers.kubernetes import objects
from pulumi_sandbox.providers.kubernetes.objects import KubernetesKind


@pytest.mark.parametrize(
    ("type_token", "api_version", "kind"),
    [
        ("kubernetes:core/v1:Secret", "v1", "Secret"),
        ("kubernetes:apps/v1:Deployment", "apps/v1", "Deployment"),
        ("kubernetes:example.com/v1beta1:Bucket", "example.com/v1beta1", "Bucket"),
    ],
)
def test_a_type_names_a_kind_as_the_api_does(type_token: str, api_version: str, kind: str):
    assert objects.of_type(type_token) == (api_version, kind)
    assert objects.refusal(type_token) == ""


@pytest.mark.parametrize(
    "type_token",
    [
        "kubernetes:helm.sh/v3:Release",
        "kubernetes:helm.sh/v4:Chart",
        "kubernetes:yaml:ConfigFile",
        "kubernetes:yaml/v2:ConfigGroup",
        "kubernetes:kustomize/v2:Directory",
        "kubernetes:core/v1:SecretList",
        "kubernetes:rbac.authorization.k8s.io/v1:RoleList",
        "kubernetes:core/v1:ConfigMapPatch",
        "gcp:secretmanager/secret:Secret",
    ],
)
def test_types_that_are_no_objects_are_refused_by_name(type_token: str):
    assert type_token in objects.refusal(type_token)


def test_a_custom_kind_may_be_called_a_list():
    assert objects.refusal("kubernetes:example.com/v1:AllowList") == ""


@pytest.mark.parametrize(
    ("kind", "namespace", "collection"),
    [
        (KubernetesKind("v1", "secrets", namespaced=True), "ns", "/api/v1/namespaces/ns/secrets"),
        (KubernetesKind("v1", "secrets", namespaced=True), "", "/api/v1/namespaces/default/secrets"),
        (KubernetesKind("v1", "namespaces", namespaced=False), "", "/api/v1/namespaces"),
        (KubernetesKind("a.b/v1", "roles", namespaced=False), "ns", "/apis/a.b/v1/roles"),
    ],
)
def test_a_kind_is_served_at_one_path(kind: KubernetesKind, namespace: str, collection: str):
    assert kind.path(namespace) == collection
    assert kind.path(namespace, "n") == f"{collection}/n"
