from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from components.pull_secret.model import Availability, Cluster, Phase
from components.pull_secret.preconditions import ADAPTERS, decide
from components.pull_secret.skipping import heard, line

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
    decision = decide(cluster)

    assert heard(line(decision.unmet)) == decision.unmet


@given(st.text(st.characters(exclude_characters=";")))
def test_no_text_but_a_reason_of_ours_gets_into_a_report(text: str) -> None:
    reasons = decide(Cluster(id="cls-1", name="n", region="", generation=1)).unmet

    assert heard(line([f"secret {text}", *reasons])) == reasons
    assert heard(f"not {line(reasons)}") is None
