"""An API server that serves kinds of External Secrets Operator, of any shape; nobody reconciles them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kubernetes.dynamic.exceptions import NotFoundError

from tests.support.noticed import until

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

_SECONDS: Final = 60
GROUP: Final = "external-secrets.io"
_SHAPE: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(kind: str, version_: str) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind, with a status of its own."""
    plural = f"{kind.lower()}s"
    scope = "Cluster" if kind.startswith("Cluster") else "Namespaced"
    version = {"name": version_, "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{**version, "schema": {"openAPIV3Schema": _SHAPE}}],
        },
    }


def serve(admin: DynamicClient, kind: str, version: str = "v1") -> None:
    """Make the API server serve a kind, and wait until it does."""
    api = admin.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    made = definition(kind, version)
    api.create(body=made)
    name = made["metadata"]["name"]
    assert any(_established(event["raw_object"]) for event in api.watch(name=name, timeout=_SECONDS)), name
    until(lambda: _is_found(admin, version, made["spec"]["names"]["plural"]))


def _is_found(admin: DynamicClient, version: str, plural: str) -> bool:
    """Whether a client that asks which kinds there are is told of one, and may list its objects."""
    try:
        groups = admin.request("get", "/apis").to_dict()["groups"]
        kinds = admin.request("get", f"/apis/{GROUP}/{version}").to_dict()["resources"]
        admin.request("get", f"/apis/{GROUP}/{version}/{plural}")
    except NotFoundError:
        return False
    return GROUP in {each["name"] for each in groups} and plural in {each["name"] for each in kinds}


def _established(found: Mapping[str, Any]) -> bool:
    conditions = found.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


class ExternalSecrets:
    """ExternalSecrets of one namespace, and what the operator would make of them."""

    def __init__(self, admin: DynamicClient, namespace: str) -> None:
        self._admin = admin
        self._namespace = namespace
        self._path = f"/apis/{GROUP}/v1/namespaces/{namespace}/externalsecrets"

    def declare(self, name: str, target: str, manager: str = "pulumi-kubernetes") -> None:
        """Write one as a stack does."""
        body = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ExternalSecret",
            "metadata": {"name": name},
            "spec": {"target": {"name": target, "creationPolicy": "Owner", "deletionPolicy": "Retain"}},
        }
        self._admin.request("post", f"{self._path}?fieldManager={manager}", body=body)

    def live(self, name: str) -> dict[str, Any]:
        return self._admin.request("get", f"{self._path}/{name}").to_dict()

    def says(self, name: str, status: str, reason: str, message: str, **more: Any) -> None:
        """Write the status that the operator would."""
        condition = {"type": "Ready", "status": status, "reason": reason, "message": message}
        self._patch(f"{name}/status", {"status": {"conditions": [condition], **more}})

    def change(self, name: str, spec: Mapping[str, Any]) -> None:
        self._patch(name, {"spec": spec})

    def make(self, name: str, target: str, type_: str = "Opaque", /, **data: str) -> None:
        """Make the target of one, as the operator does."""
        owner = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ExternalSecret",
            "name": name,
            "uid": self.live(name)["metadata"]["uid"],
            "controller": True,
        }
        labels = {"reconcile.external-secrets.io/managed": "true"}
        metadata = {"name": target, "ownerReferences": [owner], "labels": labels}
        secrets = self._admin.resources.get(api_version="v1", kind="Secret")
        body = {"metadata": metadata, "stringData": data, "type": type_}
        secrets.create(body=body, namespace=self._namespace)

    def _patch(self, path: str, body: Mapping[str, Any]) -> None:
        merge = {"content_type": "application/merge-patch+json"}
        self._admin.request("patch", f"{self._path}/{path}", body=body, **merge)
