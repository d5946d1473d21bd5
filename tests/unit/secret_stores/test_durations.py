"""Durations as Go writes them.

The rows are what `time.Duration.String` of Go 1.26 said of them; what External Secrets Operator makes of them
is in `tests/cluster/test_eso_manifests.py`.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.secret_stores.durations import as_go_writes, nanoseconds


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("0", "0s"),
        ("0s", "0s"),
        ("1h", "1h0m0s"),
        ("90s", "1m30s"),
        ("3600s", "1h0m0s"),
        ("1.5h", "1h30m0s"),
        ("24h", "24h0m0s"),
        ("1m", "1m0s"),
        ("1500ms", "1.5s"),
        ("1h1ms", "1h0m0.001s"),
        ("500ms", "500ms"),
        ("1.5ms", "1.5ms"),
        ("1500us", "1.5ms"),
        ("2us", "2µs"),
        ("2µs", "2µs"),
        ("7ns", "7ns"),
        ("10s", "10s"),
        ("100s", "1m40s"),
    ],
)
def test_a_duration_is_written_as_go_writes_it(given: str, written: str) -> None:
    assert as_go_writes(given) == written


@given(st.integers(min_value=0, max_value=10**18))
def test_what_is_written_means_the_same_and_is_written_the_same_again(whole: int) -> None:
    written = as_go_writes(f"{whole}ns")
    assert nanoseconds(written) == whole
    assert as_go_writes(written) == written
