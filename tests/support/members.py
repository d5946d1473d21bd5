"""Members of a pool on an API server, as the pool's owner makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from components.account_pool.core.keys import CLAIM_TOKEN
from components.labels import ACCOUNT_ID, HYPERSCALER_TYPE, TENANT_NAME

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

TOKEN: Final = "claim-0.00000000-0000-4000-8000-000000000000.1"
SENTINEL: Final = "sentinel-credential-that-must-never-travel"


class Members:
    """The Secrets of one namespace; each is an account of type aws."""

    def __init__(self, admin: DynamicClient, namespace: str) -> None:
        self._secrets = admin.resources.get(api_version="v1", kind="Secret")
        self._namespace = namespace

    def add(
        self,
        name: str,
        labels: Mapping[str, str] | None = None,
        notes: Mapping[str, str] | None = None,
        manager: str = "pulumi-kubernetes",
    ) -> None:
        metadata = {
            "name": name,
            "labels": {HYPERSCALER_TYPE: "aws", **(labels or {})},
            "annotations": {ACCOUNT_ID: f"id-of-{name}", **(notes or {})},
        }
        body = {"metadata": metadata, "stringData": {"key": SENTINEL}}
        self._secrets.create(namespace=self._namespace, body=body, field_manager=manager)

    def add_claimed(self, name: str) -> None:
        self.add(name, {TENANT_NAME: "acme"}, {CLAIM_TOKEN: TOKEN})

    def remove(self, name: str) -> None:
        self._secrets.delete(name=name, namespace=self._namespace)

    def metadata(self, name: str) -> dict[str, Any]:
        return self._secrets.get(name=name, namespace=self._namespace).to_dict()["metadata"]
