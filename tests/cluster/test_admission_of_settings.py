"""What the API server refuses of a pool's settings; without them accounts are given twice.

What a stack declares is written by operators; a claimer adds the uid of the ConfigMap and nothing else.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from components.account_pool.admission.policies import namespace_manifests
from components.account_pool.core.config_map import CONFIG_MAP, POOL_UID, PoolConfigMap, with_pool_uid
from components.account_pool.core.keys import UNSEALED
from components.account_pool.core.model import JsonObject, Phase
from tests.support.cases import tabled
from tests.support.guarded_pool import MERGE, GuardedPool, guarded_pool, record_of, refusal
from tests.support.noticed import until

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

SETTINGS: JsonObject = {
    "metadata": {"name": CONFIG_MAP},
    "data": PoolConfigMap(partition_keys=("eu-access",)).render(),
}


@pytest.fixture(scope="module")
def pool(pool: GuardedPool) -> GuardedPool:
    pool.api("operator", "ConfigMap").create(body=SETTINGS, namespace=pool.namespace)
    return pool


@pytest.fixture(scope="module")
def signed_pool(
    control_plane: ControlPlane, admin: DynamicClient, tmp_path_factory: pytest.TempPathFactory
) -> Generator[GuardedPool]:
    with guarded_pool(control_plane, admin, tmp_path_factory.mktemp("people")) as pool:
        api = pool.api("operator", "ConfigMap")
        made = api.create(body=SETTINGS, namespace=pool.namespace)
        api.replace(body=with_pool_uid(made.to_dict()), namespace=pool.namespace)
        yield pool


def change(pool: GuardedPool, user: str, body: JsonObject) -> str | None:
    api, where = pool.api(user, "ConfigMap"), {"name": CONFIG_MAP, "namespace": pool.namespace}
    return refusal(lambda: api.patch(**where, body=body, content_type=MERGE, dry_run="All"))


def sign(pool: GuardedPool, user: str) -> str | None:
    api = pool.api(user, "ConfigMap")
    body = with_pool_uid(api.get(name=CONFIG_MAP, namespace=pool.namespace).to_dict())
    return refusal(lambda: api.replace(body=body, namespace=pool.namespace, dry_run="All"))


@pytest.mark.parametrize("user", ["owner", "claimer", "cleaner"])
@tabled("body")
def test_nobody_but_an_operator_changes_the_settings(pool: GuardedPool, user: str, body: JsonObject) -> None:
    assert " pool-" in str(change(pool, user, body))
    assert change(pool, "operator", body) is None


@pytest.mark.parametrize("user", ["owner", "claimer", "cleaner"])
def test_settings_written_again_as_they_are_are_nobodys_business(pool: GuardedPool, user: str) -> None:
    assert change(pool, user, {"data": {"formatVersion": SETTINGS["data"]["formatVersion"]}}) is None


def test_the_first_claimer_adds_the_uid_of_the_pool(pool: GuardedPool) -> None:
    assert sign(pool, "claimer") is None
    for user in ("owner", "cleaner"):
        assert " pool-" in str(sign(pool, user))


def test_a_claimer_adds_the_uid_and_changes_nothing_with_it(pool: GuardedPool) -> None:
    uid = pool.api("claimer", "ConfigMap").get(name=CONFIG_MAP, namespace=pool.namespace).metadata.uid
    assert change(pool, "claimer", {"data": {POOL_UID: uid}}) is None
    emptied = {"data": {POOL_UID: uid, "partitionKeys": None}}
    assert " pool-" in str(change(pool, "claimer", emptied))


@pytest.mark.parametrize("signature", ["another", None], ids=["changed", "removed"])
def test_the_signature_of_a_pool_is_for_good(signed_pool: GuardedPool, signature: str | None) -> None:
    body = {"data": {POOL_UID: signature}}
    assert " pool-" in str(change(signed_pool, "claimer", body))
    assert change(signed_pool, "operator", body) is None


@pytest.mark.parametrize("user", ["owner", "claimer", "cleaner"])
def test_settings_are_deleted_by_operators_only(pool: GuardedPool, user: str) -> None:
    assert " pool-deleted: " in str(pool.delete(user, "ConfigMap", CONFIG_MAP))
    assert pool.delete("operator", "ConfigMap", CONFIG_MAP) is None


def test_settings_are_not_deleted_among_others_either(pool: GuardedPool) -> None:
    api: Any = pool.api("claimer", "ConfigMap")
    chosen = f"metadata.name={CONFIG_MAP}"

    def sweep_away() -> object:
        return api.delete(namespace=pool.namespace, field_selector=chosen, body={"dryRun": ["All"]})

    assert " pool-deleted: " in str(refusal(sweep_away))


def test_settings_are_made_by_operators_only(
    control_plane: ControlPlane, admin: DynamicClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with guarded_pool(control_plane, admin, tmp_path_factory.mktemp("people")) as bare:
        for user in ("owner", "claimer", "cleaner"):
            assert " pool-made: " in str(bare.create(user, "ConfigMap", SETTINGS))
        assert bare.create("operator", "ConfigMap", SETTINGS) is None


def apply(admin: DynamicClient, manifests: Iterable[JsonObject]) -> None:
    for manifest in manifests:
        admin.resources.get(api_version=manifest["apiVersion"], kind=manifest["kind"]).create(body=manifest)


def test_namespace_is_kept_until_unsealed_by_an_api_server_that_sees_no_new_parameters(
    admin: DynamicClient, namespace: str
) -> None:
    """As kubernetes/kubernetes#130887 has it: once no binding of a kind of parameters is left."""
    namespaces: Any = admin.resources.get(api_version="v1", kind="Namespace")
    delete = partial(refusal, partial(namespaces.delete, name=namespace, body={"dryRun": ["All"]}))
    policy, binding = deepcopy(namespace_manifests(namespace))
    policy["metadata"]["name"] = binding["metadata"]["name"] = binding["spec"]["policyName"] = "once"
    policy["spec"]["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    found = {"namespace": namespace, "selector": {}, "parameterNotFoundAction": "Allow"}
    binding["spec"]["paramRef"] = found
    config_maps: Any = admin.resources.get(api_version="v1", kind="ConfigMap")
    config_maps.create(body={"metadata": {"name": "parameter"}}, namespace=namespace)
    apply(admin, (policy, binding))
    until(lambda: delete() is not None)
    for manifest in (binding, policy):
        admin.resources.get(api_version=manifest["apiVersion"], kind=manifest["kind"]).delete(name="once")
    until(lambda: delete() is None)

    config_maps.create(body=record_of(Phase.BOUND).render(namespace), namespace=namespace)
    apply(admin, namespace_manifests(namespace))
    until(lambda: f"credfleet pool status -n {namespace}" in str(delete()))
    unsealed = {"metadata": {"annotations": {UNSEALED: "true"}}}
    namespaces.patch(name=namespace, body=unsealed, content_type=MERGE)
    assert delete() is None


def test_settings_do_not_hold_up_a_namespace_that_goes(
    control_plane: ControlPlane, admin: DynamicClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with guarded_pool(control_plane, admin, tmp_path_factory.mktemp("people")) as leaving:
        held = {"metadata": {**SETTINGS["metadata"], "finalizers": ["example.com/kept"]}}
        leaving.api("operator", "ConfigMap").create(body={**SETTINGS, **held}, namespace=leaving.namespace)
        namespaces: Any = admin.resources.get(api_version="v1", kind="Namespace")
        namespaces.delete(name=leaving.namespace)
        until(lambda: leaving.delete("owner", "ConfigMap", CONFIG_MAP) is None)
