"""In which order the stacks of a fleet are brought up, and what of them when one fails."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier

import pytest

from components.settings.shards import Shards
from operations.fleet.updating import Outcome, ordered, up_together

FLEETS = {
    "prod": Shards.model_validate({"pool": "pool", "stacks": {"a": {}, "b": {"since": "m"}}}),
    "other": Shards.model_validate({"pool": "broken", "stacks": {"c": {}}}),
    "third": Shards.model_validate({"pool": "pool", "stacks": {"d": {}}}),
}
ALL = {"pool", "broken", "a", "b", "c", "d"}


def test_pools_come_first_and_once_and_what_claims_from_one_that_failed_is_left_out() -> None:
    asked: list[str] = []

    def update(stack: str) -> Outcome:
        asked.append(stack)
        return Outcome(stack, "failed", 1) if stack == "broken" else Outcome(stack, "succeeded", 0)

    told = {each.stack: each.outcome for each in ordered(FLEETS, ALL, 1, update)}
    assert asked == ["pool", "broken", "a", "b", "d"]
    assert told == {
        **dict.fromkeys(("pool", "a", "b", "d"), "succeeded"),
        "broken": "failed",
        "c": "left out",
    }


def test_as_many_as_are_allowed_run_at_the_same_time() -> None:
    together = Barrier(3)

    def update(stack: str) -> Outcome:
        together.wait(timeout=60)
        return Outcome(stack, "succeeded", 0)

    assert [each.stack for each in ordered(FLEETS, {"a", "b", "d"}, 3, update)] == ["a", "b", "d"]


def test_a_stack_that_is_refused_before_its_update_is_told_with_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: mine\nruntime: python\n")
    (tmp_path / "stacks.yaml").write_text("fleets: {prod: {pool: prod-pool, stacks: {prod: {}}}}\n")
    monkeypatch.chdir(tmp_path)
    pool, fleet = up_together((), 1, None).document["stacks"]
    assert "Pulumi.prod-pool.yaml" in pool["why"]
    assert fleet["why"] == "prod-pool failed"
