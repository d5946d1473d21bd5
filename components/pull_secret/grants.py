"""Who may do what with a cluster's secret: least privilege, by roles on that one secret.

The reader gets pull secrets, as worker nodes do. The adapter looks at the secret, adds a version and reads it
back, as HyperFleet's own job does; neither may change labels, delete, or give rights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

READER: Final = {"accessor": "roles/secretmanager.secretAccessor"}
ADAPTER: Final = {
    "viewer": "roles/secretmanager.viewer",
    "adder": "roles/secretmanager.secretVersionAdder",
    "accessor": "roles/secretmanager.secretAccessor",
}


@dataclass(frozen=True, slots=True)
class Grant:
    """A role on the secret. name: to tell grants of one secret apart, such as adapter-viewer."""

    name: str
    role: str
    member: str


def service_account(email: str) -> str:
    """Name an account of Google Cloud: the older way, by an annotation of the Kubernetes account."""
    return f"serviceAccount:{email}"


def workload(project_number: str, project: str, namespace: str, account: str) -> str:
    """Name a ServiceAccount of a GKE cluster itself: no account of Google Cloud, no annotation.

    project: of the cluster, whose pool of identities is meant. Clusters of one project that have the same
    namespace and account share the grant.
    """
    pool = f"projects/{project_number}/locations/global/workloadIdentityPools/{project}.svc.id.goog"
    return f"principal://iam.googleapis.com/{pool}/subject/ns/{namespace}/sa/{account}"


def grants(reader: str | None, adapter: str | None) -> Iterator[Grant]:
    """Yield the grants on a secret."""
    for who, member, roles in (("reader", reader, READER), ("adapter", adapter, ADAPTER)):
        if member is not None:
            yield from (Grant(f"{who}-{name}", role, member) for name, role in roles.items())
