"""What the API server refuses of claims' records, and what it lets through: raw writes of several users."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from components.account_pool.keys import POOL_RECORD
from components.account_pool.model import JsonObject, Member, Partition, Phase, Policy, Record
from components.labels import HYPERSCALER_TYPE, TENANT_NAME
from tests.support.guarded_pool import MERGE, GuardedPool, guarded_pool, record_of, refusal

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane


@pytest.fixture(scope="module")
def pool(
    control_plane: ControlPlane, admin: DynamicClient, tmp_path_factory: pytest.TempPathFactory
) -> Generator[GuardedPool]:
    with guarded_pool(control_plane, admin, tmp_path_factory.mktemp("people")) as pool:
        yield pool


def test_every_write_of_the_protocol_to_a_record_passes(pool: GuardedPool) -> None:
    assert pool.create("claimer", "ConfigMap", record_of(Phase.PENDING).render(pool.namespace)) is None  # C2
    pending, bound = pool.record(Phase.PENDING), pool.record(Phase.BOUND)
    releasing = pool.record(Phase.RELEASING)
    other = Member("aws-2", "u-2", "1")
    for written in (
        replace(pending, phase=Phase.BOUND, member_uid="u-9").with_holder("h2"),  # C5
        pending.moved_to(other),  # C6
        replace(pending, phase=Phase.RELEASING, holders={}),  # R2 of a claim nobody pursues
        bound.with_holder("h2"),  # C8
        bound.without_holder("h"),  # R1
        replace(bound, phase=Phase.RELEASING, holders={}),  # R2
        replace(bound, policy=Policy.RETAIN, limit=3),  # update
        bound.without_holder("h").with_holder('h "3"'),  # update
    ):
        assert pool.replace("claimer", written) is None
    assert pool.replace("operator", replace(bound, former_uid="u-0")) is None  # recovery
    assert pool.delete("claimer", "ConfigMap", pending.name) is None  # C6
    assert pool.delete("claimer", "ConfigMap", releasing.name) is None  # X3


def test_records_are_written_by_claimers_and_operators_only(pool: GuardedPool) -> None:
    body = record_of(Phase.PENDING).render(pool.namespace)
    bound = pool.record(Phase.BOUND)
    for user in ("owner", "cleaner"):
        assert " a-new-record-is-pending: " in str(pool.create(user, "ConfigMap", body))
        refused = pool.replace(user, bound.with_holder("me"))
        assert " a-record-is-written-by-claims: " in str(refused)


def test_a_claim_does_not_begin_as_bound_nor_without_its_label(pool: GuardedPool) -> None:
    bound = record_of(Phase.BOUND).render(pool.namespace)
    unlabelled = record_of(Phase.PENDING).render(pool.namespace)
    del unlabelled["metadata"]["labels"][POOL_RECORD]
    for body in (bound, unlabelled):
        assert " a-new-record-is-pending: " in str(pool.create("claimer", "ConfigMap", body))


@pytest.mark.parametrize("user", ["claimer", "operator"])
def test_a_record_stays_its_tenants(pool: GuardedPool, user: str) -> None:
    bound = pool.record(Phase.BOUND)
    for stolen in (
        replace(bound, tenant="other"),
        replace(bound, slot="1"),
        replace(bound, partition=Partition("gcp")),
    ):
        assert " a-record-stays-whose-it-is: " in str(pool.replace(user, stolen))


def test_a_record_never_goes_back(pool: GuardedPool) -> None:
    bound, releasing = pool.record(Phase.BOUND), pool.record(Phase.RELEASING)
    for back in (
        replace(bound, phase=Phase.PENDING),
        replace(releasing, phase=Phase.BOUND),
        replace(releasing, phase=Phase.PENDING),
    ):
        assert " a-record-goes-forward: " in str(pool.replace("claimer", back))


def test_a_bound_record_names_no_other_account(pool: GuardedPool) -> None:
    bound = pool.record(Phase.BOUND)
    for moved in (replace(bound, member="aws-2"), replace(bound, attempt=2)):
        assert " a-bound-record-keeps-its-account: " in str(pool.replace("claimer", moved))


GARBLED: Mapping[str, tuple[str, Phase, Mapping[str, str | None]]] = {
    "another account under the same name": ("tried-one-by-one", Phase.BOUND, {"memberUid": "u-2"}),
    "another account in the same attempt": ("tried-one-by-one", Phase.PENDING, {"member": "aws-2"}),
    "an attempt skipped": ("tried-one-by-one", Phase.PENDING, {"member": "aws-2", "attempt": "3"}),
    "a policy before it is bound": ("agreed-while-bound", Phase.PENDING, {"policy": "release"}),
    "a limit before it is bound": ("agreed-while-bound", Phase.PENDING, {"limit": "1"}),
    "a policy when it is released": ("agreed-while-bound", Phase.RELEASING, {"policy": "retain"}),
    "an unknown policy": ("readable", Phase.BOUND, {"policy": "forget"}),
    "a limit that is no number": ("readable", Phase.BOUND, {"limit": "many"}),
    "a number of attempts that is none": ("readable", Phase.BOUND, {"attempt": "x"}),
    "no account": ("readable", Phase.PENDING, {"member": None}),
    "no holders": ("readable", Phase.BOUND, {"holders": None}),
    "holders that are no JSON": ("readable", Phase.BOUND, {"holders": "h"}),
    "holders that are a list": ("readable", Phase.BOUND, {"holders": '["h"]'}),
    "a holder without a number": ("readable", Phase.BOUND, {"holders": '{"h": "1"}'}),
    "two holders at once": ("come-and-go", Phase.BOUND, {"holders": '{"a": 1, "b": 1, "h": 1}'}),
    "holders that stay after the release": ("come-and-go", Phase.BOUND, {"phase": "Releasing"}),
    "a number of those who left that is none": ("readable", Phase.BOUND, {"retired": "-1"}),
    "a uid of before a restore": ("never-forgets", Phase.BOUND, {"formerUid": "u-0"}),
}


@pytest.mark.parametrize(("rule", "phase", "data"), GARBLED.values(), ids=GARBLED.keys())
def test_a_claimer_writes_into_a_record_what_the_protocol_writes(
    pool: GuardedPool, rule: str, phase: Phase, data: Mapping[str, str | None]
) -> None:
    refused = patch(pool, "claimer", pool.record(phase), {"data": data})
    assert re.search(rf" [-a-z]*{rule}[-a-z]*: ", str(refused)), refused


def test_the_holders_of_a_claim_leave_one_by_one(pool: GuardedPool) -> None:
    bound = pool.record(Phase.BOUND)
    joined = replace(bound, holders={"a": 1, "b": 2, "h": 1}, retired=4)
    live = pool.api("operator", "ConfigMap").replace(
        body=joined.render(pool.namespace), namespace=pool.namespace
    )
    joined = Record.parse(live.to_dict())
    assert pool.replace("claimer", joined.without_holder("a")) is None
    for emptied in (replace(joined, holders={}), replace(joined, phase=Phase.RELEASING, holders={})):
        assert " holders-come-and-go-one-by-one: " in str(pool.replace("claimer", emptied))
    assert pool.replace("claimer", replace(joined, retired=5)) is None
    for retired in (0, 3):
        assert " a-record-never-forgets: " in str(pool.replace("claimer", replace(joined, retired=retired)))


@pytest.mark.parametrize("count", [400, 3000])
def test_a_claim_with_many_holders_goes_on(pool: GuardedPool, count: int) -> None:
    holders = {f"pulumi/organization/project/stack-{number}/tenant/slot": 1 for number in range(count)}
    crowded = replace(pool.record(Phase.BOUND), holders=holders).render(pool.namespace)
    live = pool.api("operator", "ConfigMap").replace(body=crowded, namespace=pool.namespace)
    record = Record.parse(live.to_dict())
    for written in (record.with_holder("one more"), record.without_holder(next(iter(holders)))):
        assert pool.replace("claimer", written) is None
    assert " holders-come-and-go-one-by-one: " in str(pool.replace("claimer", replace(record, holders={})))


def test_a_record_keeps_the_labels_it_is_found_by(pool: GuardedPool) -> None:
    bound = pool.record(Phase.BOUND)
    for key in (TENANT_NAME, HYPERSCALER_TYPE):
        refused = patch(pool, "claimer", bound, {"metadata": {"labels": {key: "other"}}})
        assert " a-record-is-found-by-its-labels: " in str(refused)


def test_a_new_record_is_the_first_attempt_of_a_claim_and_can_be_read(pool: GuardedPool) -> None:
    body = record_of(Phase.PENDING).render(pool.namespace)
    named = {**body, "metadata": {**body["metadata"], "name": "anything"}}
    for change in (named, {**body, "data": {**body["data"], "attempt": "2"}}):
        assert " a-new-record-is-pending: " in str(pool.create("claimer", "ConfigMap", change))
    garbled = {**body, "data": {**body["data"], "holders": "[]"}}
    assert " a-new-record-is-readable: " in str(pool.create("claimer", "ConfigMap", garbled))


def test_nothing_else_becomes_a_record(pool: GuardedPool) -> None:
    body = {**record_of(Phase.BOUND).render(pool.namespace), "metadata": {"name": "junk"}}
    made = pool.api("owner", "ConfigMap").create(body=body, namespace=pool.namespace)
    junk = replace(record_of(Phase.BOUND), name=made.metadata.name)
    labelled = {"metadata": {"labels": {POOL_RECORD: "true"}}}
    assert " nothing-else-becomes-a-record: " in str(patch(pool, "claimer", junk, labelled))
    assert patch(pool, "operator", junk, labelled) is None


def test_what_an_operator_hung_on_a_record_does_not_stop_its_claim(pool: GuardedPool) -> None:
    bound = pool.record(Phase.BOUND)
    kept = {"metadata": {"finalizers": ["example.com/kept"]}}
    api, where = pool.api("operator", "ConfigMap"), {"name": bound.name, "namespace": pool.namespace}
    live = Record.parse(api.patch(**where, body=kept, content_type=MERGE).to_dict())
    assert pool.replace("claimer", live.with_holder("h2")) is None
    assert " what-deletes-or-locks-is-an-operators: " in str(
        patch(pool, "claimer", live, {"metadata": {"finalizers": ["example.com/kept", "example.com/too"]}})
    )


def patch(pool: GuardedPool, user: str, record: Record, body: JsonObject) -> str | None:
    api, where = pool.api(user, "ConfigMap"), {"name": record.name, "namespace": pool.namespace}
    return refusal(lambda: api.patch(**where, body=body, content_type=MERGE, dry_run="All"))


@pytest.mark.parametrize("user", ["owner", "claimer", "operator"])
def test_a_bound_record_is_deleted_by_nobody(pool: GuardedPool, user: str) -> None:
    bound = pool.record(Phase.BOUND)
    assert " a-bound-record-is-not-deleted: " in str(pool.delete(user, "ConfigMap", bound.name))


def test_other_config_maps_of_the_namespace_are_nobodys_business(pool: GuardedPool) -> None:
    body = {"metadata": {"name": "anything"}, "data": {"phase": "Bound"}}
    assert pool.create("owner", "ConfigMap", body) is None
