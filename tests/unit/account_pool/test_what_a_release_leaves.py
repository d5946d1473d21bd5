"""What becomes of an account when its claim is taken off it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.account_pool import changes
from components.account_pool.keys import CLAIM_ORIGIN, CLAIM_POLICY, CLAIM_TOKEN, POOL_STATE, TENANT_ID
from components.account_pool.model import Member, Policy, Token
from components.labels import TENANT_NAME

TOKEN = Token("claim-0", "uid", 1)


def claimed(state: str | None) -> Member:
    labels = {"hyperscaler-type": "aws", TENANT_NAME: "acme"}
    annotations = {
        CLAIM_TOKEN: str(TOKEN),
        CLAIM_ORIGIN: "pool",
        CLAIM_POLICY: "clean",
        TENANT_ID: "acme",
    }
    return Member("m", "uid", "7", labels | ({POOL_STATE: state} if state else {}), annotations)


def after(member: Member, policy: Policy) -> Member:
    return changes.applied(member, changes.remove(member, TOKEN, None, policy))


def state_after(member: Member, policy: Policy) -> str | None:
    labels = changes.remove(member, TOKEN, None, policy).body["metadata"]["labels"]
    return labels.get(POOL_STATE, member.state)


@pytest.mark.parametrize(
    ("policy", "state"),
    [
        (Policy.RELEASE, None),
        (Policy.RETAIN, None),
        (Policy.CLEAN, "dirty"),
        (Policy.QUARANTINE, "quarantined"),
    ],
)
def test_an_account_in_order_goes_where_the_policy_says(policy: Policy, state: str | None):
    assert state_after(claimed(None), policy) == state


@pytest.mark.parametrize("policy", list(Policy))
def test_an_account_quarantined_while_it_was_held_stays_out_of_the_pool_after_release(policy: Policy):
    assert state_after(claimed("quarantined"), policy) == "quarantined"


@pytest.mark.parametrize(
    ("origin", "policy", "left"),
    [
        ("pool", Policy.RETAIN, "retained"),
        ("pool", Policy.RELEASE, None),
        ("pool", Policy.CLEAN, "pool"),
        ("pool", Policy.QUARANTINE, "pool"),
        *(("owner", policy, None) for policy in Policy),
    ],
)
def test_only_an_account_of_the_pool_is_remembered_as_retained(
    origin: str, policy: Policy, left: str | None
) -> None:
    member = claimed(None)
    member = replace(member, annotations={**member.annotations, CLAIM_ORIGIN: origin})
    assert after(member, policy).origin == left
