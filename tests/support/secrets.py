"""Secrets on an API server, as an administrator makes, changes and sees them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


class Secrets:
    """Those of one namespace."""

    def __init__(self, admin: DynamicClient, namespace: str) -> None:
        self._api = admin.resources.get(api_version="v1", kind="Secret")
        self.namespace = namespace

    def put(self, name: str, values: Mapping[str, str], type_: str = "Opaque", **metadata: Any) -> None:
        body = {"metadata": {"name": name, **metadata}, "type": type_, "stringData": values}
        self._api.create(body=body, namespace=self.namespace)

    def change(self, name: str, key: str, value: str | bytes) -> None:
        encoded = value.encode() if isinstance(value, str) else value
        body = {"data": {key: base64.b64encode(encoded).decode()}}
        where = {"name": name, "namespace": self.namespace}
        self._api.patch(**where, body=body, content_type="application/merge-patch+json")

    def mark(self, name: str, labels: Mapping[str, str | None]) -> None:
        """Write labels of one; None takes one away."""
        where = {"name": name, "namespace": self.namespace}
        body = {"metadata": {"labels": dict(labels)}}
        self._api.patch(**where, body=body, content_type="application/merge-patch+json")

    def annotate(self, name: str, annotations: Mapping[str, str | None]) -> None:
        """Write annotations of one; None takes one away."""
        where = {"name": name, "namespace": self.namespace}
        body = {"metadata": {"annotations": dict(annotations)}}
        self._api.patch(**where, body=body, content_type="application/merge-patch+json")

    def remove(self, name: str) -> None:
        self._api.delete(name=name, namespace=self.namespace)

    def live(self, name: str) -> dict[str, Any]:
        return self._api.get(name=name, namespace=self.namespace).to_dict()

    def version(self, name: str) -> str:
        return self.live(name)["metadata"]["resourceVersion"]

    def names(self) -> set[str]:
        return {each.metadata.name for each in self._api.get(namespace=self.namespace).items}

    def data(self, name: str) -> dict[str, str]:
        data: Mapping[str, str] = self.live(name).get("data") or {}
        return {key: base64.b64decode(value).decode() for key, value in data.items()}
