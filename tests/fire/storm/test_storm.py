"""Many stacks update side by side on one pool and are killed: watched from outside, no promise is broken.

Cleaners are killed beside them, and namespaces are deleted. At full size, where CREDFLEET_PROVE is set, it is
40 stacks, 8 runs at a time, and at least 100 kills. It proves nothing of a pool in another cluster.
"""

from __future__ import annotations

import json
import random
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.client import ApiException
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN

from components.account_pool.core.keys import POOL_STATE
from components.account_pool.core.pool_operator import PoolOperator
from components.connection import ClusterTarget
from tests.fire.storm import wipe as wiping
from tests.fire.storm.history import WIPED, Change, History, changes_in
from tests.program.conftest import CREDENTIALS, pool_of, tenant_of
from tests.support.fleet_project import CREDFLEET, ROOT, FleetProject, Ran
from tests.support.members import Members
from tests.support.proving import counted, tried
from tests.support.watching import watched

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

STACKS, SIDE_BY_SIDE, ACCOUNTS, KILLS = counted(4, 40), 8, counted(10, 110), counted(6, 100)
CONSUMERS, QUOTA = counted(1, 10), 7
WRITES = 40
"""Of the state, by an update that nobody kills: about as many."""
LONGEST = 12
"""An update is killed within so many times what one alone takes, if not before by its writes."""


def record(phase: str, member: str, tenant: str = "a", holder: str = "pulumi/o/p/s/a/0") -> Mapping[str, Any]:
    said = {
        "phase": phase,
        "member": member,
        "tenant": tenant,
        "slot": "0",
        "partition": "aws",
        "attempt": "1",
    }
    return {"uid": "u", "data": {**said, "holders": json.dumps({holder: 1})}}


def carrying(token: str) -> Mapping[str, Any]:
    return {"annotations": {"credfleet.io/claim-token": token}}


WELL = [
    Change(1, "secrets", "m", carrying("r.u.1")),
    Change(2, "configmaps", "r", record("Bound", "m")),
    Change(3, "configmaps", "r", record("Releasing", "m")),
    Change(4, "secrets", "m", {}),
    Change(5, "configmaps", f"{WIPED}m", {}),
    Change(6, "secrets", "m", carrying("s.u.1")),
    Change(7, "configmaps", "s", record("Bound", "m", "b")),
]
HISTORIES: Mapping[str, tuple[list[Change], str]] = {
    "all is well": (WELL, ""),
    "a token that went": ([*WELL[:2], Change(3, "secrets", "m", {})], "does not carry the claim"),
    "bound before it is carried": (WELL[1:2], "does not carry the claim"),
    "wiped in use": ([*WELL[:2], Change(3, "configmaps", f"{WIPED}m", {})], "is wiped while it carries"),
    "two owners": ([*WELL[:2], Change(3, "configmaps", "s", record("Bound", "m", "b"))], "has two owners"),
    "two accounts": ([*WELL[:2], Change(3, "configmaps", "s", record("Bound", "n"))], "has two accounts"),
    "above the quota": (
        [
            *WELL[:2],
            Change(3, "secrets", "n", carrying("s.u.1")),
            Change(4, "configmaps", "s", record("Bound", "n", "b")),
        ],
        "has 2 accounts, and may have 1",
    ),
}


@pytest.mark.parametrize(("changes", "wrong"), HISTORIES.values(), ids=HISTORIES)
def test_what_is_wrong_at_any_instant_is_seen_in_the_order_of_the_changes(
    changes: list[Change], wrong: str
) -> None:
    watched = [[one for one in changes if one.kind == kind] for kind in ("secrets", "configmaps")]
    found = History({"pulumi/o/p": 1}).replay(*watched).wrong
    assert any(wrong in each for each in found) if wrong else not found


