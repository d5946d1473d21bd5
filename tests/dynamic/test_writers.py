"""What all classes that write something have in common, in the genuine host of dynamic providers.

A replacement with the same inputs (`pulumi up --replace`, `--target-replace`, `pulumi state taint`) asks no
diff: the engine creates the new half first, and deletes the old half last.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from components.account_pool.member_secret import MemberSecretProvider
from components.account_pool.provider import AccountClaimProvider
from components.account_pool.seal import PoolSealProvider
from components.dynamic import INCARNATION as OUTPUT
from components.dynamic import DynamicProvider
from components.projection.model import INCARNATION
from components.projection.provider import SecretProjectionProvider
from components.pull_secret.provider import (
    PullSecretCopyProvider,
    PullSecretRetentionProvider,
    PullSecretStartProvider,
)
from components.secret_stores.provider import SecretPushProvider
from components.service_credentials.provider import (
    ServiceMigrationProvider,
    ServiceSecretProvider,
    WorkloadBindingProvider,
)
from sandbox.tests.support.clouds import Served
from tests.dynamic.test_frozen_paths import providers
from tests.support.dynamic_host import Host, Recorded, dynamic_host
from tests.support.fault_proxy import OF_READS, OF_WRITES, Fault, FaultProxy, Plan, running
from tests.support.proving import counted
from tests.support.written import CASES, World

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

CARRYING = [kind for kind, case in CASES.items() if case.carries]
COPIES = [kind for kind in CARRYING if "digest" in kind.outputs]


@pytest.fixture(scope="module")
def config(control_plane: ControlPlane, google: Served, hyperfleet: Served) -> Mapping[str, Any]:
    return {
        "cluster": {"kubeconfig": str(control_plane.kubeconfig("admin"))},
        "gcp:secretManagerCustomEndpoint": f"{google.url}/v1/",
        "gcp:accessToken": "any",
        "pullSecrets": {"hyperfleet": {"apiUrl": hyperfleet.url}},
    }


@pytest.fixture(scope="module")
def host(config: Mapping[str, Any]) -> Generator[Host]:
    with dynamic_host(config) as host:
        yield host


@pytest.fixture(scope="module")
def later(config: Mapping[str, Any]) -> Generator[Host]:
    """The host of another run."""
    with dynamic_host(config) as host:
        yield host


@pytest.fixture(scope="module")
def proxy(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Generator[FaultProxy]:
    with running(control_plane.kubeconfig("admin"), tmp_path_factory.mktemp("proxy")) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def disturbed(config: Mapping[str, Any], proxy: FaultProxy) -> Generator[Host]:
    """A host whose calls to the API server go through the proxy."""
    with dynamic_host({**config, "cluster": {"kubeconfig": str(proxy.kubeconfig)}}) as host:
        yield host


@pytest.fixture
def world(admin: DynamicClient, namespace: str, google: Served, hyperfleet: Served) -> World:
    return World(admin, namespace, google, hyperfleet)


def of_earlier_version(made: Recorded, world: World) -> Recorded:
    """Return a resource as a version without incarnations has created it."""
    if "made" in world.secrets.names():
        world.secrets.annotate("made", {INCARNATION: None})
    return replace(made, outputs={key: each for key, each in made.outputs.items() if key != OUTPUT})


LABELLED = (MemberSecretProvider, PullSecretCopyProvider, ServiceMigrationProvider)


def _unlabel(world: World) -> None:
    world.secrets.mark("made", dict.fromkeys(world.secrets.live("made")["metadata"].get("labels") or ()))


def _change_value(world: World) -> None:
    world.secrets.change("made", next(iter(world.secrets.data("made"))), "{}")


def _unmount(world: World) -> None:
    mounts = [{"op": "remove", "path": "/spec/template/spec/containers/0/volumeMounts"}]
    where = {"name": "shop", "namespace": world.namespace, "content_type": "application/json-patch+json"}
    world.api("apps/v1", "Deployment").patch(body=mounts, **where)


TAKEN_AWAY: Mapping[tuple[type[DynamicProvider], str], Callable[[World], object]] = {
    **{(kind, "object"): lambda world: world.secrets.remove("made") for kind in COPIES},
    **{(kind, "value"): _change_value for kind in COPIES},
    **{(kind, "labels"): _unlabel for kind in LABELLED},
    (SecretPushProvider, "object"): lambda world: world.others.remove("pushed"),
    (SecretPushProvider, "value"): lambda world: world.others.change("pushed", "password", "y"),
    (WorkloadBindingProvider, "mounts"): _unmount,
}
NOT_MENDED = {
    AccountClaimProvider: "what was taken may be in use: the claim forecast says that the account is lost",
    PoolSealProvider: "it writes a mark when it goes, not before",
    PullSecretRetentionProvider: "it changes versions when it goes, not before",
    PullSecretStartProvider: "HyperFleet keeps reports as long as the cluster",
}
"""What is not given back when it was taken away by hand, and why."""


def test_everything_of_a_class_is_taken_away_or_there_is_a_reason_why_not() -> None:
    assert {kind for kind, _ in TAKEN_AWAY} | NOT_MENDED.keys() == CASES.keys()


@pytest.mark.parametrize(("kind", "what"), TAKEN_AWAY)
def test_what_was_taken_away_is_told_by_preview_and_refresh_and_given_back_by_an_update(
    kind: type[DynamicProvider], what: str, host: Host, world: World
) -> None:
    case, provider = CASES[kind], host.provider(kind())
    given = case.given(world)
    made = provider.create(given)
    before = case.shown(world)
    TAKEN_AWAY[kind, what](world)
    assert case.shown(world) != before
    assert provider.is_changed(made, given)
    is_told = provider.refresh(made) != made
    assert is_told or (kind, what) == (SecretPushProvider, "value")  # its digest is of what is pushed
    updated = provider.update(made, given)
    assert case.shown(world) == before
    assert not provider.is_changed(updated, given)
    assert provider.refresh(updated) == updated


def test_cases_are_all_classes_that_remove_something() -> None:
    removing = {
        kind
        for kind in providers().values()
        if issubclass(kind, DynamicProvider) and kind.delete_resource is not DynamicProvider.delete_resource
    }
    assert set(CASES) == removing


@pytest.mark.parametrize("kind", CASES)
def test_replacement_with_same_inputs_keeps_what_is_written(
    kind: type[DynamicProvider], host: Host, world: World
) -> None:
    case, provider = CASES[kind], host.provider(kind())
    given = case.given(world)
    old = provider.create(given)
    before = case.shown(world)
    new = provider.create(given)
    provider.delete(old)
    assert case.shown(world) == before
    assert provider.refresh(new).id == new.id == old.id
    assert not provider.is_changed(new, given)


@pytest.mark.parametrize("kind", CARRYING)
def test_old_half_deleted_by_later_run_keeps_what_is_written(
    kind: type[DynamicProvider], host: Host, later: Host, world: World
) -> None:
    case, provider = CASES[kind], host.provider(kind())
    given = case.given(world)
    old, new = provider.create(given), provider.create(given)
    before = case.shown(world)
    later.provider(kind()).delete(old)
    assert case.shown(world) == before
    provider.delete(new)
    assert before != case.shown(world)


@pytest.mark.parametrize("kind", CARRYING)
def test_old_half_of_earlier_version_keeps_what_replacement_wrote(
    kind: type[DynamicProvider], host: Host, later: Host, world: World
) -> None:
    case, provider = CASES[kind], host.provider(kind())
    given = case.given(world)
    old = of_earlier_version(provider.create(given), world)
    provider.create(given)
    before = case.shown(world)
    later.provider(kind()).delete(old)
    assert case.shown(world) == before


@pytest.mark.parametrize("kind", CARRYING)
def test_resource_of_earlier_version_is_updated_and_deleted(
    kind: type[DynamicProvider], host: Host, later: Host, world: World
) -> None:
    case, provider = CASES[kind], later.provider(kind())
    given = case.given(world)
    old = of_earlier_version(host.provider(kind()).create(given), world)
    before = case.shown(world)
    assert not provider.is_changed(old, given)
    updated = provider.update(old, given)
    assert case.shown(world) == before
    provider.delete(updated)
    assert before != case.shown(world)


@pytest.mark.parametrize("kind", COPIES)
def test_copy_of_replacement_that_no_state_knows_is_taken_back_by_next_update(
    kind: type[DynamicProvider], host: Host, later: Host, world: World
) -> None:
    case, provider = CASES[kind], later.provider(kind())
    given = case.given(world)
    old = host.provider(kind()).create(given)
    host.provider(kind()).create(given)  # and the CLI is killed before it writes its state
    assert provider.is_changed(old, given)
    updated = provider.update(old, given)
    assert not provider.is_changed(updated, given)
    provider.delete(updated)
    assert "made" not in world.secrets.names()


def passing_faults(seed: int, share: float) -> Plan:
    """Let the first request, and this share of all others, meet a fault that passes by itself."""

    def plan(number: int, method: str) -> Fault:
        random = Random(f"{seed}/{number}")
        possible = OF_READS if method == "GET" else [each for each in OF_WRITES if each is not Fault.CONFLICT]
        return random.choice(possible) if number == 0 or random.random() < share else Fault.NONE

    return plan


@pytest.mark.life
@pytest.mark.parametrize("seed", range(counted(1, 5)))
@pytest.mark.parametrize("kind", CASES)
def test_faults_that_pass_fail_nothing(
    kind: type[DynamicProvider], seed: int, disturbed: Host, proxy: FaultProxy, world: World
) -> None:
    case, provider = CASES[kind], disturbed.provider(kind())
    given = case.given(world)
    proxy.restart_plan(passing_faults(seed, 0.3))
    made = provider.create(given)
    proxy.settle()
    before = case.shown(world)
    assert not provider.is_changed(made, given)
    updated = provider.update(made, given)
    assert provider.refresh(updated).outputs == updated.outputs
    assert case.shown(world) == before
    if kind is PoolSealProvider:
        with pytest.raises(grpc.RpcError, match="is in use, nothing of it was deleted"):
            provider.delete(updated)
    else:
        provider.delete(updated)
        proxy.settle()
        assert before != case.shown(world)
    assert case.calls_cluster is any(proxy.counts()[each] for each in Fault if each is not Fault.NONE)


@pytest.mark.parametrize("kind", [SecretProjectionProvider, ServiceSecretProvider, PullSecretCopyProvider])
@pytest.mark.parametrize("is_going", [False, True], ids=["gone", "going"])
def test_create_without_namespace_names_command_that_converges(
    kind: type[DynamicProvider], is_going: bool, host: Host, world: World
) -> None:
    if is_going:
        world.let_go()
    namespace = world.going if is_going else world.gone
    key = "targetNamespace" if kind is SecretProjectionProvider else "namespace"
    with pytest.raises(grpc.RpcError) as refused:
        host.provider(kind()).create({**CASES[kind].given(world), key: namespace})
    told = str(refused.value.details())
    assert (
        f"namespace-gone: Secret {namespace}/made: namespace {namespace} is gone, or is being deleted" in told
    )
    assert "pulumi up --refresh --stack s" in told


@pytest.mark.parametrize("is_going", [False, True], ids=["gone", "going"])
def test_account_created_without_namespace_advises_no_refresh(
    is_going: bool, host: Host, world: World
) -> None:
    if is_going:
        world.let_go()
    given = {**CASES[MemberSecretProvider].given(world), "namespace": world.going if is_going else world.gone}
    with pytest.raises(grpc.RpcError, match="create it again with what was in it") as refused:
        host.provider(MemberSecretProvider()).create(given)
    assert "--refresh" not in str(refused.value.details())
