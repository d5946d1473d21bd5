"""With what a member is created whose Secret was lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from components.account_pool.core.calls import Kind
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.declared import Declaration, DeclaredMember
from components.account_pool.core.keys import (
    CLAIM_ORIGIN,
    CLAIM_TOKEN,
    CREATED_AGAIN,
    POOL_STATE,
    SHARED_CAPACITY,
    STATE_REASON,
)
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.model import ClaimRequest, Member, Phase
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.pool_settings import COPY_OF_HOLDS, quarantines_of
from components.account_pool.core.rebirth import (
    Marks,
    birth_lines,
    find_lost,
    keep_away,
    kept_marks,
    marks_of_lost,
    marks_of_records,
)
from components.account_pool.core.snapshot import PoolSnapshot
from tests.support import records
from tests.support.cases import tabled
from tests.support.memory_pool import POOL, MemoryServer

ONE = DeclaredMember("aws", "111")
BOUND = replace(records.BOUND, member="m", member_uid="old", attempt=2)


def test_member_that_a_bound_record_names_carries_its_claim() -> None:
    marks = marks_of_records("m", ONE, [BOUND])
    assert marks is not None
    assert BOUND.is_carried_by(marks.on(ONE.as_member("m")))
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
    (told,) = birth_lines("p", {"m": marks})
    assert "unless this update creates them, run `pulumi refresh`" in told


@pytest.mark.parametrize("command", ["quarantine", "evacuate"])
def test_quarantine_by_command_is_remembered_beside_the_secret_until_it_ends(command: str) -> None:
    server = MemoryServer()
    server.add_member("m0")
    pool = PoolOperator(server, POOL, PoolConfigMap())
    pool.claim(ClaimRequest("acme", "aws"))
    member = getattr(pool, command)("m0", "leaked")
    born = keep_away(marks_of_records("m0", ONE, [*server.records]), ONE, remembered(server)["m0"])
    assert born is not None
    again = born.on(ONE.as_member("m0"))
    assert (again.state, again.is_to_be_left) == (member.state, member.is_to_be_left)
    [record] = server.records
    assert record.is_carried_by(again)
    pool.unquarantine("m0")
    assert remembered(server) == {}


@pytest.mark.parametrize("declared", [ONE, replace(ONE, annotations={SHARED_CAPACITY: "2"})])
def test_quarantine_is_said_of_a_shared_account_and_not_of_one_whose_use_is_unknown(
    declared: DeclaredMember,
) -> None:
    for marks in (None, marks_of_lost(None, declared)):
        born = keep_away(marks, declared, {STATE_REASON: "leaked"})
        kept = Marks({POOL_STATE: "quarantined"}, {STATE_REASON: "leaked"})
        assert born == (marks if declared.capacity is None else kept)


def remembered(server: MemoryServer) -> Mapping[str, Mapping[str, str]]:
    return quarantines_of(server.objects.get((Kind.RECORD, COPY_OF_HOLDS), {}).get("data") or {})


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
