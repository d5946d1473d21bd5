"""The table of cloud permissions of a stack's identities, used both to grant and to check them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from components.stack_config.stack import Settings


@dataclass(frozen=True, slots=True)
class Grant:
    """Permissions on one resource of a cloud: actions in AWS, roles in the other clouds.

    at: which resource. reads: permissions of read-only identities; writes: those of the deployer. name: of a
    project or scope.
    """

    cloud: str
    at: str
    reads: Sequence[str]
    writes: Sequence[str]
    name: str = ""

    def given(self, *, writes: bool) -> Sequence[str]:
        """Return the permissions of an identity that writes, or only reads."""
        return self.writes if writes else self.reads


_CRYPTO: Final = ("Key Vault Crypto User",)
_AKS: Final = ("Azure Kubernetes Service Cluster User Role",)
_GKE: Final = ("container.clusterViewer",)
_EKS: Final = ("eks:DescribeCluster",)
_ACCESSOR: Final = ("secretmanager.secretAccessor",)

_BY_KEY: Final[Mapping[str, Sequence[Grant]]] = {
    "aws": [Grant("aws", "key", ("kms:Decrypt",), ("kms:Decrypt", "kms:Encrypt"))],
    "azure": [Grant("azure", "key", _CRYPTO, _CRYPTO), Grant("azure", "cluster", _AKS, _AKS)],
    "gcp": [
        Grant("gcp", "key", ("cloudkms.cryptoKeyDecrypter",), ("cloudkms.cryptoKeyEncrypterDecrypter",)),
        Grant("gcp", "cluster", _GKE, _GKE),
    ],
}
"""Cloud of a stack's encryption key → permissions of its identities on the key and the cluster."""
_BY_BACKEND: Final[Mapping[str, Sequence[Grant]]] = {
    "s3": [
        Grant("aws", "bucket", ("s3:ListBucket",), ("s3:ListBucket",)),
        Grant("aws", "objects", ("s3:GetObject",), ("s3:GetObject", "s3:PutObject", "s3:DeleteObject")),
    ],
    "azblob": [Grant("azure", "state", ("Storage Blob Data Reader",), ("Storage Blob Data Contributor",))],
    "gs": [Grant("gcp", "bucket", ("storage.objectViewer",), ("storage.objectUser",))],
}
"""URL scheme of a backend → permissions of the identities on the state."""


def grants_of(settings: Settings, key: str, backend: str, project: str) -> Iterator[Grant]:
    """Yield what a stack's identities need. key: its cloud; backend: URL scheme; project: the default."""
    yield from _BY_KEY.get(key, ())
    yield from _BY_BACKEND.get(backend, ())
    yield Grant("aws", "cluster", _EKS, _EKS)
    pushes = settings.secret_stores is not None and bool(settings.secret_stores.pushes)
    writes = settings.pull_secrets is not None or pushes
    for number, name in enumerate(secret_projects(settings, project), 1):
        admin = ("secretmanager.admin",) if writes else _ACCESSOR
        yield Grant("gcp", f"secrets_{number}", _ACCESSOR, admin, name)
        if writes:
            yield Grant("gcp", f"secrets_seen_{number}", ("secretmanager.viewer",), (), name)
    aso = settings.aso_credentials
    if aso is None or not aso.is_in_azure:
        return
    scope = "/subscriptions/$subscription"
    groups = {f"{scope}/resourceGroups/{each.resource_group}" for each in aso.identities.values()}
    for number, name in enumerate([scope] if aso.resource_groups else sorted(groups), 1):
        yield Grant("azure", f"scope {number}", ("Reader",), ("Contributor",), name)
    scopes = {role.scope for each in aso.identities.values() for role in each.roles.values()}
    assigning = Grant("azure", "", (), ("Role Based Access Control Administrator",))
    for number, name in enumerate(sorted(scopes), 1):
        yield replace(assigning, at=f"roles {number}", name=name)


def secret_projects(settings: Settings, own: str) -> Sequence[str]:
    """Return the Google Cloud projects whose secrets a stack reads or writes."""
    clusters, stores = settings.pull_secrets and settings.pull_secrets.clusters, settings.secret_stores
    given = [each.project for each in (clusters or {}).values()]
    specs = [dict(each.spec) for each in stores.providers.values() if each.kind == "GCPSM"] if stores else []
    named = [each.name for each in given if each and each.name] + [each.get("projectID") for each in specs]
    return sorted({str(each or own) for each in named})
