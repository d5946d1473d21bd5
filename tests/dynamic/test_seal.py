"""The seal of a pool in the genuine host, on a real API server: a pool in use is not deleted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from components.account_pool.core.keys import POOL_STATE, UNSEALED
from components.account_pool.seal import PoolSealProvider
from components.labels import TENANT_NAME
from tests.support.cases import tabled
from tests.support.dynamic_host import Host, Properties, dynamic_host
from tests.support.guarded_pool import enforce, lift
from tests.support.members import Members

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient


def sealed(namespace: str, *, allow_destroy: bool = False) -> Properties:
    return {"namespace": namespace, "allowDestroy": allow_destroy}


def refusal(host: Host, inputs: Properties) -> str | None:
    """Delete a seal; why the pool may not go, or None when it may."""
    provider = host.provider(PoolSealProvider())
    try:
        provider.delete(provider.create(inputs))
    except grpc.RpcError as error:
        return str(error.details()).partition("RunError: ")[2]
    return None


@pytest.mark.parametrize("allow_destroy", [False, True])
@tabled("labels, notes, reason")
def test_a_pool_in_use_stays_even_if_it_may_be_thrown_away(
    *,
    host: Host,
    members: Members,
    namespace: str,
    labels: Mapping[str, str],
    notes: Mapping[str, str],
    reason: str,
    allow_destroy: bool,
) -> None:
    members.add("free")
    members.add("m", labels, notes)
    said = str(refusal(host, sealed(namespace, allow_destroy=allow_destroy)))
    assert said.startswith(f"pool {namespace} is in use, nothing of it was deleted")
    assert f"→ m: {reason}" in said
    assert "free: " not in said


def test_a_dirty_account_keeps_a_pool_unless_it_may_be_thrown_away(
    host: Host, members: Members, namespace: str
) -> None:
    members.add("m", {POOL_STATE: "dirty"})
    said = str(refusal(host, sealed(namespace)))
    assert "m: its last tenant's resources may still be in it" in said
    assert f"`credfleet pool clean -n {namespace} --kubeconfig /" in said
    assert refusal(host, sealed(namespace, allow_destroy=True)) is None


def test_a_pool_of_free_owned_and_given_up_accounts_may_go(
    host: Host, members: Members, namespace: str
) -> None:
    members.add("free")
    members.add("owned", {TENANT_NAME: "acme"})
    members.add("given-up", {POOL_STATE: "quarantined"})
    assert refusal(host, sealed(namespace)) is None


def test_credentials_that_no_stack_has_keep_a_pool_unless_it_may_be_thrown_away(
    host: Host, members: Members, namespace: str
) -> None:
    members.add("declared")
    members.add("imported", manager="credfleet")
    members.add("brought", {POOL_STATE: "dirty"}, manager="credfleet")
    said = str(refusal(host, sealed(namespace)))
    assert "→ brought: its last tenant's resources" in said
    assert "→ no stack has the credential of brought, imported, imported or brought" in said
    assert refusal(host, sealed(namespace, allow_destroy=True)) is None


def test_a_pool_whose_namespace_is_gone_may_go(host: Host) -> None:
    assert refusal(host, sealed("never-made")) is None


def test_of_many_accounts_in_use_some_are_named_and_the_rest_counted(
    host: Host, members: Members, namespace: str
) -> None:
    for number in range(7):
        members.add(f"m{number}", {POOL_STATE: "dirty"})
    said = str(refusal(host, sealed(namespace)))
    assert said.count("its last tenant's resources") == 5
    assert "; and 2 more" in said


def test_a_pool_that_cannot_be_seen_stays(host: Host, tmp_path: Path) -> None:
    seal = host.provider(PoolSealProvider()).create(sealed("pool"))
    with (
        dynamic_host({"cluster": {"kubeconfig": str(tmp_path / "none")}}) as blind,
        pytest.raises(grpc.RpcError, match="what is in use is unknown: kubeconfig "),
    ):
        blind.provider(PoolSealProvider()).delete(seal)


def test_a_namespace_may_go_from_the_end_of_its_seal_until_it_has_another(
    host: Host, admin: DynamicClient, namespace: str
) -> None:
    provider = host.provider(PoolSealProvider())
    seal = provider.create(sealed(namespace))
    namespaces: Any = admin.resources.get(api_version="v1", kind="Namespace")

    def unsealed() -> object:
        return (namespaces.get(name=namespace).to_dict()["metadata"].get("annotations") or {}).get(UNSEALED)

    assert unsealed() is None
    provider.delete(seal)
    assert unsealed() == "true"
    provider.create(sealed(namespace))
    assert unsealed() is None


def test_accounts_of_a_pool_that_may_now_be_thrown_away_can_be_deleted_at_once(
    host: Host, admin: DynamicClient, members: Members, namespace: str
) -> None:
    enforce(admin, namespace)
    for number in range(10):
        members.add(f"m{number}", {POOL_STATE: "dirty"})
    provider = host.provider(PoolSealProvider())
    seal = provider.create(sealed(namespace))
    lift(admin, namespace)
    provider.update(seal, sealed(namespace, allow_destroy=True))
    for number in range(10):
        members.remove(f"m{number}")
    assert refusal(host, sealed(namespace)) is None


def test_a_seal_moves_with_its_pool_and_learns_whether_it_may_be_broken(host: Host) -> None:
    provider = host.provider(PoolSealProvider())
    seal = provider.create(sealed("a"))
    assert provider.diff(seal, sealed("b")).replaces == ["namespace"]
    assert not provider.is_changed(seal, sealed("a"))
    assert provider.update(seal, sealed("a", allow_destroy=True)).lasting == sealed("a", allow_destroy=True)
    assert provider.refresh(seal).outputs == seal.outputs
