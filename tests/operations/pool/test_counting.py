"""That counters say the same whoever adds them up and however often: nothing twice, nothing silently lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.account_pool.census import Census
from components.account_pool.keys import MEASURED
from components.connection import Connection, Reply
from components.errors import CredfleetError
from operations.pool.counters import Counters
from operations.pool.metrics import counters_of
from operations.pool.serving import Exporter
from operations.pool.totals import KEPT, OTHER, Totals

NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)
CLAIMED = {
    "reason": "Claimed",
    "type": "aws",
    "outcome": "served",
    "conflicts": 2,
    "retries": 3,
    "milliseconds": 40,
}


def event(version: int, measured: Any = CLAIMED) -> dict[str, Any]:
    text = measured if isinstance(measured, str) else json.dumps(measured)
    return {"metadata": {"resourceVersion": str(version), "annotations": {MEASURED: text}}}


class Cluster(Connection):
    """The Events and the ConfigMaps of one namespace, in memory."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.version = 10
        self.checkpoint: dict[str, Any] | None = None
        self.written = 0

    def happen(self, measured: Any = CLAIMED) -> None:
        self.version += 1
        self.events.append(event(self.version, measured))

    def call(self, method: str, path: str, **given: Any) -> Reply:
        if "/events?" in path:
            at = int(path.rpartition("&continue=")[2]) if "&continue=" in path else 0
            rest = "" if at + 2 >= len(self.events) else str(at + 2)
            metadata = {"resourceVersion": str(self.version), "continue": rest}
            return Reply(200, {"metadata": metadata, "items": self.events[at : at + 2]})
        assert path.startswith("/api/v1/namespaces/pool/configmaps")
        if method == "GET":
            return Reply(404, {}) if self.checkpoint is None else Reply(200, self.checkpoint)
        body = given["body"]
        if body["metadata"].get("resourceVersion") != str(self.written or None) and self.checkpoint:
            return Reply(409, {})
        self.written += 1
        metadata = {"uid": "u", **body["metadata"], "resourceVersion": str(self.written)}
        self.checkpoint = {**body, "metadata": metadata}
        return Reply(200, self.checkpoint)


def told(totals: Totals) -> dict[str, float]:
    """Return the counters as they are told, those above 0."""
    return {
        f"{sample.name} {'/'.join([*sample.labels.values()][1:])}": sample.value
        for family in counters_of("pool", Census((), ()), totals)
        for sample in family.samples
        if sample.value and not sample.name.endswith("_created")
    }


@given(st.lists(st.sampled_from(["happen", "look", "fold", "stale fold", "restart"]), max_size=25))
def test_however_counting_is_interrupted_every_event_is_in_once(steps: list[str]) -> None:
    cluster = Cluster()
    cluster.happen()  # from before anybody counted
    counters, happened = Counters(cluster, "pool"), 0
    held = counters.read(NOW)
    counters.fold(held)
    for step in steps:
        match step:
            case "happen":
                cluster.happen()
                happened += 1
            case "look":
                held = counters.read(NOW)
            case "fold":
                counters.fold(counters.read(NOW))
            case "stale fold":
                counters.fold(held)
            case _:
                counters = Counters(cluster, "pool")
        assert (
            told(counters.read(NOW).now).get("credfleet_pool_claims_served_total aws/served", 0) == happened
        )


