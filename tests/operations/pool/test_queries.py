"""That alerts and the dashboard ask for what the exporter tells, by the exporter's own output.

That the queries are PromQL, and when an alert comes, promtool says: tests/witness/test_promtool.py.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from prometheus_client.parser import text_string_to_metric_families

from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.consumers import Consumer
from components.account_pool.core.keys import SHARED_CAPACITY, SHARED_CLAIMS
from components.account_pool.core.snapshot import PoolSnapshot
from components.labels import HYPERSCALER_TYPE, SHARED
from operations.pool.metrics import exposition, gauges_of, is_up
from tests.operations.pool.test_metrics import claimed, labelled
from tests.support.queries import dashboard, grouped, rules, selectors

NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)
QUERIES = {**{f"alert {name}": each for name, each in rules().items()}, **dashboard()}


@pytest.fixture(scope="module")
def told() -> Mapping[str, Mapping[str, set[str]]]:
    """What the exporter prints for a pool that has everything: series → label → values."""
    mine, record = claimed("aws-1", "acme")
    notes = {SHARED_CAPACITY: "3", SHARED_CLAIMS: json.dumps({"claim-0.u.1": "a"})}
    shared = replace(labelled("aws-shared", SHARED, "true"), annotations=notes)
    snapshot = PoolSnapshot((mine, shared, labelled("gcp-1", HYPERSCALER_TYPE, "gcp")), (record,))
    web = Consumer("web", ("cli",), quotas={"aws": 3})
    settings = PoolConfigMap(("eu-access",), consumers=(web,))
    families = [
        *gauges_of("p", snapshot, settings, NOW),
        is_up("p", up=True),
    ]
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for family in text_string_to_metric_families(exposition(families)):
        for sample in family.samples:
            for label, value in sample.labels.items():
                found[sample.name][label].add(value)
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_every_series_label_and_value_that_is_asked_for_is_told(
    told: Mapping[str, Mapping[str, set[str]]], name: str
) -> None:
    asked = [*selectors(QUERIES[name])]
    assert asked
    for metric, matchers in asked:
        assert metric in told
        for label, how, value in matchers:
            assert label in told[metric]
            assert how != "=" or value in told[metric][label]
        assert grouped(QUERIES[name]) <= set(told[metric])


def test_what_is_told_is_asked_for_somewhere(told: Mapping[str, Mapping[str, set[str]]]) -> None:
    asked = {metric for query in QUERIES.values() for metric, _ in selectors(query)}
    assert set(told) - asked == {"credfleet_pool_tenant_shared_claims", "credfleet_pool_rotated_keys"}
