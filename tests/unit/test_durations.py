"""Durations as Go writes them.

The rows are what `time.Duration.String` of Go 1.26 said of them; what External Secrets Operator makes of them
is in `tests/cluster/test_eso_manifests.py`.
"""

from hypothesis import given
from hypothesis import strategies as st

from components.durations import as_go_writes, nanoseconds
from tests.support.cases import tabled


@tabled("given, written")
def test_a_duration_is_written_as_go_writes_it(given: str, written: str) -> None:
    assert as_go_writes(given) == written


@given(st.integers(min_value=0, max_value=10**18))
def test_what_is_written_means_the_same_and_is_written_the_same_again(whole: int) -> None:
    written = as_go_writes(f"{whole}ns")
    assert nanoseconds(written) == whole
    assert as_go_writes(written) == written
