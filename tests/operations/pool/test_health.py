"""What the doctor makes of each look at a pool."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from components.account_pool.admission.policies import admission_manifests
from components.account_pool.admission.roles import RIGHTS, Right
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.declared import blocked_reason
from components.account_pool.core.holds import Holds
from components.account_pool.core.keys import CREATED_AGAIN, KEY_PHASE, POOL_STATE, STATE_BEFORE
from components.account_pool.core.model import KeyPhase, Member, Phase, State
from components.account_pool.core.records import Record
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.sweeping import SweepReport
from components.connection import Reply
from components.errors import Problem
from components.labels import BRING_YOUR_OWN, HYPERSCALER_TYPE, TENANT_NAME
from operations.pool.health import (
    Diagnosis,
    Health,
    accounts,
    admission,
    claims,
    held,
    rights,
    settings_of_pool,
)
from tests.support.records import BOUND

POOL = "account-pool"


def wrongs(found: Iterable[Diagnosis]) -> list[Diagnosis]:
    return [each for each in found if each.health is Health.WRONG]


def user_with(*works: str, without: Collection[tuple[str, str]] = ()) -> list[Diagnosis]:
    """Examine a user who has all the powers of some works, but for (verb, resource) pairs."""
    granted = {
        (verb, power.resource) for work in works for power in RIGHTS[work] for verb in power.verbs
    } - set(without)

    def may(power: Right, verb: str) -> bool:
        return (verb, power.resource) in granted

    return [*rights(may, POOL)]


@pytest.mark.parametrize("work", sorted(RIGHTS))
def test_a_user_with_all_that_one_work_needs_has_nothing_to_fix(work: str) -> None:
    found = user_with(work)
    assert wrongs(found) == []
    assert [each.text for each in found if each.health is Health.WELL] == [
        f"this user may {work} accounts of {POOL}"
    ]


def test_a_user_who_may_do_nothing_is_told_what_each_work_lacks() -> None:
    found = user_with()
    assert [each.text for each in wrongs(found)] == [f"this user may do none of the work on pool {POOL}"]
    assert any("lacks get secrets" in each.text and "claimers" in each.fix for each in found)


def test_a_user_who_is_to_claim_but_may_not_write_is_wrong_and_learns_what_is_lacking() -> None:
    (found,) = wrongs(user_with("claim", "clean", without=[("create", "configmaps")]))
    assert found.text == "this user should claim accounts, but may not create configmaps"
    assert "accountPool.claimers" in found.fix


def test_a_cleaner_that_changes_keys_keeps_both_meanwhile_and_learns_what_it_lacks() -> None:
    def may(power: Right, verb: str) -> bool:
        return power.resource != "secrets" or verb in ("get", "list", "patch")

    _, found, *_ = rights(may, POOL, ("aws",))
    assert found.text == "this user should clean accounts, but may not create secrets, delete secrets"


def test_a_user_without_the_virtual_verb_may_claim_where_no_policy_asks_for_it() -> None:
    found = user_with("claim", without=[("claim", "accounts")])
    assert wrongs(found) == []
    assert "only where no admission policy asks for more" in found[0].text


def test_a_user_who_may_not_write_events_may_work_but_leaves_none() -> None:
    found = user_with("claim", without=[("create", "events")])
    assert found[0].health is Health.NOTED
    assert "no Events" in found[0].text


MANIFESTS = {
    (each["kind"], each["metadata"]["name"]): each
    for each in admission_manifests(POOL, PoolConfigMap(), allow_destroy=False)
}


def admitted(live: Mapping[tuple[str, str], Reply]) -> list[Diagnosis]:
    return [*admission(lambda kind, name: live.get((kind, name), Reply(404, {})), POOL, PoolConfigMap())]


def in_force() -> dict[tuple[str, str], Reply]:
    return {key: Reply(200, manifest) for key, manifest in MANIFESTS.items()}


@pytest.mark.parametrize("allow_destroy", [False, True])
def test_policies_as_a_stack_declares_them_are_well(*, allow_destroy: bool) -> None:
    manifests = admission_manifests(POOL, PoolConfigMap(), allow_destroy=allow_destroy)
    live = {(each["kind"], each["metadata"]["name"]): Reply(200, each) for each in manifests}
    assert [each.health for each in admitted(live)] == [Health.WELL]


@pytest.mark.parametrize("key", sorted(MANIFESTS))
def test_each_policy_or_binding_that_is_missing_is_wrong(key: tuple[str, str]) -> None:
    (found,) = wrongs(admitted(in_force() | {key: Reply(404, {})}))
    assert " ".join(key) in found.text
    assert "accountPool.admissionPolicy: true" in found.fix


def test_a_policy_that_lost_a_rule_is_wrong() -> None:
    key = next(key for key in MANIFESTS if key[1].startswith(f"credfleet-members.{POOL}."))
    spec: dict[str, Any] = MANIFESTS[key]["spec"]
    cut = {**MANIFESTS[key], "spec": {**spec, "validations": spec["validations"][1:]}}
    (found,) = wrongs(admitted(in_force() | {key: Reply(200, cut)}))
    assert "other rules" in found.text


@pytest.mark.parametrize("change", [{"validationActions": ["Warn"]}, {"policyName": "another"}])
def test_a_binding_that_does_not_deny_is_wrong(change: dict[str, Any]) -> None:
    key = ("ValidatingAdmissionPolicyBinding", f"credfleet-members.{POOL}")
    live = {**MANIFESTS[key], "spec": {**MANIFESTS[key]["spec"], **change}}
    assert len(wrongs(admitted(in_force() | {key: Reply(200, live)}))) == 1


def test_policies_this_user_may_not_read_are_unknown_and_not_wrong() -> None:
    assert [each.health for each in admitted(dict.fromkeys(MANIFESTS, Reply(403, {})))] == [Health.UNKNOWN]


def config_map(**data: str) -> Reply:
    return Reply(200, {"metadata": {"namespace": POOL, "uid": "now"}, "data": {"formatVersion": "1"} | data})


def test_a_pool_that_says_how_it_is_partitioned_is_well() -> None:
    settings, diagnosis = settings_of_pool(config_map(partitionKeys='["eu-access"]'), POOL)
    assert settings == PoolConfigMap(partition_keys=("eu-access",))
    assert diagnosis.health is Health.WELL


def test_a_pool_that_is_held_is_well_but_told_with_the_command_that_ends_it() -> None:
    (diagnosis,) = held(Holds({"": "accounts are moved"}), POOL)
    assert (diagnosis.health, "accounts are moved" in diagnosis.text) == (Health.NOTED, True)
    assert f"credfleet pool resume -n {POOL}" in diagnosis.fix


def test_a_pool_from_a_backup_is_wrong_and_recovery_fixes_it() -> None:
    settings, diagnosis = settings_of_pool(config_map(poolUid="then"), POOL)
    assert (settings, diagnosis.health) == (None, Health.WRONG)
    assert f"credfleet pool recover --namespace {POOL}" in diagnosis.fix


def test_a_namespace_that_says_nothing_is_a_pool_all_the_same_and_that_is_told() -> None:
    settings, diagnosis = settings_of_pool(Reply(404, {}), POOL)
    assert (settings, diagnosis.health) == (PoolConfigMap(), Health.NOTED)


def test_a_pool_this_user_may_not_read_is_wrong() -> None:
    settings, diagnosis = settings_of_pool(Reply(403, {"message": "no get on configmaps"}), POOL)
    assert (settings, diagnosis.health) == (None, Health.WRONG)
    assert "no get on configmaps" in diagnosis.text


def member(name: str, labels: Mapping[str, str] | None = None, **notes: str) -> Member:
    return Member(name, f"uid-{name}", "1", {HYPERSCALER_TYPE: "aws"} | dict(labels or {}), notes)


def looked_at(*members: Member) -> list[Diagnosis]:
    now = datetime(2026, 11, 22, 3, tzinfo=UTC)
    return [*accounts(PoolSnapshot(members, ()), PoolConfigMap(), POOL, now)]


def test_a_pool_with_a_free_account_has_nothing_to_say_but_its_numbers() -> None:
    assert [each.text for each in looked_at(member("aws-1"))] == ["1 in all: 1 free"]


def test_a_pool_without_accounts_is_wrong() -> None:
    assert [each.health for each in looked_at()] == [Health.WRONG]


def test_what_waits_is_told_by_age_the_oldest_first_and_what_waits_too_long_apart() -> None:
    since = {
        ("aws-1", "dirty"): "2026-11-22T01:00:00Z",
        ("aws-2", "dirty"): "2026-11-20T03:00:00Z",
        ("aws-3", "dirty"): "2026-11-12T03:00:00Z",
        ("aws-6", "quarantined"): "2026-11-12T03:00:00Z",
    }
    waiting = [
        replace(member(name, {POOL_STATE: state}), state_since=when) for (name, state), when in since.items()
    ]
    assert [each.text for each in looked_at(member("free"), *waiting)][1:] == [
        "dirty for more than a day, so no cleaner runs: aws-3 (10 d), aws-2 (2 d)",
        "dirty, waiting for a cleaner: aws-1 (2 h)",
        "aws-6 (10 d) is quarantined: no reason given",
    ]


def test_what_needs_no_operator_is_not_told_and_a_rotation_under_way_is() -> None:
    brought = member("b", {TENANT_NAME: "acme"}, **{BRING_YOUR_OWN: "true"})
    given_up = member("g", {POOL_STATE: "quarantined"}, **{STATE_BEFORE: "decommissioned"})
    rotated = [member(phase, {KEY_PHASE: phase}) for phase in KeyPhase]
    told = {each.fix.split(" -n")[0] for each in looked_at(brought, given_up, member("free"), *rotated)}
    made, used = ("preparing", "prepared"), ("delivered --complete", "completing --complete")
    assert told == {"", *(f"`credfleet pool rotate {each}" for each in (*made, *used))}


ENDING = {KeyPhase.PREPARING: "--abort", KeyPhase.PREPARED: "--abort", KeyPhase.DELIVERED: "--complete"}


@pytest.mark.parametrize(("phase", "option"), ENDING.items())
def test_dirty_account_that_no_run_cleans_yet_is_told_with_what_comes_first(
    phase: KeyPhase, option: str
) -> None:
    rotated = member("m", {POOL_STATE: State.DIRTY, KEY_PHASE: phase})
    again = member("n", {POOL_STATE: State.DIRTY}, **{CREATED_AGAIN: "true"})
    _, *found, last = looked_at(member("free"), rotated, again)
    fix = f"run `credfleet pool rotate m {option} -n {POOL}`, then clean again"
    told = f"m is dirty: its key is being rotated ({phase}), so it has a second one"
    assert [(each.text, each.fix) for each in found] == [(told, fix)]
    assert "`credfleet pool mark-dirty n " in last.fix
    for each, way in ((rotated, fix), (again, last.fix)):
        assert f"; {way}, or `credfleet pool decommission {each.name}" in str(blocked_reason(each, POOL))


def test_a_type_of_which_none_is_free_is_named() -> None:
    found = looked_at(member("m", {TENANT_NAME: "acme"}))
    assert "none is free of: aws" in [each.text for each in found]


def record(phase: Phase) -> Record:
    return replace(BOUND, name=f"claim-{phase}", phase=phase, holders={"cli": 1})


def test_claims_in_order_say_how_many_they_are() -> None:
    found = [*claims(PoolSnapshot((), (record(Phase.BOUND),)), SweepReport(), POOL)]
    assert [(each.health, each.text) for each in found] == [(Health.WELL, "1 bound")]


def test_dead_claims_are_wrong_and_a_sweep_fixes_them() -> None:
    survey = SweepReport(withheld=("aws-1",))
    (found,) = wrongs(claims(PoolSnapshot((), ()), survey, POOL))
    assert "aws-1" in found.text
    assert found.fix == "`credfleet pool sweep -n account-pool`"


def test_what_is_half_done_is_told_and_is_not_wrong() -> None:
    found = [*claims(PoolSnapshot((), (record(Phase.RELEASING), record(Phase.PENDING))), SweepReport(), POOL)]
    assert wrongs(found) == []
    assert "claim-Releasing, claim-Pending" in found[1].text


def test_what_only_people_can_judge_is_wrong_with_its_own_fix() -> None:
    survey = SweepReport(findings=(Problem("Secret aws-1", "its state is not known", "correct it"),))
    (found,) = wrongs(claims(PoolSnapshot((), ()), survey, POOL))
    assert (found.text, found.fix) == ("Secret aws-1: its state is not known", "correct it")
