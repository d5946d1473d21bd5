"""A pool of many pages: what a claim costs in calls and bytes, and that it never sees a credential.

`python -m benchmarks claims --full` measures it with 10,000, which take half a minute to make.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from pulumi_sandbox.services.parts import ADMIN

from benchmarks.large_pools import CREDENTIAL, TYPE, make_pool
from components.account_pool.core.calls import PAGE_SIZE
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.kubernetes_api import KubernetesApi
from components.account_pool.core.model import ClaimRequest, Policy
from components.account_pool.core.pool import CLAIMS
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.records import Claimed
from components.connection import ClusterTarget, connect
from tests.support.fault_proxy import Exchange, FaultProxy, nothing, running
from tests.support.memory_pool import is_free

if TYPE_CHECKING:
    from pulumi_sandbox.services.control_plane import ControlPlane

MEMBERS = 2_500
TENANTS = 30
BYTES_PER_LISTED_MEMBER = 600


@pytest.fixture(scope="module")
def proxy(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Generator[FaultProxy]:
    """It changes nothing, and notes every answer."""
    with running(control_plane.kubeconfig(ADMIN.name), tmp_path_factory.mktemp("proxy")) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def large_pool(control_plane: ControlPlane, proxy: FaultProxy) -> PoolOperator:
    """One for all tests of this file: each gives back what it takes. It looked once if it may give any.

    Its clock stands still, or it would look again for a hold wherever a second passes between two calls.
    """
    namespace = f"test-large-{secrets.token_hex(4)}"
    make_pool(control_plane.kubeconfig(ADMIN.name), namespace, MEMBERS)
    api = KubernetesApi(connect(ClusterTarget(kubeconfig=str(proxy.kubeconfig))), namespace, CLAIMS)
    pool = PoolOperator(api, namespace, PoolConfigMap(policy=Policy.RELEASE), clock=lambda: 0.0)
    first = pool.claim(ClaimRequest("eve", TYPE))
    pool.release(first.record, first.holder)
    return pool


@pytest.fixture
def seen_during(
    proxy: FaultProxy, large_pool: PoolOperator
) -> Callable[[Callable[[], object]], Sequence[Exchange]]:
    """Do something with the pool, and give what went over the wire, its Events included."""

    def watch(work: Callable[[], object]) -> Sequence[Exchange]:
        assert large_pool.flush(10)
        proxy.restart_plan(nothing)
        work()
        assert large_pool.flush(10)
        return tuple(proxy.exchanges)

    return watch


def calls(exchanges: Sequence[Exchange]) -> Counter[str]:
    """Count them as `METHOD kind`, a LIST as such."""

    def name(exchange: Exchange) -> str:
        path, _, query = exchange.path.partition("?")
        is_list = exchange.method == "GET" and "labelSelector" in query
        return f"{'LIST' if is_list else exchange.method} {path.split('/')[5]}"

    return Counter(map(name, exchanges))


def received(exchanges: Sequence[Exchange]) -> int:
    return sum(len(exchange.answer) for exchange in exchanges)


def test_a_claim_costs_the_same_calls_in_a_large_pool_as_in_a_small_one(
    large_pool: PoolOperator, seen_during: Callable[[Callable[[], object]], Sequence[Exchange]]
):
    request = ClaimRequest("ada", TYPE)
    first = seen_during(lambda: large_pool.claim(request))
    again = seen_during(lambda: large_pool.claim(request))
    claimed = large_pool.claim(request)
    read = seen_during(lambda: large_pool.read(claimed.record, claimed.holder, member=claimed.secret_name))
    released = seen_during(lambda: large_pool.release(claimed.record, claimed.holder))
    records = {"GET configmaps": 1, "PUT configmaps": 1}
    event = {"POST events": 1}
    assert calls(first) == {
        "LIST secrets": 2,
        "POST configmaps": 1,
        "PATCH secrets": 1,
        **records,
        **event,
    }
    assert received(first) < PAGE_SIZE * BYTES_PER_LISTED_MEMBER
    assert calls(again) == {"GET secrets": 1, **records, **event}
    assert calls(read) == {"GET configmaps": 1, "GET secrets": 1}
    assert calls(released) == {
        "GET secrets": 1,
        "PATCH secrets": 1,
        "DELETE configmaps": 1,
        **records,
        **event,
    }


def test_the_pool_as_a_whole_is_read_in_pages_and_without_credentials(
    large_pool: PoolOperator, seen_during: Callable[[Callable[[], object]], Sequence[Exchange]]
):
    exchanges = seen_during(lambda: large_pool.sweep(dry_run=True))
    assert calls(exchanges) == {"LIST secrets": MEMBERS / PAGE_SIZE, "LIST configmaps": 1}
    assert all(CREDENTIAL[:24].encode() not in exchange.answer for exchange in exchanges)
    assert len(large_pool.members()) == MEMBERS


def test_tenants_that_claim_at_once_in_a_large_pool_hardly_meet(
    large_pool: PoolOperator, seen_during: Callable[[Callable[[], object]], Sequence[Exchange]]
):
    requests = [ClaimRequest(f"tenant-{number}", TYPE) for number in range(TENANTS)]
    claims: list[Claimed] = []
    with ThreadPoolExecutor(TENANTS) as threads:
        exchanges = seen_during(lambda: claims.extend(threads.map(large_pool.claim, requests)))
    for claimed in claims:
        large_pool.release(claimed.record, claimed.holder)
    counted = calls(exchanges)
    conflicts = sum(exchange.status == 409 for exchange in exchanges)
    tell(f"{TENANTS} tenants at once: {conflicts} conflicts, {counted['LIST secrets']} lists")
    assert len({claimed.secret_name for claimed in claims}) == TENANTS
    assert counted["LIST secrets"] <= 2 * TENANTS
    assert all(is_free(member) for member in large_pool.members())


def tell(line: str) -> None:
    print(line)  # noqa: T201 - figures for people, shown by `pytest -rP`
