"""What a review of a preview learns of a cluster that is skipped; how it shows it is `preview_report`'s."""

from hypothesis import given
from hypothesis import strategies as st

from components.pull_secret.model import Availability, Cluster, Phase
from components.pull_secret.preconditions import ADAPTERS, decide
from components.pull_secret.skipping import heard, line, sentence

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


@given(clusters)
def test_every_reason_for_skipping_a_cluster_is_read_back(cluster: Cluster) -> None:
    reasons = decide(cluster).unmet

    assert heard([sentence(reasons), line(reasons)]) == reasons
    assert heard([sentence(reasons)]) is None


@given(st.text(min_size=1))
def test_no_strange_text_gets_into_a_review(text: str) -> None:
    reasons = decide(Cluster(id="cls-1", name="n", region="", generation=1)).unmet

    assert heard([line([f"<{text}", *reasons])]) == reasons