def test_a_claim_is_told_with_what_it_met_and_in_each_bucket_it_was_quick_enough_for() -> None:
    totals = Totals(10, NOW, NOW).and_after([event(11), event(10)], 12, NOW)
    assert {name: value for name, value in told(totals).items() if "_bucket" not in name} == {
        "credfleet_pool_claims_served_total aws/served": 1,
        "credfleet_pool_claim_conflicts_total aws": 2,
        "credfleet_pool_claim_retries_total aws": 3,
        "credfleet_pool_claim_seconds_count aws": 1,
        "credfleet_pool_claim_seconds_sum aws": 0.04,
    }
    buckets = [name.rpartition("/")[2] for name in told(totals) if "_bucket" in name]
    assert buckets == ["0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "30.0", "60.0", "+Inf"]


@pytest.mark.parametrize(
    ("measured", "name"),
    [
        ({"reason": "ClaimRefused", "outcome": "exhausted"}, "claims_refused_total aws/exhausted"),
        ({"reason": "Claimed", "outcome": "again"}, "claims_served_total aws/again"),
        ({"reason": "Cleaned", "outcome": "cleaned"}, "cleanings_total aws/cleaned"),
        ({"reason": "Cleaned", "outcome": "quarantined"}, "cleanings_total aws/quarantined"),
    ],
)
def test_each_end_of_a_claim_and_of_a_cleaning_is_counted_apart(measured: dict[str, str], name: str) -> None:
    totals = Totals(1, NOW, NOW).and_after([event(2, {**measured, "type": "aws"})], 2, NOW)
    assert told(totals) == {f"credfleet_pool_{name}": 1}


def test_series_are_there_before_anything_is_counted() -> None:
    totals = Totals(1, NOW, NOW, counts={("cleanings", "aws", "cleaned"): 1})
    names = {
        (s.name, *s.labels.values()) for f in counters_of("p", Census((), ()), totals) for s in f.samples
    }
    assert ("credfleet_pool_claims_refused_total", "p", "aws", "exhausted") in names
    assert ("credfleet_pool_cleanings_total", "p", "aws", "quarantined") in names
    assert ("credfleet_pool_count_gaps_total", "p") in names


@pytest.mark.parametrize(
    ("version", "after", "gaps", "counted"),
    [
        pytest.param(12, timedelta(0), 0, 1, id="at-once"),
        pytest.param(12, KEPT, 0, 1, id="while-events-are-kept"),
        pytest.param(12, KEPT + timedelta(seconds=1), 1, 1, id="some-may-be-gone"),
        pytest.param(9, timedelta(0), 1, 0, id="another-store"),
    ],
)
def test_what_may_have_gone_uncounted_is_told(
    version: int, after: timedelta, gaps: int, counted: int
) -> None:
    totals = Totals(10, NOW, NOW).and_after([event(11)], version, NOW + after)
    assert totals.gaps == gaps
    assert totals.counts.get(("served", "aws", "served"), 0) == counted
    assert totals.version == version


def test_a_checkpoint_that_cannot_be_read_begins_anew_and_is_a_gap() -> None:
    cluster = Cluster()
    cluster.checkpoint = {"metadata": {"uid": "u", "resourceVersion": "1"}, "data": {"counts": "{"}}
    assert Counters(cluster, "pool").read(NOW).now.gaps == 1
    cluster.checkpoint["data"] = {}
    assert Counters(cluster, "pool").read(NOW).now.gaps == 0


def test_a_checkpoint_that_came_back_from_a_backup_begins_anew_and_is_a_gap() -> None:
    cluster = Cluster()
    counters = Counters(cluster, "pool")
    for _ in range(2):
        counters.fold(counters.read(NOW))
        cluster.happen()
    assert cluster.checkpoint is not None
    assert counters.read(NOW).now.counts
    cluster.checkpoint["metadata"]["uid"] = "another"
    restored = counters.read(NOW).now
    assert (restored.gaps, dict(restored.counts), restored.since) == (1, {}, NOW)
    counters.fold(counters.read(NOW))
    cluster.happen()
    assert told(counters.read(NOW).now)["credfleet_pool_claims_served_total aws/served"] == 1


@pytest.mark.parametrize("measured", ["{", "[]", "null", '{"reason": "Held"}', '{"reason": []}', "7"])
def test_an_event_that_measured_nothing_counts_nothing(measured: str) -> None:
    assert not Totals(1, NOW, NOW).and_after([event(2, measured)], 2, NOW).counts


def test_what_anybody_may_have_written_makes_no_series_of_its_own() -> None:
    odd = {
        **CLAIMED,
        "type": "a b",
        "outcome": ["x"],
        "conflicts": -1,
        "retries": "9",
        "milliseconds": 10**20,
    }
    totals = Totals(1, NOW, NOW).and_after([event(2, odd)], 2, NOW)
    assert {key: count for key, count in totals.counts.items() if count} == {
        ("served", OTHER, OTHER): 1,
        ("seconds", OTHER, "0.01"): 1,
    }
    assert Totals.parse(totals.render()) == totals


def test_the_checkpoint_is_moved_for_a_count_and_before_events_are_forgotten_and_else_left() -> None:
    cluster = Cluster()
    counters, writes = Counters(cluster, "pool"), list[int]()
    for hours, happens in ((0, False), (0.1, False), (0.2, True), (0.5, False), (0.7, False)):
        if happens:
            cluster.happen()
        counters.fold(counters.read(NOW + hours * KEPT))
        writes.append(cluster.written)
    assert writes == [1, 1, 2, 3, 3]


def test_a_pool_is_measured_once_for_all_who_ask_at_a_time_and_one_that_cannot_be_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    moments, looks = [0.0], list[str]()

    def measure() -> Sequence[Any]:
        looks.append("look")
        if len(looks) == 2:
            raise CredfleetError(code="unreachable", place="pool", cause="no\x1b answer", mend="wait")
        return []

    exporter = Exporter("pool", measure, 15, clock=lambda: moments[0])
    seen = list[tuple[float, str]]()
    for moments[0] in (0, 14, 15, 29, 30):
        (up,) = exporter.metrics()
        seen.append((up.samples[0].value, exporter.problem.partition(":")[0]))
    assert seen == [(1, ""), (1, ""), (0, "pool"), (0, "pool"), (1, "")]
    assert len(looks) == 3
    assert capsys.readouterr().err == "✗ pool: no\ufffd answer\n→ wait\n"
