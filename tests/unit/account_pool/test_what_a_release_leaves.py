"""What becomes of an account when its claim is taken off it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.account_pool.core import changes
from components.account_pool.core.keys import CLAIM_ORIGIN, CLAIM_POLICY, CLAIM_TOKEN, POOL_STATE, TENANT_ID
from components.account_pool.core.model import Member, Policy
from components.account_pool.core.tokens import Token
from components.labels import TENANT_NAME
from tests.support.cases import tabled

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


@pytest.mark.parametrize("noted", [Policy.RETAIN, Policy.CLEAN, Policy.QUARANTINE])
def test_an_account_that_was_not_claimed_to_be_freed_at_once_is_cleaned_before_it_is_free(noted: Policy):
    after = left(claimed(None, noted), Policy.RELEASE)
    assert (after.tenant, after.state) == ("acme", "dirty")


@tabled("origin, policy, tenant, state")
def test_an_account_whose_label_was_stripped_by_hand_goes_where_it_would_have_gone_with_it(
    origin: str, policy: str, tenant: str | None, state: str | None
):
    member = claimed(None, Policy(policy), origin)
    after = left(replace(member, labels={"hyperscaler-type": "aws"}))
    assert (after.tenant, after.state) == (tenant, state)


def test_an_account_of_which_nobody_knows_whose_it_was_is_left_to_the_cleaner():
    after = left(replace(claimed(None), labels={}, annotations={CLAIM_TOKEN: str(TOKEN)}))
    assert (after.state, after.annotations) == ("dirty", {CLAIM_ORIGIN: "pool"})


@pytest.mark.parametrize("policy", list(Policy))
def test_an_account_quarantined_while_it_was_held_stays_out_of_the_pool_after_release(policy: Policy):
    assert left(claimed("quarantined"), policy).state == "quarantined"


@tabled("origin, policy, kept")
def test_only_an_account_of_the_pool_is_remembered_as_retained(
    origin: str, policy: str, kept: str | None
) -> None:
    assert left(claimed(None, Policy(policy), origin)).origin == kept
