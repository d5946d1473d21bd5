"""Which labels a resource of Google's has after a change of the declared ones."""

from typing import cast

from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.protocol.values import UNKNOWN, Properties
from pulumi_sandbox.providers.gcp import secret
from pulumi_sandbox.providers.gcp.options import GoogleOptions

OPTIONS = GoogleOptions("http://127.0.0.1:1/v1/")
LABELS = st.dictionaries(st.sampled_from("abcde"), st.sampled_from(["1", "2"])).map(
    lambda drawn: cast("Properties", drawn)
)


@given(first=LABELS, second=LABELS, others=LABELS)
def test_a_plan_sets_what_is_declared_drops_what_was_and_leaves_the_rest(
    first: Properties, second: Properties, others: Properties
):
    made = secret.planned(first, None, OPTIONS)
    ours = cast("Properties", made["pulumiLabels"])
    live = {**others, **cast("Properties", made["effectiveLabels"])}
    after = secret.planned(second, {**made, "effectiveLabels": live}, OPTIONS)
    expected = {key: value for key, value in live.items() if key not in ours}
    assert after["effectiveLabels"] == {**expected, **second, **secret.ATTRIBUTION}


def test_the_mark_is_not_put_back_unless_the_stack_wants_it_always():
    recorded: Properties = {"pulumiLabels": {}, "effectiveLabels": {"a": "1"}}
    assert secret.planned({}, recorded, OPTIONS)["pulumiLabels"] == {}
    always = GoogleOptions("", attribution="always")
    assert secret.planned({}, recorded, always)["pulumiLabels"] == secret.ATTRIBUTION


def test_a_declared_label_wins_over_the_providers_own():
    options = GoogleOptions("", labels={"team": "blue"}, attribution="never")
    assert secret.planned({"team": "red"}, None, options)["pulumiLabels"] == {"team": "red"}


def test_one_unknown_label_makes_all_effective_ones_unknown():
    planned = secret.planned({"a": UNKNOWN}, None, OPTIONS)
    assert planned["effectiveLabels"] is planned["pulumiLabels"] is UNKNOWN
    annotations = secret.planned_annotations({"a": UNKNOWN}, None)
    assert annotations["effectiveAnnotations"] is UNKNOWN