class Storm:
    """Stacks that claim from one pool: each for two tenants of its own, and one that its neighbour names."""

    admin: DynamicClient

    def __init__(
        self, pool: FleetProject, folder: Path, seed: int, stacks: int = STACKS, kills: int = KILLS
    ) -> None:
        self.chance, self.pool, self.kills = random.Random(seed), pool, kills
        self.stacks = [pool.consumer(folder / f"team{n % CONSUMERS}-{n}") for n in range(stacks)]
        self.ended: Counter[str] = Counter()

    @property
    def where(self) -> Sequence[str]:
        """Which pool a command is for."""
        kubeconfig = str(self.pool.kubeconfig)
        return ("-n", self.pool.pool, "--kubeconfig", kubeconfig, "--stack", self.pool.stack)

    def namespace(self, number: int, tenant: str) -> str:
        """Return the namespace that a stack has for a tenant."""
        return f"{self.pool.pool}-{number}-{tenant}"

    def wanted(self, number: int, *, whole: bool) -> Mapping[str, Any]:
        """Return the tenants of a stack: all of them, or some."""
        names = [f"own{number}a", f"own{number}b", f"pair{number // 2}"]
        kept = names if whole else [name for name in names if self.chance.random() < 0.7]
        return {
            name: {"namespace": self.namespace(number, name), "accounts": {"aws": {"type": "aws"}}}
            for name in kept
        }

    def configure(self, number: int, *, whole: bool) -> None:
        """Write what a stack wants next."""
        tenants = self.wanted(number, whole=whole)
        pool, further = {"from": {"namespace": self.pool.pool}}, {"credfleet:allowRemovals": True}
        self.stacks[number].configure(credentials={}, tenants=tenants, pool=pool, further=further)

    def run(self, longest: float) -> None:
        """Update stacks side by side until so much was killed."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            while self.ended["were killed"] < self.kills:
                for number in range(len(self.stacks)):
                    self.configure(number, whole=False)
                strikes = [*self.strikes(longest)]
                begun = [pool.submit(each) for each in self.chance.sample(strikes, len(strikes))]
                self.disturb(begun)
                for code in (each.result() for each in begun):
                    self.ended["were killed" if code < 0 else f"ended with {code}"] += 1

    def strikes(self, longest: float) -> Iterator[Callable[[], int]]:
        """Yield what is done side by side, to be killed: an update of each stack, and runs of cleaners."""
        for stack in self.stacks:
            yield partial(updated, stack, self.chance.randrange(1, WRITES), self.chance.uniform(0, longest))
        for number in range(len(self.stacks) // 2):
            words = ("clean", "--cleaner", f"storm-{number % 3}", "--at-once", "4")
            yield partial(self.operate, *words, within=self.chance.uniform(0, longest))

    def disturb(self, begun: Sequence[Future[int]]) -> None:
        """Delete namespaces of tenants in the midst of it, and try to delete the pool's."""
        begun[len(begun) // 4].result()
        namespaces = self.admin.resources.get(api_version="v1", kind="Namespace")
        here = f"{self.pool.pool}-"
        names = [one.metadata.name for one in namespaces.get().items if one.metadata.name.startswith(here)]
        for name in self.chance.sample(names, len(names) // 4):
            tried("namespaces of tenants that were deleted among updates")
            with suppress(ApiException):  # its stack was faster
                namespaces.delete(name=name)
        with pytest.raises(ApiException, match="namespace-deleted"):
            namespaces.delete(name=self.pool.pool)
        tried("deletions of the pool's namespace that the API server refused")

    def operate(self, *words: str, within: float | None = None) -> int:
        """Run a command of the pool, and kill it when its time is over; return its exit code."""
        folder, environment = self.pool.folder, self.pool.environment
        command = [CREDFLEET, "pool", *words, *self.where, "--yes"]
        with (
            (folder / "operated.txt").open("a") as to,
            subprocess.Popen(command, cwd=folder, env=environment, stdout=to, stderr=to) as run,
        ):
            try:
                return run.wait(within)
            except subprocess.TimeoutExpired:
                run.kill()
                return run.wait()

    def settle(self) -> None:
        """Let each stack have all that it wants, once it knows what it has, and kill nothing any more."""
        for number in range(len(self.stacks)):
            self.configure(number, whole=True)
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for ran in pool.map(_looked_and_updated, self.stacks):
                ran.quiet()


def updated(stack: FleetProject, writes: int, seconds: float) -> int:
    """Update a stack until it is through, or killed; return its exit code."""
    ran = stack.up_within(writes, seconds)
    return ran.quiet(ran.code).code


def _looked_and_updated(stack: FleetProject) -> Ran:
    """Update a stack after a refresh: a release may have been under way when an update was killed."""
    looked = stack.refresh("--clear-pending-creates")
    return stack.up() if looked.code == 0 else looked


def believed(stack: FleetProject) -> Iterator[tuple[str, str]]:
    """Yield which account a stack has by its state, behind the holder."""
    for state in (stack.folder / ".sandbox" / "backend").glob(".pulumi/stacks/*/*.json"):
        for resource in json.loads(state.read_text(encoding="utf-8"))["checkpoint"]["latest"]["resources"]:
            had = resource.get("outputs") or {}
            if resource["type"].endswith(":AccountClaim") and had.get("secretName"):
                yield had["holder"], had["secretName"]


@pytest.mark.life
def test_no_promise_is_broken_at_any_instant_while_stacks_update_side_by_side_and_all_is_killed(
    tmp_path: Path, control_plane: ControlPlane, admin: DynamicClient
) -> None:
    seed = random.randrange(1 << 32)
    pool = FleetProject.make(
        tmp_path / "pool", control_plane.kubeconfig(ADMIN.name), f"t{secrets.token_hex(4)}"
    )
    named = {
        f"team{n}": {
            "holders": [f"pulumi/organization/team{n}-{stack}" for stack in range(n, STACKS, CONSUMERS)],
            "quotas": {"aws": QUOTA},
        }
        for n in range(CONSUMERS)
    }
    named["owner"] = {"holders": ["pulumi/organization/credfleet"], "quotas": {"aws": 1}}
    wipe = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", wiping.__name__, pool.pool]
    few = pool_of(1, 2, 3)
    declared = {**few, "consumers": named, "cleaning": {"aws": wipe}, "admissionPolicy": True}
    owner = {"owner": tenant_of(pool, "owner")}
    pool.configure(credentials=CREDENTIALS, tenants=owner, pool={**declared, "allowDestroy": False})
    pool.up().quiet()
    members = Members(admin, pool.pool)
    names = [f"account-{n}" for n in range(ACCOUNTS - 3)]
    steps = admin.resources.get(api_version="v1", kind="ConfigMap")
    for name in (*names, *few["members"]):
        steps.create(namespace=pool.pool, body={"metadata": {"name": f"{WIPED}{name}"}})
    with ThreadPoolExecutor(SIDE_BY_SIDE) as makers:
        list(makers.map(members.add, names, cycle(({POOL_STATE: "dirty"}, {}))))

    storm = Storm(pool, tmp_path, seed)
    storm.admin = admin
    seen = tmp_path / "seen"
    seen.mkdir()
    with watched(pool, seen, members, admin):
        storm.configure(0, whole=True)
        began = time.monotonic()
        storm.stacks[0].up().quiet()
        storm.run(longest=LONGEST * (time.monotonic() - began))
        assert storm.operate("clean", "--at-once", "8") == 0
        storm.settle()

    history = History({f"pulumi/organization/team{n}-": QUOTA for n in range(CONSUMERS)})
    history.replay(*(changes_in(seen / kind) for kind in ("secrets", "configmaps")))
    assert history.wrong == [], f"seed {seed}"
    assert set(history.most.values()) == {QUOTA}
    here = PoolOperator.open(ClusterTarget(context=None, kubeconfig=str(pool.kubeconfig)), pool.pool)
    here.sweep(most=ACCOUNTS)
    held = {holder: record.member for record in here.records() for holder in record.holders}
    assert dict(each for stack in (pool, *storm.stacks) for each in believed(stack)) == held
    left = here.sweep(dry_run=True)
    assert (left.freed, left.withheld, left.finished, left.aborted) == ((), (), (), ())
    for stack in storm.stacks[:CONSUMERS]:
        stack.preview("--expect-no-changes").quiet()
    pool.preview("--expect-no-changes").quiet()
    for what, count in storm.ended.items():
        tried(f"updates and cleaners side by side that {what}", count)
    tried("changes of the pool that the watcher saw", history.changes)
    tried("claims that were bound", history.bound)
    tried("steps of wipes", history.wiped)
    tried("accounts that consumers with quotas had at the end", history.having)
