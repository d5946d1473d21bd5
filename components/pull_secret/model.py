"""Cluster of a pull secret, from HyperFleet and the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from components.pull_secret.names import SECRET, secret_labels


class Availability(StrEnum):
    """Whether an adapter has completed its work on a cluster."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Phase(StrEnum):
    """Phase of a cluster, if it affects the pull secret."""

    READY = "Ready"
    DELETING = "Deleting"


@dataclass(frozen=True, slots=True)
class Observed:
    """HyperFleet's information about a cluster.

    `adapters`: last report of each adapter; one that has not reported is absent. `phase`: None for any other.
    `deleted_time`: since when it is being deleted, RFC 3339. `known`: whether HyperFleet knew the cluster
    when it was queried.
    """

    adapters: Mapping[str, Availability] = field(default_factory=dict[str, Availability])
    phase: Phase | None = None
    deleted_time: str | None = None
    known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster(Observed):
    """Cluster.

    `project`: GCP project of its secret; None if none is named yet. `pull_secret`: name of the credential;
    None if the cluster has none. `explicit_secret_id`: id in Secret Manager that replaces the default.
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
        """Id of its secret in Secret Manager."""
        return self.explicit_secret_id or SECRET.of(self.id)

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of its secret in Secret Manager; raises ValueError for an invalid id."""
        return secret_labels(self.id, self.name)

    @property
    def stays(self) -> bool:
        """Whether HyperFleet has it, and is not deleting it."""
        return self.known and self.deleted_time is None and self.phase is not Phase.DELETING
