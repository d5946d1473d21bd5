"""With what a member is created whose Secret was lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.account_pool.core.declared import Declaration, DeclaredMember
from components.account_pool.core.keys import CLAIM_ORIGIN, CLAIM_TOKEN, CREATED_AGAIN, POOL_STATE
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.model import Member, Phase
from components.account_pool.core.rebirth import Marks, find_lost, kept_marks, marks_of_lost, marks_of_records
from components.account_pool.core.snapshot import PoolSnapshot
from tests.support import records
from tests.support.cases import tabled

ONE = DeclaredMember("aws", "111")
BOUND = replace(records.BOUND, member="m", member_uid="old", attempt=2)


def test_member_that_a_bound_record_names_carries_its_claim() -> None:
    marks = marks_of_records("m", ONE, [BOUND])
    assert marks is not None
    assert marks.on(ONE.as_member("m")).carries(BOUND)
    assert marks.annotations[CLAIM_ORIGIN] == "pool"
    brought = marks_of_records("m", replace(ONE, tenant="acme"), [BOUND])
    assert brought is not None
    assert brought.annotations[CLAIM_ORIGIN] == "owner"


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.RELEASING])
def test_member_that_another_record_names_is_created_dirty(phase: Phase) -> None:
    marks = marks_of_records("m", ONE, [replace(BOUND, phase=phase)])
    assert marks is not None
    assert marks.on(ONE.as_member("m")).is_created_again
    assert marks_of_records("other", ONE, [BOUND]) is None


@tabled("live, renamed, is_lost")
def test_account_that_was_declared_before_is_lost(
    *, live: dict[str, str] | None, renamed: str, is_lost: bool
) -> None:
    members = () if live is None else (Member("m", "u", "1", live),)
    before, now = (Declaration("pool", {name: ONE}) for name in ("m", renamed))
    assert find_lost(before, now, PoolSnapshot(members, ())) == ({renamed: "m"} if is_lost else {})


def test_marks_stay_declared_until_others_have_written_them() -> None:
    born = marks_of_lost(None, ONE).on(ONE.as_member("m"))
    fields = {"f:labels": {f"f:{POOL_STATE}": {}}, "f:annotations": {f"f:{CREATED_AGAIN}": {}}}
    managed = ({"manager": "pulumi-kubernetes", "fieldsV1": {"f:metadata": fields}},)
    live = replace(born, managed=managed)
    assert kept_marks(live, LabelScheme()) == Marks({POOL_STATE: "dirty"}, {CREATED_AGAIN: "true"})
    claimed = replace(live, labels={}, annotations={CLAIM_TOKEN: "claim-0.u.1"})
    assert kept_marks(claimed, LabelScheme()) == Marks()
