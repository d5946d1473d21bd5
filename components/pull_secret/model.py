"""The cluster a pull secret is for, as HyperFleet and the configuration tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from components.pull_secret.names import SECRET, secret_labels


class Availability(StrEnum):
    """Whether an adapter has done its work on a cluster."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Phase(StrEnum):
    """How far a cluster is, where that changes what becomes of its pull secret."""

    READY = "Ready"
    DELETING = "Deleting"


@dataclass(frozen=True, slots=True)
class Observed:
    """What HyperFleet tells of a cluster.

    adapters: what each of its adapters last said; one that is not there has not said anything. phase: None
    for any other. deleted_time: since when it deletes the cluster, RFC 3339. known: whether it, when it was
    asked, knew the cluster.
    """

    adapters: Mapping[str, Availability] = field(default_factory=dict[str, Availability])
    phase: Phase | None = None
    deleted_time: str | None = None
    known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster(Observed):
    """One cluster.

    project: the GCP project its secret is stored in; None when none is named yet. pull_secret: the name of
    the credential; None when the cluster has none. explicit_secret_id: the id in Secret Manager instead of
    the one made of the cluster's.
    """

    id: str
    name: str
    region: str
    generation: int
    provider: str = "gcp"
    project: str | None = None
    pull_secret: str | None = None
    explicit_secret_id: str | None = None

    @property
    def secret_id(self) -> str:
        """Its secret's id in Secret Manager."""
        return self.explicit_secret_id or SECRET.of(self.id)

    @property
    def labels(self) -> Mapping[str, str]:
        """Its secret's labels in Secret Manager; raises ValueError for an id that has faults."""
        return secret_labels(self.id, self.name)

    @property
    def stays(self) -> bool:
        """Whether HyperFleet has it, and does not delete it."""
        return self.known and self.deleted_time is None and self.phase is not Phase.DELETING
