"""Users of the test cluster with rights in one namespace, each with a client of its own."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sandbox.tests.support.cluster import client_for
from tests.support.noticed import until

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

Rules = Sequence[Mapping[str, Sequence[str]]]

ALL_OBJECTS: Final[Rules] = (
    {"apiGroups": ["", "events.k8s.io"], "resources": ["secrets", "configmaps", "events"], "verbs": ["*"]},
)


def grant(admin: DynamicClient, namespace: str, user: str, rules: Rules) -> None:
    """Create a Role of its own for a user in a namespace, and wait until the API server goes by it."""
    metadata = {"name": user, "namespace": namespace}
    group = "rbac.authorization.k8s.io"
    objects: list[dict[str, Any]] = [
        {"kind": "Role", "rules": list(rules)},
        {
            "kind": "RoleBinding",
            "roleRef": {"apiGroup": group, "kind": "Role", "name": user},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        },
    ]
    for body in objects:
        api = admin.resources.get(api_version=f"{group}/v1", kind=body["kind"])
        api.create(body={"apiVersion": f"{group}/v1", "metadata": metadata, **body})
    until(lambda: _may(admin, namespace, user, rules[-1]))


def _may(admin: DynamicClient, namespace: str, user: str, rule: Mapping[str, Sequence[str]]) -> bool:
    first = {key: values[0] for key, values in rule.items()}
    asked = {
        "namespace": namespace,
        "group": first["apiGroups"],
        "resource": first["resources"],
        "verb": first["verbs"],
        "name": first.get("resourceNames", ""),
    }
    reviews = admin.resources.get(api_version="authorization.k8s.io/v1", kind="SubjectAccessReview")
    answer = reviews.create(body={"spec": {"user": user, "resourceAttributes": asked}})
    return bool(answer.status.allowed)


@contextmanager
def impersonating(kubeconfig: Path, discovered: Path, user: str) -> Generator[DynamicClient]:
    """Talk to the cluster as another user; the kubeconfig is of one who may impersonate."""
    with client_for(kubeconfig, discovered) as client:
        client.client.set_default_header("Impersonate-User", user)
        client.client.set_default_header("Impersonate-Group", "system:authenticated")
        yield client
