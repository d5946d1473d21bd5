"""Which labels a resource of Google's has after a change of the declared ones."""

from typing import cast

from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.protocol.values import UNKNOWN, Properties
from pulumi_sandbox.providers.gcp import secret

LABELS = st.dictionaries(st.sampled_from("abcde"), st.sampled_from(["1", "2"])).map(
    lambda drawn: cast("Properties", drawn)
)


@given(first=LABELS, second=LABELS, others=LABELS)
def test_a_plan_sets_what_is_declared_drops_what_was_and_leaves_the_rest(
    first: Properties, second: Properties, others: Properties
):
    made = secret.planned(first, None)
    ours = cast("Properties", made["pulumiLabels"])
    live = {**others, **cast("Properties", made["effectiveLabels"])}
    after = secret.planned(second, {**made, "effectiveLabels": live})
    expected = {key: value for key, value in live.items() if key not in ours}
    assert after["effectiveLabels"] == {**expected, **second, **secret.ATTRIBUTION}


def test_the_mark_is_not_put_back_once_it_is_gone():
    recorded: Properties = {"pulumiLabels": {}, "effectiveLabels": {"a": "1"}}
    assert secret.planned({}, recorded)["pulumiLabels"] == {}


def test_one_unknown_label_makes_all_effective_ones_unknown():
    planned = secret.planned({"a": UNKNOWN}, None)
    assert planned["effectiveLabels"] is planned["pulumiLabels"] is UNKNOWN
