"""The roster of a pool in the genuine host, on a real API server: what it refuses, already in a preview."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.keys import POOL_RECORD, POOL_STATE, SHARED_CAPACITY, SHARED_CLAIMS
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.forecast.forecast import parse
from components.account_pool.roster import PoolRosterProvider
from components.labels import SHARED, TENANT_NAME
from tests.support.cases import tabled
from tests.support.dynamic_host import Properties, Provider, dynamic_host, provided
from tests.support.members import TOKEN, Members

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane


def cluster_of(plane: ControlPlane) -> Properties:
    return {"cluster": {"kubeconfig": str(plane.kubeconfig("admin"))}}


def one(type_: str = "aws", **facts: Any) -> Properties:
    return {"type": type_, "accountId": "111", "labels": {}, "annotations": {}, **facts}


def roster(namespace: str, members: Properties, **more: Any) -> Properties:
    return {
        "namespace": namespace,
        "partitionKeys": [],
        "members": members,
        "allowDestroy": False,
        **more,
    }


provider = provided(PoolRosterProvider)


LOSSES: Mapping[str, tuple[Properties, Properties, str]] = {
    "removed": ({"m": one()}, {}, "it would be removed"),
    "renamed": ({"m": one()}, {"n": one()}, "it would be renamed to n"),
    "retyped": ({"m": one()}, {"m": one("gcp")}, "it would become gcp instead of aws"),
    "replaced": ({"m": one()}, {"m": one(accountId="222")}, "another account under the same name"),
    "disowned": ({"m": one(tenant="acme")}, {"m": one()}, "taken from acme"),
    "moved": ({"m": one()}, {"m": one(labels={"eu-access": "true"})}, "move to another part of the pool"),
}


@pytest.mark.parametrize(("before", "after", "loss"), LOSSES.values(), ids=LOSSES.keys())
def test_a_claimed_member_is_not_taken_away(
    *, provider: Provider, members: Members, namespace: str, before: Properties, after: Properties, loss: str
) -> None:
    members.add_claimed("m")
    declared = provider.create(roster(namespace, before))
    (said,) = provider.refusals(roster(namespace, after), declared.inputs)
    assert re.match(r"credfleet:accountPool\.members\.m(\.tenant)?: ", said)
    assert loss in said
    assert "it is claimed by tenant acme; release the claim first" in said
    with pytest.raises(grpc.RpcError) as refused:
        provider.update_unchecked(declared, roster(namespace, after))
    assert "RunError: credfleet:accountPool.members.m" in str(refused.value.details())


def test_account_of_a_tenants_own_leaves_after_its_tenant_released_it(
    provider: Provider, members: Members, namespace: str
) -> None:
    members.add_claimed("m")
    declared = provider.create(roster(namespace, {"m": one(tenant="acme")}))
    (said,) = provider.refusals(roster(namespace, {}), declared.inputs)
    assert "→ put it back, and tenant acme without the slot that holds it; update, and remove both" in said


@pytest.mark.parametrize(("before", "after", "loss"), LOSSES.values(), ids=LOSSES.keys())
def test_a_member_nobody_uses_may_be_taken_away(
    *, provider: Provider, members: Members, namespace: str, before: Properties, after: Properties, loss: str
) -> None:
    is_disowned = "taken from" in loss  # which is for an account alone that is cleaned before its next use
    members.add("m", {TENANT_NAME: "acme", **({POOL_STATE: "dirty"} if is_disowned else {})})
    declared = provider.create(roster(namespace, before))
    updated = provider.update(declared, roster(namespace, after))
    assert updated.outputs["members"] == after


@tabled("state, allow_destroy, may_go")
def test_whether_a_member_may_go_depends_on_its_state_and_the_pools(
    provider: Provider, members: Members, namespace: str, *, state: str, allow_destroy: bool, may_go: bool
) -> None:
    members.add("m", {POOL_STATE: state})
    declared = provider.create(roster(namespace, {"m": one()}))
    owner = f"pulumi/o/p/prod/accountPool/{namespace}"
    emptied = roster(namespace, {}, allowDestroy=allow_destroy, owner=owner)
    said = provider.refusals(emptied, declared.inputs)
    assert (said == []) is may_go
    commands = [each for each in "".join(said).split("`") if each.startswith("credfleet ")]
    assert all(each.endswith(f" -n {namespace} --stack prod") for each in commands)
    assert bool(commands) == (state == "dirty" and not may_go)


def test_a_pool_does_not_move_away_from_its_claimed_members(
    provider: Provider, members: Members, namespace: str
) -> None:
    members.add_claimed("m")
    declared = provider.create(roster(namespace, {"m": one(), "free": one(accountId="2")}))
    moved = roster("elsewhere", {"m": one(), "free": one(accountId="2")})
    (said,) = provider.refusals(moved, declared.inputs)
    assert f"it would move from namespace {namespace} to elsewhere" in said


@pytest.mark.parametrize("allowed", [True, False])
def test_a_pool_does_not_move_away_from_credentials_that_no_stack_has(
    *, provider: Provider, members: Members, namespace: str, allowed: bool
) -> None:
    members.add("m")
    members.add("imported", manager="credfleet")
    declared = provider.create(roster(namespace, {"m": one()}))
    said = provider.refusals(roster("elsewhere", {"m": one()}, allowDestroy=allowed), declared.inputs)
    assert ["no stack has the credential of imported" in each for each in said] == [True] * (not allowed)


def test_partition_keys_stay_while_claims_are_recorded_under_them(
    provider: Provider, admin: DynamicClient, namespace: str
) -> None:
    declared = provider.create(roster(namespace, {}))
    divided = roster(namespace, {}, partitionKeys=["region"])
    assert provider.refusals(divided, declared.inputs) == []
    record = {
        "metadata": {"name": "claim-1", "labels": {POOL_RECORD: "true"}},
        "data": {
            "tenant": "acme",
            "partition": "hyperscaler-type=aws",
            "slot": "0",
            "member": "m",
            "memberUid": "u",
            "attempt": "1",
            "phase": "Bound",
            "policy": "clean",
            "holders": "{}",
        },
    }
    api = admin.resources.get(api_version="v1", kind="ConfigMap")
    api.create(body=record, namespace=namespace)
    (said,) = provider.refusals(divided, declared.inputs)
    assert said.startswith("credfleet:accountPool.partitionKeys: 1 claim recorded")


def test_a_shared_member_does_not_take_fewer_claims_than_are_on_it(
    provider: Provider, members: Members, namespace: str
) -> None:
    shared = {SHARED_CAPACITY: "2", SHARED_CLAIMS: json.dumps({TOKEN: "a", TOKEN.replace("-0.", "-1."): "b"})}
    members.add("m", {SHARED: "true"}, shared)
    before, after = (one(annotations={SHARED_CAPACITY: capacity}) for capacity in ("2", "1"))
    declared = provider.create(roster(namespace, {"m": before}))
    (said,) = provider.refusals(roster(namespace, {"m": after}), declared.inputs)
    assert said.startswith("credfleet:accountPool.members.m.sharedCapacity: it would take 1 at most, but 2")


def test_a_pool_that_another_stack_made_is_told_before_anything_is_written(
    control_plane: ControlPlane, admin: DynamicClient, namespace: str
) -> None:
    api = admin.resources.get(api_version="v1", kind="ConfigMap")
    with dynamic_host(cluster_of(control_plane)) as host:
        provider = host.provider(PoolRosterProvider())
        provider.check(roster(namespace, {}))
        body = {"metadata": {"name": CONFIG_MAP}, "data": PoolConfigMap().render()}
        api.create(body=body, namespace=namespace)
        provider.check(roster(namespace, {}))
        provider.check(roster(namespace, {}), roster(namespace, {}))
        (said,) = host.said()
    assert f"namespace {namespace} holds a pool that this stack did not make" in said
    assert f"accountPool: {{from: {{namespace: {namespace}}}}}" in said


def test_roster_of_another_stacks_pool_without_it_or_with_other_labels_refuses(
    provider: Provider, admin: DynamicClient, namespace: str
) -> None:
    api = admin.resources.get(api_version="v1", kind="ConfigMap")
    said_by_pool = PoolConfigMap(scheme=LabelScheme({"type": "hyperscalerType"})).render()
    elsewhere = roster(namespace, {}, elsewhere=True)
    assert "has no pool" in provider.refusals(elsewhere)[0]
    api.create(body={"metadata": {"name": CONFIG_MAP}, "data": said_by_pool}, namespace=namespace)
    assert "type: hyperscalerType" in provider.refusals(elsewhere)[0]
    assert not provider.refusals({**elsewhere, "labels": {"type": "hyperscalerType"}})


@pytest.mark.parametrize(("capacity", "is_refused"), [(2, True), (3, False), (5, False)])
def test_the_pools_capacity_keeps_room_for_the_claims_on_accounts_that_say_none_of_their_own(
    *,
    provider: Provider,
    members: Members,
    admin: DynamicClient,
    namespace: str,
    capacity: int,
    is_refused: bool,
) -> None:
    said = PoolConfigMap(scheme=LabelScheme({}, 4)).render()
    api = admin.resources.get(api_version="v1", kind="ConfigMap")
    api.create(body={"metadata": {"name": CONFIG_MAP}, "data": said}, namespace=namespace)
    shared = {f"claim-{n:040x}.u{n}.1": f"h/{n}" for n in range(3)}
    for name, own in (("without", {}), ("with", {SHARED_CAPACITY: "9"})):
        members.add(name, labels={SHARED: "true"}, notes={SHARED_CLAIMS: json.dumps(shared), **own})
    declared = provider.create(roster(namespace, {}))
    news = roster(namespace, {}, sharedCapacity=capacity)
    told = provider.refusals(news, declared.inputs)
    assert len(told) == is_refused
    assert all("accountPool.sharedCapacity: account without would take 2 at most" in each for each in told)
    assert is_refused or not provider.is_changed(declared, news)


def test_a_preview_writes_nothing_into_the_pool(
    provider: Provider, admin: DynamicClient, namespace: str
) -> None:
    api = admin.resources.get(api_version="v1", kind="ConfigMap")
    api.create(
        body={"metadata": {"name": "credfleet-pool"}, "data": {"formatVersion": "1"}}, namespace=namespace
    )
    before = api.get(name="credfleet-pool", namespace=namespace).metadata.resourceVersion
    declared = provider.check(roster(namespace, {"m": one()}))
    provider.check(roster(namespace, {}), declared)
    assert api.get(name="credfleet-pool", namespace=namespace).metadata.resourceVersion == before


def test_a_cluster_that_is_not_there_lets_a_preview_pass_and_an_update_not(tmp_path: Path) -> None:
    config = {"cluster": {"kubeconfig": str(tmp_path / "none")}}
    with dynamic_host(config) as host:
        provider = host.provider(PoolRosterProvider())
        declared = provider.create(roster("pool", {"m": one()}))
        provider.check(roster("pool", {}), declared.inputs)
        with pytest.raises(grpc.RpcError) as refused:
            provider.update_unchecked(declared, roster("pool", {}))
        assert parse(host.said(), ()).unseen
        assert "RunError: what is in use is unknown: " in str(refused.value.details())
        said, fix, *_ = host.said()
    assert said.startswith("pool: the pool was not looked at, so what it holds is unknown (kubeconfig ")
    assert fix.startswith("→ name another by --kubeconfig")
