"""What HyperFleet is told."""

import pytest

from components.pull_secret.status import Conditions, of_skipped, of_verified, report


@pytest.mark.parametrize("conditions", [of_skipped(["x"]), of_verified(1, ""), of_verified(1, "x")])
def test_no_condition_is_ever_unknown_which_would_make_hyperfleet_ignore_the_report(
    conditions: Conditions,
) -> None:
    assert {one["status"] for one in conditions} <= {"True", "False"}


def test_a_report_has_what_the_contract_wants_and_the_generation_is_a_whole_number() -> None:
    document = report(2, of_verified(1, ""), {"secretName": "s"}, "2026-01-01T00:00:00Z")
    assert {key: document[key] for key in ("adapter", "observed_generation", "observed_time", "data")} == {
        "adapter": "pullsecret",
        "observed_generation": 2,
        "observed_time": "2026-01-01T00:00:00Z",
        "data": {"secretName": "s"},
    }
    assert [one["type"] for one in document["conditions"]] == ["Applied", "Available", "Health"]
