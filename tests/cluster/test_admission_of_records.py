"""What the API server refuses of claims' records, and what it lets through: raw writes of several users."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from components.account_pool.keys import POOL_RECORD
from components.account_pool.model import Member, Partition, Phase, Policy
from tests.support.guarded_pool import GuardedPool, guarded_pool, record_of

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
        replace(pending, phase=Phase.BOUND),  # C5
        pending.moved_to(other),  # C6
        replace(pending, phase=Phase.RELEASING, holders={}),  # R2 of a claim nobody pursues
        bound.with_holder("h2"),  # C8
        bound.without_holder("h"),  # R1
        replace(bound, phase=Phase.RELEASING, holders={}),  # R2
        replace(bound, policy=Policy.RETAIN, limit=3),  # update
        replace(bound, former_uid="u-0"),  # recovery
    ):
        assert pool.replace("claimer", written) is None
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


@pytest.mark.parametrize("user", ["owner", "claimer", "operator"])
def test_a_bound_record_is_deleted_by_nobody(pool: GuardedPool, user: str) -> None:
    bound = pool.record(Phase.BOUND)
    assert " a-bound-record-is-not-deleted: " in str(pool.delete(user, "ConfigMap", bound.name))


def test_other_config_maps_of_the_namespace_are_nobodys_business(pool: GuardedPool) -> None:
    body = {"metadata": {"name": "anything"}, "data": {"phase": "Bound"}}
    assert pool.create("owner", "ConfigMap", body) is None
