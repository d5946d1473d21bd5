"""Claims of many processes, written down call by call, and judged by porcupine against a specification.

Behind a proxy that loses, delays, repeats and refuses; processes are killed and stopped in the middle. In
`make prove WHAT=fire` the API server and its store are killed and paused as well. What a slot has and who
has an account must be explained by some order of the calls. Clocks of clients are not set: nothing a claim
does reads them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

import pytest
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN, Part

from components.labels import HYPERSCALER_TYPE
from sandbox.tests.support.cluster import ROOT, client_for
from tests.fire.claims.claimer import ACCOUNTS
from tests.fire.claims.history import ENDS, Judgement, Operation, judge, operations_in
from tests.fire.conftest import restarted
from tests.support.fault_proxy import FaultProxy, at_random, running
from tests.support.proving import PROVES, counted, tried

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

pytestmark = pytest.mark.built

OPERATIONS: Final = counted(300, 100_000)
EVENTS: Final = counted(3, 120)
POOLS: Final = counted(1, 100)
"""A history that is short is judged fast: the crowd goes on to another pool after so many operations."""
PROCESSES: Final = 3
SLOTS: Final = counted(2, 4)
SHARE: Final = 0.03
SEED: Final = 1


def judged(operations: Iterator[Operation] | list[Operation], folder: Path) -> Judgement:
    try:
        return judge(operations, folder, offline=not PROVES)
    except SandboxError as error:
        if PROVES:
            raise
        pytest.skip(f"porcupine is not built, nothing is fetched here ({error.code}): make prove WHAT=fire")


@pytest.mark.parametrize(
    ("calls", "wrong"),
    [
        ([("a", 1, 5, "m"), ("b", 6, 9, "n")], []),
        ([("a", 1, 5, "m"), ("b", 2, 6, "m")], ["account m"]),
        ([("a", 1, 5, "m"), ("a", 6, 9, "n")], ["slot a"]),
    ],
    ids=["one each", "two on one account", "one with two accounts"],
)
def test_the_judge_finds_both_kinds_of_a_double_claim(
    calls: list[tuple[str, int, int, str]], wrong: list[str], tmp_path: Path
) -> None:
    history = [
        Operation(n, "claim", on, to, "ok", slot, "h", 1, "release", m)
        for n, (slot, on, to, m) in enumerate(calls)
    ]
    judgement = judged(history, tmp_path)
    assert [part["of"] for part in judgement.wrong] == wrong
    assert len([*tmp_path.glob("*.html")]) == len(wrong)


@dataclass
class Crowd:
    """Processes of claimers, each with slots of its own: whichever ends too early begins again."""

    command: list[str]
    folder: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict[str, "subprocess.Popen[bytes]"])
    begun: int = 0
    answered: int = 0
    read: dict[Path, int] = field(default_factory=dict["Path", int])

    def tend(self) -> None:
        for name in (f"p{n}" for n in range(PROCESSES)):
            if name not in self.running or self.running[name].poll() is not None:
                self.begun += 1
                command = [*self.command, str(self.folder), name, str(SLOTS), f"{SEED}/{self.begun}"]
                with (self.folder / f"{name}.log").open("ab") as log:
                    self.running[name] = subprocess.Popen(command, cwd=ROOT, stderr=log)

    def answers(self) -> int:
        """Count the answers so far, and let the crowd go on to another pool where it is time."""
        for path in self.folder.glob("*.jsonl"):
            with path.open("rb") as file:
                file.seek(self.read.get(path, 0))
                new = file.read()
            self.read[path] = self.read.get(path, 0) + len(new)
            self.answered += new.count(b'"end"')
        self.move_to(min(self.answered * POOLS // OPERATIONS, POOLS - 1))
        return self.answered

    def move_to(self, pool: int) -> None:
        told = self.folder / "pool"
        if not told.exists() or told.read_text() != str(pool):
            (self.folder / "next").write_text(str(pool))
            (self.folder / "next").rename(told)

    def signal(self, number: signal.Signals, name: str) -> None:
        self.running[name].send_signal(number)

    def end(self) -> None:
        (self.folder / "enough").touch()
        for process in self.running.values():
            process.send_signal(signal.SIGCONT)
            process.wait()


def befalls(random: Random, crowd: Crowd, plane: ControlPlane) -> Callable[[], None]:
    """Do something to a process, and return what ends it."""
    name = random.choice(sorted(crowd.running))
    kinds = ["killed", "stopped", *(("server killed", "server paused") if PROVES else ())]
    match random.choice(kinds):
        case "killed":
            crowd.signal(signal.SIGKILL, name)
            return crowd.tend
        case "stopped":
            crowd.signal(signal.SIGSTOP, name)
            return lambda: crowd.signal(signal.SIGCONT, name)
        case "server killed":
            plane.kill(random.choice([Part.API_SERVER, Part.ETCD]))
            return lambda: restarted(plane)
        case _:
            pid = plane.pid(random.choice([Part.API_SERVER, Part.ETCD]))
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)
            return lambda: os.kill(pid, signal.SIGCONT)


def made(admin: DynamicClient, namespace: str) -> None:
    admin.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": namespace}})
    for name in ACCOUNTS:
        metadata = {"name": name, "labels": {HYPERSCALER_TYPE: "aws"}}
        admin.resources.get(api_version="v1", kind="Secret").create(
            namespace=namespace, body={"metadata": metadata}
        )


def lived(crowd: Crowd, plane: ControlPlane) -> None:
    """Let the crowd live until it did enough, and something befall it every so many operations."""
    random = Random(SEED)
    crowd.move_to(0)
    crowd.tend()
    try:
        for event in range(1, EVENTS + 1):
            _until(crowd, OPERATIONS * event // (EVENTS + 1))
            over = befalls(random, crowd, plane)
            time.sleep(0.3)  # for it to last a while; nothing is decided by how long
            over()
        _until(crowd, OPERATIONS)
    finally:
        crowd.end()


def _until(crowd: Crowd, operations: int) -> None:
    while crowd.answers() < operations:
        crowd.tend()
        time.sleep(0.05)


# CPython 3.11 leaves a TLS socket to the garbage when its peer is killed between connection and handshake.
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
def test_some_order_explains_what_claimers_were_answered_under_fire(
    plane: ControlPlane, tmp_path: Path
) -> None:
    namespace = f"fire-{os.getpid()}"
    kubeconfig = plane.kubeconfig(ADMIN.name)
    with client_for(kubeconfig, tmp_path / "discovered.json") as admin:
        for pool in range(POOLS):
            made(admin, f"{namespace}-{pool}")
    folder = tmp_path / "history"
    folder.mkdir()
    proxy: FaultProxy
    with running(kubeconfig, tmp_path, at_random(SEED, SHARE)) as proxy:
        command = [sys.executable, "-m", "tests.fire.claims.claimer", str(proxy.kubeconfig), namespace]
        lived(Crowd(command, folder), plane)
    history = [*operations_in(folder)]
    assert {each.end for each in history} <= {*ENDS}
    judgement = judged(history, tmp_path)
    assert not judgement.wrong, f"{judgement.text()}\npages: {tmp_path}"
    tried("operations on claims, judged by porcupine", judgement.operations)
    tried("kills and stops of claimers, the API server and etcd", EVENTS)
