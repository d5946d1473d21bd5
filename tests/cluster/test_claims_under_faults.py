"""Claims through a network that loses, delays, repeats and refuses: nothing with two owners, nothing lost.

`make prove` has one fault at each call of a claimer; `make test` at every third, at others for each fault.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pulumi_sandbox.services.parts import ADMIN

from components.account_pool.core.calls import Found, Get, Kind, Patch
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.keys import CLAIM_TOKEN
from components.account_pool.core.kubernetes_api import KubernetesApi
from components.account_pool.core.model import ClaimRequest, Member, Policy
from components.account_pool.core.pool import CLAIMS
from components.account_pool.core.pool_operator import PoolOperator
from components.connection import ClusterTarget, connect
from components.labels import HYPERSCALER_TYPE, TENANT_NAME
from sandbox.tests.support.cluster import ROOT
from tests.support import claimers
from tests.support.cases import tabled
from tests.support.claimers import Holding, Report
from tests.support.fault_proxy import Fault, FaultProxy, Once, at_random, running
from tests.support.memory_pool import is_free
from tests.support.proving import counted, tried

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

PROCESSES = 3
ROUNDS = 8
MEMBERS = len(claimers.TENANTS) + 1
MOST_CALLS = 40
SEED = 1
SHARE = 0.2


@pytest.fixture
def proxy(control_plane: ControlPlane, tmp_path: Path) -> Generator[FaultProxy]:
    with running(control_plane.kubeconfig(ADMIN.name), tmp_path) as proxy:
        yield proxy


@pytest.fixture
def behind_proxy(proxy: FaultProxy, namespace: str) -> KubernetesApi:
    """What a claimer sees of the API server."""
    return KubernetesApi(connect(ClusterTarget(kubeconfig=str(proxy.kubeconfig))), namespace, CLAIMS)


@pytest.fixture
def direct(control_plane: ControlPlane, namespace: str) -> PoolOperator:
    """The pool as it is, with nothing in between."""
    target = ClusterTarget(kubeconfig=str(control_plane.kubeconfig(ADMIN.name)))
    return PoolOperator(KubernetesApi(connect(target), namespace, CLAIMS), namespace, PoolConfigMap())


@pytest.fixture
def add_members(admin: DynamicClient, namespace: str) -> Callable[[int], None]:
    def add(number: int) -> None:
        secrets = admin.resources.get(api_version="v1", kind="Secret")
        for n in range(number):
            metadata = {"name": f"aws-{n}", "labels": {HYPERSCALER_TYPE: "aws"}}
            secrets.create(namespace=namespace, body={"metadata": metadata})

    return add


def tell(line: str) -> None:
    print(line)  # noqa: T201 - counts for people, shown by `pytest -rP`


# The proxy itself: what each fault means to the one who writes.


def _patch(api: KubernetesApi, owner: str) -> Patch:
    found = api(Get(Kind.MEMBER, "aws-0"))
    assert isinstance(found, Found)
    version = Member.parse(found.body).resource_version
    metadata = {"resourceVersion": version, "labels": {TENANT_NAME: owner}}
    return Patch(Kind.MEMBER, "aws-0", {"metadata": metadata})


@tabled("fault, answer, is_done")
def test_what_a_writer_is_told_of_a_fault_and_whether_it_was_done(
    *,
    fault: str,
    answer: str,
    is_done: bool,
    proxy: FaultProxy,
    behind_proxy: KubernetesApi,
    direct: PoolOperator,
    add_members: Callable[[int], None],
):
    add_members(1)
    patch = _patch(behind_proxy, "ada")
    proxy.restart_plan(Once(0, Fault(fault)))
    assert type(behind_proxy(patch)).__name__ == answer
    proxy.settle()
    seen = direct.member("aws-0")
    assert seen is not None
    assert (seen.tenant == "ada") is is_done
    assert proxy.counts() == {Fault(fault): 1}


# One claimer, and one fault at each of its calls in turn.


STEP = counted(3, 1)
ONCE = (Fault.LOST, Fault.LATE, Fault.TWICE, Fault.CONFLICT, Fault.BUSY, Fault.BROKEN)


@pytest.mark.parametrize("fault", ONCE)
def test_one_fault_at_any_call_changes_nothing_of_what_a_claimer_gets(
    *,
    fault: Fault,
    proxy: FaultProxy,
    behind_proxy: KubernetesApi,
    direct: PoolOperator,
    namespace: str,
    add_members: Callable[[int], None],
):
    add_members(MOST_CALLS)
    pool = PoolOperator(behind_proxy, namespace, PoolConfigMap(policy=Policy.RELEASE))
    number = 0
    for number in range(ONCE.index(fault) % STEP, MOST_CALLS, STEP):
        plan = Once(number, fault)
        proxy.restart_plan(plan)
        request = ClaimRequest(f"tenant-{number}", "aws")
        claimed = pool.claim(request)
        again = pool.claim(request)
        assert (again.secret_name, again.reused) == (claimed.secret_name, True)
        for seen_by in (pool, direct):
            read = seen_by.read(claimed.record, claimed.holder, member=claimed.secret_name)
            assert read is not None
            assert read.secret_name == claimed.secret_name
        pool.release(claimed.record, claimed.holder)
        pool.flush()
        if not plan.met:
            break
    proxy.settle()
    direct.sweep(settle_seconds=0, most=MOST_CALLS)
    tell(f"{fault}: survived at calls up to {number} of claim, claim again, read and release")
    tried("calls of a claimer that one fault hits", number // STEP)
    assert 10 <= number < MOST_CALLS - STEP
    assert direct.records() == ()
    assert all(is_free(member) for member in direct.members())


# Several processes, and faults at random.


def run_claimers(kubeconfig: Path, namespace: str) -> list[Report]:
    """Run the processes side by side, each to its end."""
    command = [sys.executable, "-m", "tests.support.claimers", str(kubeconfig), namespace]
    processes = [
        subprocess.Popen(
            [*command, f"p{n}", str(SEED), str(ROUNDS)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for n in range(PROCESSES)
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES
    return [Report.parse(output) for output in outputs]


def doubly_owned(holdings: Sequence[Holding]) -> list[tuple[Holding, Holding]]:
    """Two holdings at one time: of two tenants on one account, or of one tenant on two."""
    return [
        (one, other)
        for one, other in combinations(holdings, 2)
        if one.overlaps(other) and (one.tenant == other.tenant) != (one.member == other.member)
    ]


def test_the_check_for_double_ownership_finds_both_kinds():
    ada, bob = Holding("ada", "h", "aws-0", 0, 2), Holding("bob", "h", "aws-0", 1, 3)
    elsewhere, later = Holding("ada", "h", "aws-1", 1, 3), Holding("bob", "h", "aws-0", 2, 3)
    assert doubly_owned([ada, bob]) == [(ada, bob)]
    assert doubly_owned([ada, elsewhere]) == [(ada, elsewhere)]
    assert doubly_owned([ada, later]) == []


def test_processes_on_a_failing_network_never_share_or_lose_an_account(
    proxy: FaultProxy, direct: PoolOperator, namespace: str, add_members: Callable[[int], None]
):
    add_members(MEMBERS)
    proxy.restart_plan(at_random(SEED, SHARE))
    reports = run_claimers(proxy.kubeconfig, namespace)
    proxy.settle()
    faults = proxy.counts()
    holdings = [holding for report in reports for holding in report.holdings]
    done = sum((report.counts for report in reports), Counter[str]())
    tell(f"{PROCESSES} processes: {', '.join(f'{n} {what}' for what, n in done.most_common())}")
    tell(f"{faults.total()} calls: {', '.join(f'{n} {fault}' for fault, n in faults.most_common())}")

    assert [wrong for report in reports for wrong in report.wrong] == []
    assert doubly_owned(holdings) == []
    assert set(faults) == set(Fault)
    left = [member for member in direct.members() if CLAIM_TOKEN in member.annotations]
    swept = direct.sweep(settle_seconds=0, most=MEMBERS)
    tell(f"left to the sweep: {len(left)} accounts; {len(swept.freed)} freed, {len(swept.aborted)} aborted")
    assert direct.records() == ()
    assert all(is_free(member) for member in direct.members())
