"""What the API server refuses of accounts, and what it lets through: raw writes of several users."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.dynamic.exceptions import NotFoundError

from components.account_pool.core import changes
from components.account_pool.core.keys import (
    CLAIM_TOKEN,
    POOL_STATE,
    SHARED_CAPACITY,
    STATE_REASON,
)
from components.account_pool.core.model import JsonObject, Partition, Phase
from components.labels import (
    ACCOUNT_ID,
    BRING_YOUR_OWN,
    HYPERSCALER_TYPE,
    SHARED,
    TENANT_NAME,
)
from tests.support.cases import table
from tests.support.guarded_pool import (
    CLAIMED,
    CLAIMED_LABELS,
    MERGE,
    SHARING,
    TOKEN,
    USED,
    GuardedPool,
    Keys,
    guarded_pool,
    merged,
    record_of,
    refusal,
    secret,
)

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane


@pytest.fixture(scope="module")
def throwaway_pool(
    control_plane: ControlPlane, admin: DynamicClient, tmp_path_factory: pytest.TempPathFactory
) -> Generator[GuardedPool]:
    with guarded_pool(control_plane, admin, tmp_path_factory.mktemp("people"), allow_destroy=True) as pool:
        yield pool


BOUND = replace(record_of(Phase.BOUND), uid="u-1")


def test_nobody_takes_a_place_on_a_shared_account_that_is_full(pool: GuardedPool) -> None:
    shared = replace(BOUND, partition=Partition("aws", shared=True))
    for capacity, is_full in (("1", True), ("2", False), ("x", True)):
        member = pool.member({SHARED: "true"}, {**SHARING, SHARED_CAPACITY: capacity})
        assert (pool.patch("claimer", member, changes.take(member, shared).body) is None) is not is_full


BROUGHT: Keys = {BRING_YOUR_OWN: "true", ACCOUNT_ID: "111122223333"}


def test_who_brings_an_account_says_whose_it_is_and_nothing_of_claims(pool: GuardedPool) -> None:
    def refused(labels: Keys, notes: Keys, name: str = "brought-1", **more: Any) -> str | None:
        body = merged(secret(labels, notes), {"metadata": {"name": name}, **more})
        return pool.create("bringer", "Secret", body)

    assert refused(CLAIMED_LABELS, BROUGHT) is None
    for labels, notes, name in (
        ({}, BROUGHT, "brought-1"),
        (CLAIMED_LABELS, {}, "brought-1"),
        (CLAIMED_LABELS, BROUGHT, "aws-1"),
        ({**CLAIMED_LABELS, HYPERSCALER_TYPE: None}, BROUGHT, "brought-1"),
        ({**CLAIMED_LABELS, POOL_STATE: "dirty"}, BROUGHT, "brought-1"),
        ({**CLAIMED_LABELS, SHARED: "true"}, BROUGHT, "brought-1"),
        ({**CLAIMED_LABELS, "example.com/a": "b"}, BROUGHT, "brought-1"),
        (CLAIMED_LABELS, {**CLAIMED, **BROUGHT}, "brought-1"),
        (CLAIMED_LABELS, {**USED, **BROUGHT}, "brought-1"),
        (CLAIMED_LABELS, {**BROUGHT, "kubernetes.io/service-account.name": "default"}, "brought-1"),
    ):
        assert " account-made: " in str(refused(labels, notes, name)), (labels, notes, name)
    assert refused(CLAIMED_LABELS, BROUGHT, immutable=True) is not None


def test_an_account_deleted_in_the_foreground_goes_once_the_garbage_collector_says_so(
    pool: GuardedPool,
) -> None:
    member = pool.member({}, {})
    api, where = pool.api("operator", "Secret"), {"name": member.name, "namespace": pool.namespace}
    api.delete(**where, body={"propagationPolicy": "Foreground"})
    gone: JsonObject = {"metadata": {"finalizers": None}}
    try:
        assert pool.patch("owner", member, gone) is None
    except NotFoundError:
        assert pool.create("operator", "Secret", secret({}, {})) is None


def test_secrets_that_are_no_accounts_are_nobodys_business(pool: GuardedPool) -> None:
    body = secret({HYPERSCALER_TYPE: None, "app": "any"}, {STATE_REASON: "none"})
    assert pool.create("owner", "Secret", body) is None


def test_whoever_declares_a_claimed_account_rotates_its_credential(pool: GuardedPool) -> None:
    manifest = secret({}, {})
    where = {"name": manifest["metadata"]["name"], "namespace": pool.namespace}
    declare = {"content_type": "application/apply-patch+yaml", "field_manager": "pulumi-kubernetes"}
    declared, claimed = pool.api("operator", "Secret"), pool.api("claimer", "Secret")
    declared.patch(**where, body=manifest, **declare)
    claim = {"metadata": {"labels": dict(CLAIMED_LABELS), "annotations": dict(CLAIMED)}}
    claimed.patch(**where, body=claim, content_type=MERGE, field_manager="credfleet-claims")
    rotated = {**manifest, "data": {"key": "bmV3"}}
    assert refusal(lambda: declared.patch(**where, body=rotated, **declare)) is None
    now = declared.get(**where)
    assert (now.data["key"], now.metadata.labels[TENANT_NAME]) == ("bmV3", "acme")
    assert now.metadata.annotations[CLAIM_TOKEN] == TOKEN


IN_USE: Mapping[str, tuple[Keys, Keys]] = table(__file__, "IN_USE")


@pytest.mark.parametrize("user", ["owner", "operator", "claimer", "cleaner"])
@pytest.mark.parametrize(("labels", "notes"), IN_USE.values(), ids=IN_USE.keys())
def test_an_account_in_use_is_deleted_by_nobody(
    pool: GuardedPool, labels: Keys, notes: Keys, user: str
) -> None:
    refused = pool.delete(user, "Secret", pool.member(labels, notes).name)
    assert " account-deleted: " in str(refused)


@pytest.mark.parametrize(("labels", "notes"), IN_USE.values(), ids=IN_USE.keys())
def test_a_pool_that_may_be_thrown_away_lets_everything_be_deleted(
    throwaway_pool: GuardedPool, labels: Keys, notes: Keys
) -> None:
    member, record = throwaway_pool.member(labels, notes), throwaway_pool.record(Phase.BOUND)
    assert throwaway_pool.delete("owner", "Secret", member.name) is None
    assert throwaway_pool.delete("owner", "ConfigMap", record.name) is None


def test_a_claim_in_another_namespace_is_not_touched(
    pool: GuardedPool, namespace: str, admin: DynamicClient
) -> None:
    api: Any = admin.resources.get(api_version="v1", kind="Secret")
    body = secret(CLAIMED_LABELS, CLAIMED)
    api.create(body=body, namespace=namespace)
    where = {"name": body["metadata"]["name"], "namespace": namespace}

    def delete() -> object:
        return api.delete(**where)

    assert refusal(delete) is None
