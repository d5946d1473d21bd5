"""Preconditions of a cluster's pull secret. A cluster that does not meet them is skipped, without error.

Adapters are required only until the cluster is ready: later, a temporary failure of one would take the pull
secret from a running cluster. For the same reason an available pull secret does not skip its cluster, unlike
in HyperFleet, which only added secrets; and a cluster that has one keeps it whatever HyperFleet reports,
until the configuration changes. Only a deletion is final: if HyperFleet deletes a cluster, its pull secret is
deleted too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from components.pull_secret.model import Availability, Cluster, Phase

GOOGLE: Final = "gcp"
"""The only cloud whose clusters get a pull secret."""

ADAPTERS: Final = ("validation", "dns", "placement")
"""Adapters that run on a cluster before it gets a pull secret, in order."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision about a cluster.

    `unmet`: why it is skipped, empty if it is not. `passing`: whether all of that is only reported and might
    change: a cluster with a pull secret keeps it. `warnings`: what to check.
    """

    unmet: tuple[str, ...]
    passing: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def proceeds(self) -> bool:
        """Whether the cluster gets its pull secret."""
        return not self.unmet

    @property
    def may_have_one(self) -> bool:
        """Whether the cluster gets its pull secret, or keeps an existing one."""
        return self.proceeds or self.passing

    @property
    def warnings_to_a_live_one(self) -> tuple[str, ...]:
        """Warnings if the cluster keeps its pull secret despite unmet conditions."""
        return tuple(f"the cluster has its pull secret, but {text}" for text in self.unmet)


def decide(cluster: Cluster) -> Decision:
    """Decide whether a cluster gets its pull secret, and list all unmet conditions."""
    gone, lacking, waiting = (*_gone(cluster),), (*_lacking(cluster),), (*_waiting_for(cluster),)
    stays = not lacking and cluster.deleted_time is None
    if cluster.phase is Phase.READY:
        told = tuple(f"the cluster is ready, but {text}" for text in waiting)
        return Decision((*gone, *lacking), stays, told)
    return Decision((*gone, *lacking, *waiting), stays)


def _gone(cluster: Cluster) -> Iterator[str]:
    if not cluster.known:
        yield "HyperFleet knows no such cluster (ResourceNotFound)"
    if cluster.phase is Phase.DELETING:
        yield "the cluster is being deleted"
    if cluster.deleted_time is not None:
        yield "HyperFleet deletes the cluster"


def _lacking(cluster: Cluster) -> Iterator[str]:
    if cluster.provider != GOOGLE:
        yield f"its provider is {cluster.provider or 'not named'}, and Secret Manager is only there on gcp"
    if not cluster.project:
        yield "no GCP project is named"
    if not cluster.pull_secret:
        yield "no pull secret is named"


def _waiting_for(cluster: Cluster) -> Iterator[str]:
    for adapter in ADAPTERS:
        said = cluster.adapters.get(adapter)
        if said is None:
            yield f"adapter {adapter} has not reported"
        elif said is not Availability.TRUE:
            yield f"adapter {adapter} reports {said}"
