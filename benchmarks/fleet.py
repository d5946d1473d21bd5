"""What a fleet costs as it grows: each tenant in its own file, with one claim and one copy of what it got.

Each size is a stack of its own on the same API server. Costs are of whole commands: `up` previews first.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from resource import struct_rusage
from typing import Final

import yaml
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.users import ADMIN

from benchmarks.kept_alive import MERGE_PATCH, METADATA, METADATA_LIST, Access, KeptAlive, Tally, expect
from benchmarks.large_pools import TYPE, member_name
from components.labels import ACCOUNT_ID, HYPERSCALER_TYPE

SIZES: Final = (100, 300)
PARTS: Final = ("first", "unchanged", "preview", "added", "unpreviewed", "rotated", "destroy")
STACK: Final = "bench"
PROJECT: Final = Path(__file__).resolve().parent.parent
CREDFLEET: Final = Path(sys.executable).with_name("credfleet")

_LINKED: Final = (".venv", "Pulumi.yaml", "__main__.py", "components", "policies")
_CONNECTIONS: Final = 8
_LOOK_SECONDS: Final = 0.25
_SPARE: Final = 5
"""Accounts beyond those that the tenants need: so often one can be added."""
_CREDENTIAL: Final = "YWNjZXNzS2V5SUQgYW5kIHNlY3JldEFjY2Vzc0tleSBvZiBhbiBhY2NvdW50IG9mIHRoZSBmbGVldA=="
_OBJECTS: Final = (
    *(f"/api/v1/{kind}" for kind in ("namespaces", "secrets", "configmaps", "serviceaccounts")),
    *(f"/apis/rbac.authorization.k8s.io/v1/{kind}" for kind in ("roles", "rolebindings")),
)
_COUNTED: Final = "apiserver_request_total{"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one command cost; `peaks`: the most memory, in MiB, of each kind of process."""

    command: str
    wall: float
    cpu: float
    calls: int
    state: int
    peaks: dict[str, int] = field(default_factory=dict[str, int])


def measure(
    plane: ControlPlane, folder: Path, sizes: Iterable[int], parts: Collection[str] = PARTS
) -> dict[int, tuple[Cost, ...]]:
    """Take a fleet of each size through these parts of its life; return what each command cost.

    A fleet that the folder has already goes on from there.
    """
    return {size: tuple(_Fleet.found(plane, folder, size).lives(parts)) for size in sizes}


def report(measured: dict[int, tuple[Cost, ...]]) -> str:
    """Lay the costs out per tenant, each with its ratio to the same command of the smallest fleet."""
    smallest = min(measured)
    base = {cost.command: cost for cost in measured[smallest]}
    lines = ["| tenants | | CPU s | wall s | CPU ms, calls, state bytes per tenant | ratio to "]
    lines[0] += f"{smallest}: CPU, bytes | MiB at most |"
    lines.append("|---|---|---|---|---|---|---|")
    for size, costs in measured.items():
        for cost in costs:
            first = base[cost.command]
            more = [
                f"{now / size / (then / smallest):.2f}" if then else "-"
                for now, then in ((cost.cpu, first.cpu), (cost.state, first.state))
            ]
            each = f"{cost.cpu / size * 1000:.0f}, {cost.calls / size:.1f}, {cost.state / size:.0f}"
            peaks = ", ".join(f"{name} {most}" for name, most in sorted(cost.peaks.items()))
            row = [
                f"{size:,}",
                cost.command,
                f"{cost.cpu:.1f}",
                f"{cost.wall:.1f}",
                each,
                ", ".join(more),
                peaks,
            ]
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def split(plane: ControlPlane, folder: Path, size: int, stacks: int) -> str:
    """Share the tenants of one stack out among several; return what that cost, and what changed."""
    made = _Fleet.make(plane, folder, size)
    made.have_pool_apart()
    made.run("up", "--stack", "fleet")
    before = made.versions()
    wall = made.split(stacks)
    told = yaml.safe_load(made.credfleet("up", "--kubeconfig", str(made.kubeconfig), "--output", "json"))
    changes = {each["stack"]: each["changes"] for each in told["stacks"]}
    same = made.versions() == before
    lines = (
        f"{size:,} tenants over {stacks} stacks: split in {wall:.1f} s; {len(before):,} objects, {same=}",
        changes,
    )
    return "\n".join(map(str, lines))


