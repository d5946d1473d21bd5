"""What the API server refuses of accounts, and what it lets through: raw writes of several users."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from kubernetes.dynamic.exceptions import NotFoundError

from components.account_pool.core import changes
from components.account_pool.core.calls import Patch
from components.account_pool.core.keys import (
    CLAIM_ORIGIN,
    CLAIM_POLICY,
    CLAIM_TOKEN,
    CLEANING_TOKEN,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
    STATE_BEFORE,
    STATE_REASON,
    TENANT_ID,
)
from components.account_pool.core.model import JsonObject, Member, Partition, Phase, Policy
from components.labels import (
    ACCOUNT_ID,
    BRING_YOUR_OWN,
    HYPERSCALER_TYPE,
    SHARED,
    TENANT_NAME,
)
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
def pool(
    control_plane: ControlPlane, admin: DynamicClient, tmp_path_factory: pytest.TempPathFactory
) -> Generator[GuardedPool]:
    with guarded_pool(control_plane, admin, tmp_path_factory.mktemp("people")) as pool:
        yield pool


@pytest.fixture(scope="module")
def throwaway_pool(
    control_plane: ControlPlane, admin: DynamicClient, tmp_path_factory: pytest.TempPathFactory
) -> Generator[GuardedPool]:
    with guarded_pool(control_plane, admin, tmp_path_factory.mktemp("people"), allow_destroy=True) as pool:
        yield pool


RETAINED: Keys = {CLAIM_ORIGIN: "retained", TENANT_ID: "acme"}
GONE: Mapping[str, str] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "gone",
    "uid": "00000000-0000-4000-8000-000000000000",
}
"""An owner that is not there: the garbage collector deletes what it owns."""


BOUND = replace(record_of(Phase.BOUND), uid="u-1")
CARRYING: Keys = {**CLAIMED, CLAIM_TOKEN: str(BOUND.token)}

Change: TypeAlias = Callable[[Member], Patch]


def _releasing_by(policy: Policy) -> Change:
    return lambda member: changes.remove(member, BOUND.token, BOUND, policy)


PROTOCOL: Mapping[str, tuple[str, Keys, Keys, Change]] = {
    "C3 takes a free member": ("claimer", {}, {}, lambda m: changes.take(m, BOUND)),
    "C3 takes an own member": ("claimer", CLAIMED_LABELS, {}, lambda m: changes.take(m, BOUND)),
    "C3 takes a place on a shared member": (
        "claimer",
        {SHARED: "true"},
        SHARING,
        lambda m: changes.take(m, replace(BOUND, partition=Partition("aws", shared=True))),
    ),
    "C7 gives back what is to be cleaned": (
        "claimer",
        CLAIMED_LABELS,
        CARRYING,
        _releasing_by(Policy.RELEASE),
    ),
    "X2 releases what nobody knows": (
        "claimer",
        {},
        {CLAIM_TOKEN: TOKEN},
        lambda m: changes.remove(m, BOUND.token, None),
    ),
    "C4 heals": ("claimer", {}, CARRYING, lambda m: changes.heal(m, BOUND)),
    "C7 gives back": (
        "claimer",
        CLAIMED_LABELS,
        {**CARRYING, CLAIM_POLICY: "release"},
        _releasing_by(Policy.RELEASE),
    ),
    "X2 releases an own member": (
        "claimer",
        CLAIMED_LABELS,
        {**CARRYING, CLAIM_ORIGIN: "owner"},
        lambda m: changes.remove(m, BOUND.token, BOUND),
    ),
    "X2 releases a quarantined member": (
        "claimer",
        {**CLAIMED_LABELS, POOL_STATE: "quarantined"},
        CARRYING,
        lambda m: changes.remove(m, BOUND.token, BOUND),
    ),
    "C3 takes the first place on a shared member": (
        "claimer",
        {SHARED: "true"},
        {SHARED_CAPACITY: "1"},
        lambda m: changes.take(m, replace(BOUND, slot='a "b": c', partition=Partition("aws", shared=True))),
    ),
    "X2 releases a dirty member": (
        "claimer",
        {**CLAIMED_LABELS, POOL_STATE: "dirty"},
        CARRYING,
        lambda m: changes.remove(m, BOUND.token, BOUND, Policy.QUARANTINE),
    ),
    "X2 releases a member relabelled by hand": (
        "claimer",
        {TENANT_NAME: "other"},
        CARRYING,
        lambda m: changes.remove(m, BOUND.token, BOUND),
    ),
    "X2 releases a member stripped by hand": (
        "claimer",
        {},
        CARRYING,
        lambda m: changes.remove(m, BOUND.token, None),
    ),
    "C3 takes a member quarantined once": (
        "claimer",
        CLAIMED_LABELS,
        {CLAIM_ORIGIN: "pool", TENANT_ID: "acme"},
        lambda m: changes.take(m, BOUND),
    ),
    "X2 gives up a place on a shared member": (
        "claimer",
        {SHARED: "true"},
        {SHARED_CLAIMS: json.dumps({str(BOUND.token): "0"}), SHARED_CAPACITY: "2"},
        lambda m: changes.remove(m, BOUND.token, BOUND),
    ),
    "K2 starts cleaning": (
        "cleaner",
        {**CLAIMED_LABELS, POOL_STATE: "dirty"},
        USED,
        lambda m: changes.start_cleaning(m, "janitor/1"),
    ),
    "K3 quarantines": (
        "cleaner",
        {**CLAIMED_LABELS, POOL_STATE: "cleaning"},
        {**USED, CLEANING_TOKEN: "janitor/1"},
        lambda m: changes.quarantine(m, "it would not go"),
    ),
    "K4 frees": (
        "cleaner",
        {**CLAIMED_LABELS, POOL_STATE: "cleaning"},
        {**USED, CLEANING_TOKEN: "janitor/1"},
        changes.finish_cleaning,
    ),
    "K4 leaves an own member with its tenant": (
        "cleaner",
        {**CLAIMED_LABELS, POOL_STATE: "cleaning"},
        {CLEANING_TOKEN: "janitor/1"},
        changes.finish_cleaning,
    ),
    "an operator quarantines what is in use": (
        "operator",
        CLAIMED_LABELS,
        CARRYING,
        lambda m: changes.quarantine(m, "odd bills"),
    ),
    "an operator gives up a dirty member": (
        "operator",
        {**CLAIMED_LABELS, POOL_STATE: "dirty"},
        USED,
        lambda m: changes.quarantine(m, "gone"),
    ),
    "an operator sends a quarantined member to the cleaner": (
        "operator",
        {**CLAIMED_LABELS, POOL_STATE: "quarantined"},
        {**USED, STATE_REASON: "odd bills"},
        changes.unquarantine,
    ),
    "an operator lets a quarantined member back that nobody had": (
        "operator",
        {POOL_STATE: "quarantined"},
        {STATE_REASON: "odd bills"},
        changes.unquarantine,
    ),
    "an operator lets a quarantined member back that is in use": (
        "operator",
        {**CLAIMED_LABELS, POOL_STATE: "quarantined"},
        {**CARRYING, STATE_REASON: "odd bills"},
        changes.unquarantine,
    ),
    "C3 takes a retained member": ("claimer", CLAIMED_LABELS, RETAINED, lambda m: changes.take(m, BOUND)),
    "K4 leaves a retained member with its tenant": (
        "cleaner",
        {**CLAIMED_LABELS, POOL_STATE: "cleaning"},
        {**RETAINED, CLEANING_TOKEN: "janitor/1"},
        changes.finish_cleaning,
    ),
    "an operator returns a retained member": ("operator", CLAIMED_LABELS, RETAINED, changes.take_back),
    "an operator lets a retained member back": (
        "operator",
        {**CLAIMED_LABELS, POOL_STATE: "quarantined"},
        {**RETAINED, STATE_REASON: "odd bills"},
        changes.unquarantine,
    ),
    "an operator has a claimed member left": (
        "operator",
        CLAIMED_LABELS,
        CLAIMED,
        lambda m: changes.evacuate(m, "closed"),
    ),
    "an operator lets a member back that was to be left": (
        "operator",
        {**CLAIMED_LABELS, POOL_STATE: "quarantined"},
        {**CLAIMED, STATE_BEFORE: "leaving"},
        changes.unquarantine,
    ),
    "X2 releases a member that is to be left": (
        "claimer",
        {**CLAIMED_LABELS, POOL_STATE: "quarantined"},
        {**CARRYING, STATE_BEFORE: "leaving"},
        _releasing_by(Policy.CLEAN),
    ),
    "an operator has a member cleaned": ("operator", {}, {}, lambda m: changes.mark_dirty(m, "used by hand")),
    "an operator binds a restored claim": (
        "operator",
        CLAIMED_LABELS,
        CLAIMED,
        lambda m: changes.rebind(m, BOUND, m.token),
    ),
    **{
        f"X2 releases by policy {policy}": (
            "claimer",
            CLAIMED_LABELS,
            {**CARRYING, CLAIM_POLICY: str(policy)},
            _releasing_by(policy),
        )
        for policy in Policy
    },
}


@pytest.mark.parametrize(("user", "labels", "notes", "change"), PROTOCOL.values(), ids=PROTOCOL.keys())
def test_every_write_of_the_protocol_to_a_member_passes(
    pool: GuardedPool, user: str, labels: Keys, notes: Keys, change: Change
) -> None:
    member = pool.member(labels, notes)
    assert pool.patch(user, member, change(member).body) is None


def test_nobody_takes_a_place_on_a_shared_account_that_is_full(pool: GuardedPool) -> None:
    shared = replace(BOUND, partition=Partition("aws", shared=True))
    for capacity, is_full in (("1", True), ("2", False), ("x", True)):
        member = pool.member({SHARED: "true"}, {**SHARING, SHARED_CAPACITY: capacity})
        assert (pool.patch("claimer", member, changes.take(member, shared).body) is None) is not is_full


def test_accounts_are_made_by_operators(pool: GuardedPool) -> None:
    for labels, notes in (({}, {}), (CLAIMED_LABELS, {BRING_YOUR_OWN: "true"}), (CLAIMED_LABELS, CLAIMED)):
        assert pool.create("operator", "Secret", secret(labels, notes)) is None
        for user in ("owner", "claimer", "cleaner"):
            assert " account-made: " in str(pool.create(user, "Secret", secret(labels, notes)))


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


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
def test_what_is_made_is_not_made_to_vanish_or_to_stay(pool: GuardedPool, kind: str) -> None:
    def body(change: JsonObject) -> JsonObject:
        drawn = secret({}, {}) if kind == "Secret" else record_of(Phase.PENDING).render(pool.namespace)
        metadata = {**drawn["metadata"], **change.get("metadata", {})}
        return {**drawn, **change, "metadata": metadata}

    user = "operator" if kind == "Secret" else "claimer"
    assert pool.create(user, kind, body({})) is None
    for change in (
        {"metadata": {"ownerReferences": [GONE]}},
        {"metadata": {"finalizers": ["example.com/kept"]}},
        {"immutable": True},
    ):
        assert pool.create("claimer", kind, body(change)) is not None
        assert pool.create("operator", kind, body(change)) is None


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


IN_USE: Mapping[str, tuple[Keys, Keys]] = {
    "claimed": (CLAIMED_LABELS, CLAIMED),
    "claimed without its label": ({}, CLAIMED),
    "shared": ({SHARED: "true"}, SHARING),
    "dirty": ({POOL_STATE: "dirty"}, USED),
    "being cleaned": ({POOL_STATE: "cleaning"}, {CLEANING_TOKEN: "janitor/1"}),
}
NOT_IN_USE: Mapping[str, tuple[Keys, Keys]] = {
    "free": ({}, {}),
    "owned without a claim": (CLAIMED_LABELS, {}),
    "quarantined": ({POOL_STATE: "quarantined"}, USED),
    "shared by nobody": ({SHARED: "true"}, {SHARED_CLAIMS: "{}"}),
}


@pytest.mark.parametrize("user", ["owner", "operator", "claimer", "cleaner"])
@pytest.mark.parametrize(("labels", "notes"), IN_USE.values(), ids=IN_USE.keys())
def test_an_account_in_use_is_deleted_by_nobody(
    pool: GuardedPool, labels: Keys, notes: Keys, user: str
) -> None:
    refused = pool.delete(user, "Secret", pool.member(labels, notes).name)
    assert " account-deleted: " in str(refused)


@pytest.mark.parametrize(("labels", "notes"), NOT_IN_USE.values(), ids=NOT_IN_USE.keys())
def test_an_account_nobody_uses_is_deleted_by_operators_alone(
    pool: GuardedPool, labels: Keys, notes: Keys
) -> None:
    name = pool.member(labels, notes).name
    assert pool.delete("operator", "Secret", name) is None
    for user in ("owner", "claimer", "cleaner"):
        assert " account-deleted: " in str(pool.delete(user, "Secret", name))


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
