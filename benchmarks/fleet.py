"""What is measured: stack dev, and fleets with each tenant in a file of its own, one claim and one copy each.

A fleet is one stack with everything, beside the floor under it; or several that claim from one pool.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from pulumi_sandbox.services.progress import silent

from benchmarks.comparison import Row, lives, table
from benchmarks.large_pools import TYPE, fill_pool, member_name
from benchmarks.processes import Usage, measured
from benchmarks.stacks import PROJECT, Stack, lay_out, serving
from operations.config.settings import read_settings
from operations.folders import Folders
from operations.sandbox import cloud_services, existing
from operations.sandbox.control_plane import CONTEXT
from operations.stack.at_rest import StackAtRest

DEV: Final = "Pulumi.dev.yaml"
DEV_TENANTS: Final = 5
STACK: Final = "bench"
CREDFLEET: Final = Path(sys.executable).with_name("credfleet")

_ACCOUNT: Final = {"type": TYPE, "deliverTo": "account"}


def stack_dev(folder: Path, *, with_policies: bool) -> Iterator[Row]:
    """Take stack dev through its life, on an API server and clouds of its own."""
    lay_out(folder)
    shutil.copy(PROJECT / DEV, folder)
    with serving(folder) as kubeconfig:
        folders = Folders(folder)
        existing.bring_kinds(kubeconfig)
        existing.bring(folders.existing("dev"), kubeconfig)
        at_rest = StackAtRest.find(folder, "dev", backend_dir=folders.backend)
        cloud_services.start(folders, at_rest.read()[0].values, read_settings(at_rest).pull_secrets, silent)
        stack = Stack.ours(folder, "dev")
        yield from lives(stack, DEV_TENANTS, lambda number: _add(folder / DEV, number), with_policies)


def _add(file: Path, number: int) -> None:
    """Add a tenant to stack dev, and the account that it claims."""
    document: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    name, config = f"later-{number}", document["config"]
    account = {"type": TYPE, "accountId": f"{number:012}", "credentialsFrom": "aws-1"}
    config["credfleet:accountPool"]["members"][name] = account
    config["credfleet:tenants"][name] = {"namespace": name, "accounts": {TYPE: _ACCOUNT}}
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def fleet(folder: Path, size: int, *, with_policies: bool) -> Iterator[Row]:
    """Take a fleet of this size through its life, on an API server of its own."""
    with serving(folder) as kubeconfig:
        made = _Fleet.make(kubeconfig, folder, size)
        yield from lives(made.stack, size, made.add_tenant, with_policies)


def split(folder: Path, size: int, stacks: int) -> str:
    """Share the tenants of one stack out among several; return what that cost, and what is done then."""
    with serving(folder) as kubeconfig:
        made = _Fleet.make(kubeconfig, folder, size)
        made.have_pool_apart()
        made.credfleet("sandbox", "up", "--stack", "fleet", "--yes")
        rows = [made.row("split", made.split(stacks)), made.up("up of all")]
        return f"{table(rows)}\n{(folder / 'said').read_text(encoding='utf-8')}"


def shards(folder: Path, size: int, stacks: int) -> str:
    """Update many stacks on one pool, a fifth larger than they need, side by side; return what that cost."""
    with serving(folder) as kubeconfig:
        made = _Fleet.make(kubeconfig, folder, size, spare=size // 5)
        made.have_pool_apart()
        made.split(stacks)
        rows = [made.up("first up of all"), made.up("up of all, no change")]
        made.add_tenant(size)
        return table([*rows, made.up("up of all, one tenant added")])


@dataclass(frozen=True, slots=True)
class _Fleet:
    """A stack with this many tenants; its API server is that of its environment."""

    stack: Stack
    size: int
    pool: Mapping[str, Any]

    @classmethod
    def make(cls, kubeconfig: Path, folder: Path, size: int, spare: int = 5) -> _Fleet:
        """Lay out the project, and make the pool; spare: accounts beyond those that the tenants need."""
        lay_out(folder)
        (folder / "tenants").mkdir()
        members = [f"{member_name(number)},{TYPE},{number:012}\n" for number in range(size + spare)]
        (folder / "members.csv").write_text("".join(["name,type,accountId\n", *members]), encoding="utf-8")
        accounts = yaml.safe_dump({"accounts": {TYPE: _ACCOUNT}})
        (folder / "tenants" / "_defaults.yaml").write_text(accounts, encoding="utf-8")
        pool = {"namespace": f"pool-{size}", "allowDestroy": True, "membersFrom": "members.csv"}
        _write(folder, STACK, pool)
        made = cls(Stack.ours(folder, STACK), size, pool)
        made.stack.run("up", ("--yes", "--skip-preview"))
        fill_pool(kubeconfig, f"pool-{size}", size + spare, with_ids=True)
        _write(folder, STACK, pool, tenantsFrom="tenants")
        for number in range(size):
            made.add_tenant(number)
        return made

    def have_pool_apart(self) -> None:
        """Give the pool a stack of its own, and the tenants another one that claims from it."""
        claimed = {"from": {"namespace": self.pool["namespace"]}}
        _write(self.stack.folder, STACK, self.pool)
        _write(self.stack.folder, "fleet", claimed, tenantsFrom="tenants")
        self.credfleet("sandbox", "up", "--stack", STACK, "--yes")

    def split(self, stacks: int) -> Usage:
        """Share the tenants of stack `fleet` out among several."""
        by = str(-(-self.size // stacks))
        return self.credfleet("fleet", "split", "--stack", "fleet", "--by", by, "--write", "--yes")

    def up(self, step: str) -> Row:
        """Update all stacks side by side."""
        return self.row(step, self.credfleet("fleet", "up"))

    def row(self, step: str, cost: Usage) -> Row:
        """Return what a step cost, and the size of all its stacks."""
        state = sum(each.stat().st_size for each in self.stack.state.parent.glob("*.json"))
        return Row(f"{self.size:,} tenants", step, cost, state / self.size)

    def credfleet(self, *words: str) -> Usage:
        """Run one of our commands."""
        return measured([CREDFLEET, *words], self.stack.folder, self.stack.environment)

    def add_tenant(self, number: int) -> None:
        """Write the file of one more tenant."""
        text = f"namespace: fleet-{self.size}-{number:05}\n"
        (self.stack.folder / "tenants" / f"t{number:05}.yaml").write_text(text, encoding="utf-8")


def _write(folder: Path, stack: str, pool: Mapping[str, Any], **more: str) -> None:
    """Write the file of a stack, with the salt that it has."""
    path = folder / f"Pulumi.{stack}.yaml"
    before = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
    keys = {"accountPool": pool, "cluster": {"context": CONTEXT}, **more}
    config = {f"credfleet:{key}": value for key, value in keys.items()}
    path.write_text(yaml.safe_dump({**before, "config": config}), encoding="utf-8")
