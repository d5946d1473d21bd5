"""How a grant enters and leaves an IAM policy without touching others."""

from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers.gcp import member

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
        policy = member.granted(policy, *other)
    granted = member.granted(policy, *grant)
    assert member.has(granted, *grant)
    revoked = member.revoked(granted, *grant)
    assert not member.has(revoked, *grant)
    assert all(member.has(revoked, *other) for other in grants if other != grant)
    for other in grants:
        revoked = member.revoked(revoked, *other)
    assert (revoked["etag"], revoked["bindings"]) == ("e", [conditional])
