"""What is skipped as Diagnostics tell it, and read back from all lines of a log."""

from hypothesis import given
from hypothesis import strategies as st

from components.pull_secret.model import Availability, Cluster, Phase
from components.pull_secret.preconditions import ADAPTERS, decide
from components.skipped_lines import skipped_in, skipped_lines

NAMES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,9}[A-Za-z0-9])?(/[a-z0-9]{1,9})?", fullmatch=True)
WHAT = st.builds("{} {}".format, st.sampled_from(["copy", "ASO credential", "ExternalSecret"]), NAMES)
WHY = st.text(min_size=1).map(lambda text: " ".join(text.split())).filter(bool)

clusters = st.builds(
    Cluster,
    id=st.just("cls-000000000001"),
    name=st.just("east"),
    region=st.just(""),
    generation=st.just(1),
    provider=st.sampled_from(["gcp", "aws", ""]),
    project=st.sampled_from([None, "fleet"]),
    pull_secret=st.sampled_from([None, "quay"]),
    adapters=st.dictionaries(st.sampled_from(ADAPTERS), st.sampled_from(Availability)),
    phase=st.sampled_from([None, *Phase]),
    known=st.booleans(),
)


@given(st.dictionaries(WHAT, WHY, max_size=30))
def test_all_that_is_skipped_is_read_back(skipped: dict[str, str]) -> None:
    assert skipped_in(skipped_lines(skipped)) == skipped


@given(clusters)
def test_every_reason_for_skipping_a_cluster_is_read_back(cluster: Cluster) -> None:
    why = "; ".join(decide(cluster).unmet) or "nothing"

    assert skipped_in(skipped_lines({"pull secret cls-1": why})) == {"pull secret cls-1": why}


def test_what_is_skipped_for_one_reason_is_told_together_in_short_lines() -> None:
    said = [*skipped_lines({f"ExternalSecret e{index:02}": "ESO is not there:\nwait" for index in range(20)})]

    assert len(said) == 3
    assert all(line.endswith(": ESO is not there: wait") for line in said)


def test_a_line_that_tells_of_nothing_skipped_is_passed_over() -> None:
    assert skipped_in(["", "skipped: why", "skipped: : why", "copy a/b: skipped: x y: z"]) == {}
