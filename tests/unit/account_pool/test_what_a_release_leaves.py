"""What becomes of an account when its claim is taken off it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.account_pool.core import changes
from components.account_pool.core.keys import CLAIM_ORIGIN, CLAIM_POLICY, CLAIM_TOKEN, POOL_STATE, TENANT_ID
from components.account_pool.core.model import Member, Policy, Token
from components.labels import TENANT_NAME

TOKEN = Token("claim-0", "uid", 1)


def claimed(state: str | None, policy: Policy = Policy.CLEAN, origin: str = "pool") -> Member:
    labels = {"hyperscaler-type": "aws", TENANT_NAME: "acme"}
    annotations = {
        CLAIM_TOKEN: str(TOKEN),
        CLAIM_ORIGIN: origin,
        CLAIM_POLICY: str(policy),
        TENANT_ID: "acme",
    }
    return Member("m", "uid", "7", labels | ({POOL_STATE: state} if state else {}), annotations)


def left(member: Member, policy: Policy | None = None) -> Member:
    return changes.apply(member, changes.remove(member, TOKEN, None, policy))


def state_after(member: Member, policy: Policy) -> str | None:
    return left(member, policy).state


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
    assert state_after(claimed(None, policy), policy) == state


@pytest.mark.parametrize("noted", [Policy.RETAIN, Policy.CLEAN, Policy.QUARANTINE])
def test_an_account_that_was_not_claimed_to_be_freed_at_once_is_cleaned_before_it_is_free(noted: Policy):
    after = left(claimed(None, noted), Policy.RELEASE)
    assert (after.tenant, after.state) == ("acme", "dirty")


@pytest.mark.parametrize(
    ("origin", "policy", "tenant", "state"),
    [
        ("pool", Policy.RELEASE, None, None),
        ("pool", Policy.RETAIN, "acme", None),
        ("pool", Policy.CLEAN, "acme", "dirty"),
        ("pool", Policy.QUARANTINE, "acme", "quarantined"),
        ("owner", Policy.RELEASE, "acme", None),
    ],
)
def test_an_account_whose_label_was_stripped_by_hand_goes_where_it_would_have_gone_with_it(
    origin: str, policy: Policy, tenant: str | None, state: str | None
):
    member = claimed(None, policy, origin)
    after = left(replace(member, labels={"hyperscaler-type": "aws"}))
    assert (after.tenant, after.state) == (tenant, state)


def test_an_account_of_which_nobody_knows_whose_it_was_is_left_to_the_cleaner():
    after = left(replace(claimed(None), labels={}, annotations={CLAIM_TOKEN: str(TOKEN)}))
    assert (after.state, after.annotations) == ("dirty", {CLAIM_ORIGIN: "pool"})


@pytest.mark.parametrize("policy", list(Policy))
def test_an_account_quarantined_while_it_was_held_stays_out_of_the_pool_after_release(policy: Policy):
    assert state_after(claimed("quarantined"), policy) == "quarantined"


@pytest.mark.parametrize(
    ("origin", "policy", "kept"),
    [
        ("pool", Policy.RETAIN, "retained"),
        ("pool", Policy.RELEASE, None),
        ("pool", Policy.CLEAN, "pool"),
        ("pool", Policy.QUARANTINE, "pool"),
        *(("owner", policy, None) for policy in Policy),
    ],
)
def test_only_an_account_of_the_pool_is_remembered_as_retained(
    origin: str, policy: Policy, kept: str | None
) -> None:
    assert left(claimed(None, policy, origin)).origin == kept
