"""How a grant enters and leaves an IAM policy without touching others."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.protocol.values import Properties, Value
from pulumi_sandbox.providers.gcp import member

ROLES = st.sampled_from(["roles/a", "roles/b"])
MEMBERS = st.sampled_from(["user:a@x", "user:b@x", "principal://x/A", "principal://x/a"])
CONDITIONS: st.SearchStrategy[Value] = st.sampled_from([None, {"title": "t", "expression": "e"}])
GRANTS = st.tuples(ROLES, MEMBERS, CONDITIONS)


def policy_of(grants: list[tuple[str, str, Value]]) -> Properties:
    policy: Properties = {"etag": "e"}
    for grant in grants:
        policy = member.granted(policy, *grant)
    return policy


@given(st.lists(GRANTS), GRANTS)
def test_a_grant_is_found_until_it_is_revoked_and_no_other_is_touched(
    grants: list[tuple[str, str, Value]], grant: tuple[str, str, Value]
):
    policy = policy_of(grants)
    granted = member.granted(policy, *grant)
    assert member.find(granted, *grant) == grant[1]
    revoked = member.revoked(granted, *grant)
    assert member.find(revoked, *grant) is None
    for other in grants:
        if other != grant:
            assert member.find(revoked, *other) == other[1]


@given(st.lists(GRANTS), GRANTS)
def test_granting_twice_is_granting_once(grants: list[tuple[str, str, Value]], grant: tuple[str, str, Value]):
    granted = member.granted(policy_of(grants), *grant)
    assert member.granted(granted, *grant) == granted


@given(st.lists(GRANTS))
def test_a_policy_keeps_its_etag_and_no_binding_of_nobody(grants: list[tuple[str, str, Value]]):
    policy = policy_of(grants)
    for grant in grants:
        policy = member.revoked(policy, *grant)
    assert policy["etag"] == "e"
    assert cast("list[Value]", policy.get("bindings", [])) == []


@pytest.mark.parametrize(
    ("account", "recorded"),
    [
        ("user:Ann@X.example", "user:ann@x.example"),
        ("serviceAccount:A@x", "serviceAccount:a@x"),
        ("principal://iam.googleapis.com/Ns/Sa", "principal://iam.googleapis.com/Ns/Sa"),
        ("allUsers", "allUsers"),
    ],
)
def test_accounts_are_recorded_in_lower_case(account: str, recorded: str):
    assert member.normal(account) == recorded