def shards(plane: ControlPlane, folder: Path, size: int, stacks: int) -> str:
    """Update many stacks on one pool, a fifth larger than they need, side by side; return what that cost."""
    made = _Fleet.make(plane, folder, size, spare=size // 5)
    made.have_pool_apart()
    made.split(stacks)
    costs = [made.cost_of_all("first up of all"), made.cost_of_all("up of all, nothing changed")]
    made.add_tenant(size)
    costs.append(made.cost_of_all("up of all, one tenant added"))
    return report({size: tuple(costs)})


@dataclass(frozen=True, slots=True)
class _Fleet:
    """One stack with this many tenants, and some accounts more than they need."""

    plane: ControlPlane
    kubeconfig: Path
    folder: Path
    size: int
    spare: int = _SPARE

    @classmethod
    def found(cls, plane: ControlPlane, folder: Path, size: int) -> _Fleet:
        """Return the fleet of this size that a folder has, or lay it out there."""
        there = cls(plane, plane.kubeconfig(ADMIN.name), folder / f"fleet-{size}", size)
        return there if there.folder.exists() else cls.make(plane, folder, size)

    @classmethod
    def make(cls, plane: ControlPlane, folder: Path, size: int, spare: int = _SPARE) -> _Fleet:
        """Lay out the project, and make the accounts that exist already."""
        made = cls(plane, plane.kubeconfig(ADMIN.name), folder / f"fleet-{size}", size, spare)
        tenants = made.folder / "tenants"
        tenants.mkdir(parents=True)
        for name in _LINKED:
            target = Path(sys.prefix) if name == ".venv" else PROJECT / name
            (made.folder / name).symlink_to(target)
        members = [f"{member_name(number)},{TYPE},{number:012}\n" for number in range(size + spare)]
        (made.folder / "members.csv").write_text(
            "".join(["name,type,accountId\n", *members]), encoding="utf-8"
        )
        accounts = {"accounts": {TYPE: {"type": TYPE, "deliverTo": "account"}}}
        (tenants / "_defaults.yaml").write_text(yaml.safe_dump(accounts), encoding="utf-8")
        made.write(STACK, {"accountPool": made.settings()})
        made.run("up")
        made.make_accounts()
        pool = made.settings(membersFrom="members.csv")
        made.write(STACK, {"tenantsFrom": "tenants", "accountPool": pool})
        for number in range(size):
            made.add_tenant(number)
        return made

    @property
    def pool(self) -> str:
        return f"pool-{self.size}"

    def settings(self, **more: str) -> Mapping[str, object]:
        """Return what a stack's file says of the pool."""
        return {"namespace": self.pool, "allowDestroy": True, **more}

    def write(self, stack: str, keys: Mapping[str, object]) -> None:
        """Write the file of a stack, with the salt that it has."""
        path = self.folder / f"Pulumi.{stack}.yaml"
        before = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
        config = {f"credfleet:{key}": value for key, value in keys.items()}
        config["credfleet:cluster"] = {"context": self.plane.context}
        path.write_text(yaml.safe_dump({**before, "config": config}), encoding="utf-8")

    def have_pool_apart(self) -> None:
        """Give the pool a stack of its own, and the tenants another one that claims from it."""
        self.write(STACK, {"accountPool": self.settings(membersFrom="members.csv")})
        self.write("fleet", {"accountPool": {"from": {"namespace": self.pool}}, "tenantsFrom": "tenants"})
        self.run("up")

    def split(self, stacks: int) -> float:
        """Share the tenants of stack `fleet` out among several; return the seconds that took."""
        began = time.perf_counter()
        by = str(-(-self.size // stacks))
        self.credfleet("split", "--stack", "fleet", "--by", by, "--write", "--yes")
        return time.perf_counter() - began

    def credfleet(self, *words: str) -> str:
        """Run a command of `credfleet fleet`, and return what it printed."""
        environment = {**os.environ, "PULUMI_CONFIG_PASSPHRASE": "benchmark"}
        command = [CREDFLEET, "fleet", *words]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{words}: {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        return done.stdout

    def versions(self) -> dict[str, str]:
        """Return the version of each object that tenants and the pool have, by its uid."""
        found: dict[str, str] = {}
        with closing(KeptAlive(Access.of(self.kubeconfig), Tally())) as call:
            for kind in _OBJECTS:
                for each in expect(call("GET", kind, accept=METADATA_LIST), 200)["items"]:
                    metadata = each["metadata"]
                    if str(metadata.get("namespace", metadata["name"])).startswith(("fleet-", self.pool)):
                        found[metadata["uid"]] = metadata["resourceVersion"]
        return found

    def add_tenant(self, number: int) -> None:
        """Write the file of one more tenant."""
        text = f"namespace: fleet-{self.size}-{number:05}\n"
        (self.folder / "tenants" / f"t{number:05}.yaml").write_text(text, encoding="utf-8")

    def make_accounts(self) -> None:
        """Make the Secrets of the accounts, as their pool's file names them."""
        access, tally = Access.of(self.kubeconfig), Tally()

        def add(first: int) -> None:
            with closing(KeptAlive(access, tally)) as call:
                for number in range(first, self.size + self.spare, _CONNECTIONS):
                    metadata = {
                        "name": member_name(number),
                        "labels": {HYPERSCALER_TYPE: TYPE},
                        "annotations": {ACCOUNT_ID: f"{number:012}"},
                    }
                    body = {"metadata": metadata, "data": {"credential": _CREDENTIAL}}
                    expect(call("POST", self._secrets, body, accept=METADATA), 201)

        with ThreadPoolExecutor(_CONNECTIONS) as threads:
            list(threads.map(add, range(_CONNECTIONS)))

    @property
    def _secrets(self) -> str:
        return f"/api/v1/namespaces/{self.pool}/secrets"

    def rotate(self) -> None:
        """Change the credential of an account that somebody has."""
        with closing(KeptAlive(Access.of(self.kubeconfig), Tally())) as call:
            listed = expect(call("GET", f"{self._secrets}?labelSelector=tenant-name&limit=1"), 200)
            path = f"{self._secrets}/{listed['items'][0]['metadata']['name']}"
            rotated = base64.b64encode(f"{_CREDENTIAL}{time.time_ns()}".encode()).decode()
            changed = {"data": {"credential": rotated}}
            expect(call("PATCH", path, changed, content_type=MERGE_PATCH), 200)

    def lives(self, parts: Collection[str]) -> Iterator[Cost]:
        """Go through these parts of what a fleet meets; the first update is made before any other."""
        is_up = self.folder / "is-up"
        if "first" in parts:
            yield self._cost("up", "first up")
        elif not is_up.exists():
            self.run("up")
        is_up.touch()
        if "unchanged" in parts:
            yield self._cost("up", "up with nothing changed", "--expect-no-changes")
        if "preview" in parts:
            yield self._cost("preview", "preview")
        for part, options in (("added", ()), ("unpreviewed", ("--skip-preview",))):
            if part in parts:
                self.add_tenant(len([*(self.folder / "tenants").glob("t*.yaml")]))
                yield self._cost("up", " ".join(("up", *options, "with one tenant added")), *options)
        if "rotated" in parts:
            self.rotate()
            yield self._cost("up", "up with one credential rotated")
        if "destroy" in parts:
            yield self._cost("destroy", "destroy")
            shutil.rmtree(self.folder)

    def cost_of_all(self, name: str) -> Cost:
        """Update every stack, side by side, and return what that cost."""
        return self._cost_of(name, "fleet", "up", "--kubeconfig", str(self.kubeconfig))

    def _cost(self, verb: str, name: str, *options: str) -> Cost:
        return self._cost_of(name, *self._sandbox(verb), *options)

    def _cost_of(self, name: str, *words: str) -> Cost:
        calls = self._calls()
        wall, used, peaks = self._measured(*words)
        cpu = used.ru_utime + used.ru_stime
        states = (self.folder / ".sandbox").rglob("stacks/*/*.json")
        state = sum(each.stat().st_size for each in states)
        cost = Cost(name, wall, cpu, self._calls() - calls, state, peaks)
        print(f"{self.size:>6} {cost}", file=sys.stderr)
        return cost

    def run(self, verb: str, *options: str) -> None:
        """Run a command of `credfleet sandbox` on the stack."""
        self._measured(*self._sandbox(verb), *options)

    def _sandbox(self, verb: str) -> tuple[str, ...]:
        return "sandbox", verb, "--stack", STACK, "--kubeconfig", str(self.kubeconfig), "--yes"

    def _measured(self, *words: str) -> tuple[float, struct_rusage, dict[str, int]]:
        """Run a command; return its seconds, what it and its children used, and their peaks."""
        environment = {**os.environ, "PULUMI_CONFIG_PASSPHRASE": "benchmark"}
        peaks: dict[str, int] = {}
        over = threading.Event()
        began = time.perf_counter()
        with (self.folder / "said").open("w+") as said:
            process = subprocess.Popen(
                [CREDFLEET, *words], cwd=self.folder, env=environment, stdout=said, stderr=subprocess.STDOUT
            )
            watcher = threading.Thread(target=_watch, args=(process.pid, peaks, over), daemon=True)
            watcher.start()
            _, status, used = os.wait4(process.pid, 0)
            wall = time.perf_counter() - began
            over.set()
            watcher.join()
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                said.seek(0)
                raise SystemExit(f"{words} of {self.size} tenants failed:\n{said.read()[-4000:]}")
        return wall, used, peaks

    def _calls(self) -> int:
        """Return how many calls the API server has answered, but for those of leases and its own parts."""
        with closing(KeptAlive(Access.of(self.kubeconfig), Tally())) as call:
            text = expect(call("GET", "/metrics", accept="text/plain"), 200)
        counted = (line for line in text.splitlines() if line.startswith(_COUNTED) and "leases" not in line)
        return int(sum(float(line.rpartition(" ")[2]) for line in counted))


def _watch(root: int, peaks: dict[str, int], over: threading.Event) -> None:
    """Note the most memory that each kind of process of a tree has had, as the kernel counts it."""
    while not over.wait(_LOOK_SECONDS):
        waiting = [root]
        while waiting:
            pid = waiting.pop()
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
                status = Path(f"/proc/{pid}/status").read_text()
                children = [
                    int(child)
                    for thread in Path(f"/proc/{pid}/task").iterdir()
                    for child in (thread / "children").read_text().split()
                ]
            except OSError:
                continue
            most = next((line for line in status.splitlines() if line.startswith("VmHWM")), "VmHWM: 0 kB")
            kind = _kind(words)
            peaks[kind] = max(peaks.get(kind, 0), int(most.split()[1]) // 1024)
            waiting += children


_KINDS: Final = {
    "language_host.py": "program",
    "pulumi.dynamic": "dynamic host",
    "pulumi.policy": "policy host",
    "launcher.py": "launcher",
}


def _kind(words: list[str]) -> str:
    """Name a process by its command line; providers are called as their module."""
    for word in words:
        name = word.rpartition("/")[2]
        if name in _KINDS:
            return _KINDS[name]
        if name.startswith("pulumi_sandbox.providers."):
            return name.rpartition(".")[2]
    return "engine" if "sandbox" in words else "other"
