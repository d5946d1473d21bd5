"""Rights on a cluster's entry in Secret Manager: least privilege, by roles on that one secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from pydantic import Field

from components.config.field_types import ConfigModel, NamespaceName, ObjectName, exactly_one, must
from components.naming import is_gcp_project

_NUMBER = re.compile(r"[0-9]{1,19}")
_EMAIL = re.compile(r"[a-z0-9-]+@[a-z0-9.-]+\.gserviceaccount\.com")
_ROLES: Final[Mapping[str, Mapping[str, str]]] = {
    "reader": {"accessor": "roles/secretmanager.secretAccessor"},
    "adapter": {
        "viewer": "roles/secretmanager.viewer",
        "adder": "roles/secretmanager.secretVersionAdder",
        "accessor": "roles/secretmanager.secretAccessor",
    },
}
"""The reader accesses pull secrets, as worker nodes do. The adapter reads the secret, adds a version and
verifies it, as HyperFleet's job does. Neither can change labels, delete, or grant permissions."""

ProjectId: TypeAlias = Annotated[
    str,
    must(
        is_gcp_project,
        "it is not an id of a project of Google Cloud: 6 to 30 lower-case letters, digits and '-'",
        "take it from: gcloud projects list",
    ),
]
Email: TypeAlias = Annotated[
    str,
    must(
        _EMAIL.fullmatch,
        "it is not an account of Google Cloud",
        "write it as NAME@PROJECT.iam.gserviceaccount.com",
    ),
]


class EntryWorkload(ConfigModel):
    """A ServiceAccount of a GKE cluster, with an identity of its own in Google Cloud."""

    project_number: Annotated[
        str,
        must(_NUMBER.fullmatch, "a project's number has digits only", "write them in quotes, without blanks"),
    ] = Field(description="Number of the project of the GKE cluster, in quotes.")
    project: ProjectId = Field(description="Id of that project.")
    namespace: NamespaceName = Field(description="Namespace of the ServiceAccount.")
    service_account: ObjectName = Field(description="Name of the ServiceAccount.")

    @property
    def member(self) -> str:
        """Its name in Google Cloud's policies.

        Clusters of one project with the same namespace and account share the grant.
        """
        pool = f"projects/{self.project_number}/locations/global/workloadIdentityPools"
        subject = f"{self.project}.svc.id.goog/subject/ns/{self.namespace}/sa/{self.service_account}"
        return f"principal://iam.googleapis.com/{pool}/{subject}"


class EntryUser(ConfigModel):
    """Who gets rights on entries: a workload, or an account of Google Cloud, the older way."""

    _is_named_one_way = exactly_one(
        "it is a workload or an account, not both",
        "give workload or serviceAccount",
        *("workload", "service_account"),
    )
    workload: EntryWorkload | None = Field(default=None, description="ServiceAccount of a GKE cluster.")
    service_account: Email | None = Field(
        default=None, description="E-mail address of an account of Google Cloud."
    )

    @property
    def member(self) -> str:
        """Its name in Google Cloud's policies."""
        return self.workload.member if self.workload else f"serviceAccount:{self.service_account}"


@dataclass(frozen=True, slots=True)
class Grant:
    """Role on the secret. `name`: distinguishes grants of one secret, such as adapter-viewer."""

    name: str
    role: str
    member: str


def list_grants(**users: EntryUser | None) -> Iterator[Grant]:
    """Yield the grants on a secret. `users`: the reader and the adapter."""
    for who, user in users.items():
        if user is not None:
            yield from (Grant(f"{who}-{n}", role, user.member) for n, role in _ROLES[who].items())
