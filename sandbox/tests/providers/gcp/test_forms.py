"""Names, labels and IAM policies, as Secret Manager spells them."""

from typing import cast

from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers.gcp import resources

LABELS = st.dictionaries(st.sampled_from("abcde"), st.sampled_from(["1", "2"])).map(
    lambda drawn: cast("Properties", drawn)
)


@given(first=LABELS, second=LABELS, others=LABELS)
def test_a_plan_sets_what_is_declared_drops_what_was_and_leaves_the_rest(
    first: Properties, second: Properties, others: Properties
):
    made = resources.planned(first, None)
    ours = cast("Properties", made["pulumiLabels"])
    live = {**others, **cast("Properties", made["effectiveLabels"])}
    after = resources.planned(second, {**made, "effectiveLabels": live})
    expected = {key: value for key, value in live.items() if key not in ours}
    assert after["effectiveLabels"] == {**expected, **second, **resources.ATTRIBUTION}


def test_the_mark_is_not_put_back_once_it_is_gone():
    recorded: Properties = {"pulumiLabels": {}, "effectiveLabels": {"a": "1"}}
    assert resources.planned({}, recorded)["pulumiLabels"] == {}


GRANTS = st.tuples(
    st.sampled_from(["roles/a", "roles/b"]),
    st.sampled_from(["user:a@x", "principal://x/A", "principal://x/a"]),
)


@given(st.lists(GRANTS), GRANTS)
def test_a_grant_is_found_until_it_is_revoked_and_no_other_is_touched(
    grants: list[tuple[str, str]], grant: tuple[str, str]
):
    conditional: Properties = {"role": grant[0], "members": [grant[1]], "condition": {"title": "t"}}
    policy: Properties = {"etag": "e", "bindings": [conditional]}
    for other in grants:
        policy = resources.granted(policy, *other)
    granted = resources.granted(policy, *grant)
    assert resources.has(granted, *grant)
    revoked = resources.revoked(granted, *grant)
    assert not resources.has(revoked, *grant)
    assert all(resources.has(revoked, *other) for other in grants if other != grant)
    for other in grants:
        revoked = resources.revoked(revoked, *other)
    assert (revoked["etag"], revoked["bindings"]) == ("e", [conditional])
