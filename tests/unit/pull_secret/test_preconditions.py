"""Which clusters get a pull secret, and what is wrong with what was said of one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.pull_secret.model import Availability, Cluster, Phase
from components.pull_secret.preconditions import ADAPTERS, decide
from tests.support.cases import cases

TRUE, FALSE, UNKNOWN = Availability.TRUE, Availability.FALSE, Availability.UNKNOWN

COMPLETE = Cluster(
    id="cls-123",
    name="east",
    region="europe-west1",
    generation=1,
    project="acme-prod",
    pull_secret="quay-pull",
    adapters=dict.fromkeys(ADAPTERS, TRUE),
)


@cases(
    "cluster, reason",
    {
        "provider": (
            replace(COMPLETE, provider="aws"),
            "its provider is aws, and Secret Manager is only there on gcp",
        ),
        "no-provider": (
            replace(COMPLETE, provider=""),
            "its provider is not named, and Secret Manager is only there on gcp",
        ),
        "project": (replace(COMPLETE, project=None), "no GCP project is named"),
        "pull-secret": (replace(COMPLETE, pull_secret=None), "no pull secret is named"),
        "deleting": (replace(COMPLETE, phase=Phase.DELETING), "the cluster is being deleted"),
        "deleted": (
            replace(COMPLETE, deleted_time="2026-01-01T00:00:00Z"),
            "HyperFleet deletes the cluster",
        ),
        "deleted-ready": (
            replace(COMPLETE, deleted_time="2026-01-01T00:00:00Z", phase=Phase.READY),
            "HyperFleet deletes the cluster",
        ),
    },
)
def test_one_condition_that_is_not_met_skips_the_cluster(cluster: Cluster, reason: str) -> None:
    assert (decide(cluster).proceeds, decide(cluster).unmet) == (False, (reason,))


@pytest.mark.parametrize("adapter", ["validation", "dns", "placement"])
@cases(
    "said, reason",
    {
        "False": (FALSE, "adapter {} reports False"),
        "Unknown": (UNKNOWN, "adapter {} reports Unknown"),
        "missing": (None, "adapter {} has not reported"),
    },
)
def test_an_adapter_that_is_not_done_skips_the_cluster(
    adapter: str, said: Availability | None, reason: str
) -> None:
    others = {name: TRUE for name in ADAPTERS if name != adapter}
    adapters = others if said is None else {**others, adapter: said}
    assert decide(replace(COMPLETE, adapters=adapters)).unmet == (reason.format(adapter),)


def test_a_ready_cluster_waits_for_no_adapter_and_warns_of_it() -> None:
    decision = decide(replace(COMPLETE, phase=Phase.READY, adapters={"validation": TRUE, "dns": FALSE}))
    assert decision.proceeds
    assert decision.warnings == (
        "the cluster is ready, but adapter dns reports False",
        "the cluster is ready, but adapter placement has not reported",
    )


def test_every_condition_that_is_not_met_is_listed() -> None:
    bare = Cluster(id="cls-123", name="e", region="r", generation=1, provider="aws", phase=Phase.DELETING)
    assert decide(bare).unmet == (
        "the cluster is being deleted",
        "its provider is aws, and Secret Manager is only there on gcp",
        "no GCP project is named",
        "no pull secret is named",
        "adapter validation has not reported",
        "adapter dns has not reported",
        "adapter placement has not reported",
    )


@cases(
    "cluster, passing",
    {
        "adapter-waits": (replace(COMPLETE, adapters={}), True),
        "being-deleted": (replace(COMPLETE, phase=Phase.DELETING), True),
        "unknown-to-hyperfleet": (replace(COMPLETE, known=False, adapters={}), True),
        "deleted": (replace(COMPLETE, deleted_time="2026-01-01T00:00:00Z"), False),
        "provider": (replace(COMPLETE, provider="aws"), False),
        "project": (replace(COMPLETE, project=None), False),
        "pull-secret": (replace(COMPLETE, pull_secret=None, adapters={}), False),
    },
)
def test_what_is_only_reported_passes_and_what_is_configured_does_not(
    cluster: Cluster, passing: bool
) -> None:
    assert decide(cluster).passing is passing


def test_a_cluster_that_keeps_its_pull_secret_is_warned_of_every_condition() -> None:
    decision = decide(replace(COMPLETE, phase=Phase.DELETING, adapters={"validation": TRUE, "dns": FALSE}))
    assert decision.warnings_to_a_live_one == (
        "the cluster has its pull secret, but the cluster is being deleted",
        "the cluster has its pull secret, but adapter dns reports False",
        "the cluster has its pull secret, but adapter placement has not reported",
    )
