"""Models of the stack's cluster and of a tenant, which combines components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import Field

from components.account_pool.settings import Slot
from components.config.field_types import (
    ClusterUid,
    ConfigModel,
    FilePath,
    FormerNames,
    Name,
    NamespaceName,
    Text,
    optional,
)
from components.config.section import Written
from components.naming import config_path


class Cluster(ConfigModel):
    """Cluster that the stack writes to. Another one is rejected before the first write."""

    context: Text | None = optional("Context of the kubeconfig. No other one is used.")
    kubeconfig: FilePath | None = optional("Path of the kubeconfig; absent means KUBECONFIG.")
    uid: ClusterUid | None = optional("uid of namespace kube-system. Another cluster is rejected.")
    existing_namespaces: tuple[NamespaceName, ...] = optional(
        "Existing namespaces, which the stack uses and does not declare.", ()
    )


class Tenant(ConfigModel):
    """Where the rooms meet: a namespace and the accounts used in it."""

    namespace: NamespaceName = Field(description="Namespace of the tenant's objects; declared by the stack.")
    accounts: Mapping[Name, Slot] = optional("Slot → claim.", {})
    previously: FormerNames = ()

    def written(self, name: str) -> Iterator[Written]:
        """Yield the copies of its accounts. `name`: the tenant's."""
        for slot, account in self.accounts.items():
            if account.deliver_to is not None:
                place = config_path("tenants", name, "accounts", slot, "deliverTo")
                yield self.namespace, account.deliver_to.target, place
