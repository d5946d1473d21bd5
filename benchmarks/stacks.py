"""Stacks that the Pulumi CLI brings up: ours, and beside each the floor under what it can cost."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pulumi_sandbox import pulumi_cli
from pulumi_sandbox.services.build import binaries, cache_folder
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN, User
from pulumi_sandbox.services.progress import silent

from benchmarks.processes import Usage, measured
from operations.folders import Folders
from operations.sandbox.cloud_services import stand_ins
from operations.sandbox.control_plane import CONTEXT, OWNER, USERS
from operations.sandbox.processes import exports, stop_all

PROJECT: Final = Path(__file__).resolve().parent.parent
_FLOOR: Final = Path(__file__).with_name("programs") / "floor"
_NAMESPACE: Final = "kubernetes:core/v1:Namespace"


def lay_out(folder: Path) -> None:
    """Link what our program is made of into the folder of a project of its own."""
    (folder / ".venv").symlink_to(sys.prefix)
    for name in ("Pulumi.yaml", "__main__.py", "components", "policies", "stacks"):
        (folder / name).symlink_to(PROJECT / name)


@contextmanager
def serving(folder: Path) -> Generator[Path]:
    """Serve an API server of its own to a project for as long as that is measured; yield its kubeconfig."""
    folders, users = Folders(folder), [User(name) for name in USERS]
    folders.backend.mkdir(parents=True)
    programs = binaries(silent, cache_folder(OWNER))
    try:
        yield ControlPlane.start(
            folders.control_plane, binaries=programs, users=users, context=CONTEXT, die_with_parent=True
        ).kubeconfig(ADMIN.name)
    finally:
        stop_all(folders, stand_ins(folders))


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack, in the folder of its program."""

    folder: Path
    name: str
    environment: Mapping[str, str]

    @classmethod
    def ours(cls, folder: Path, name: str) -> Stack:
        """Make a stack of our program, in the sandbox of its project."""
        others = {name: text for name, text in os.environ.items() if not name.startswith("PULUMI_")}
        folders, given = Folders(folder), {} if name == "dev" else {"PULUMI_CONFIG_PASSPHRASE": "benchmark"}
        cli = pulumi_cli.find(OWNER, silent)
        pulumi_cli.furnish(folders.pulumi_home)
        found = exports(folders, name, {**others, **given}, cli)
        return cls(folder, name, {**others, **given, **found})._made()

    def floor(self) -> Stack:
        """Make the stack of the floor, with the same home and kind of backend, on the same servers."""
        folder = self.folder / ".floor"
        shutil.copytree(_FLOOR, folder)
        (folder / ".venv").symlink_to(sys.prefix)
        (folder / "backend").mkdir()
        backend = {"PULUMI_BACKEND_URL": (folder / "backend").as_uri()}
        return Stack(folder, "floor", {**self.environment, **backend})._made()

    def _made(self) -> Stack:
        self._pulumi("stack", "init")
        return self

    def run(self, verb: str, options: Sequence[str], *, with_policies: bool = False) -> Usage:
        """Preview or update it."""
        pack = ("--policy-pack", "policies") if with_policies else ()
        config = Folders(self.folder).policy_config(self.name) if with_policies else None
        return self._pulumi(verb, *options, *pack, *(("--policy-pack-config", str(config)) if config else ()))

    def _pulumi(self, *words: str) -> Usage:
        command = ["pulumi", *words, "--stack", self.name, "--non-interactive"]
        return measured(command, self.folder, self.environment)

    @property
    def state(self) -> Path:
        """The file of its state."""
        backend = Path(urlsplit(self.environment["PULUMI_BACKEND_URL"]).path)
        return next(backend.glob(f".pulumi/stacks/*/{self.name}.json"))

    def kinds(self) -> dict[str, int]:
        """Count its resources by type, but those that Pulumi makes, namespaces first."""
        resources = json.loads(self.state.read_bytes())["checkpoint"]["latest"]["resources"]
        counted = Counter(each["type"] for each in resources if not each["type"].startswith("pulumi:"))
        return {_NAMESPACE: counted.pop(_NAMESPACE), **counted}

    def declare(self, kinds: Mapping[str, int]) -> None:
        """Let a floor declare so many resources of each type; its objects stay in their namespaces."""
        path = self.folder / "kinds.json"
        before = json.loads(path.read_bytes()) if path.exists() else {"namespaces": kinds[_NAMESPACE]}
        path.write_text(json.dumps({**before, "kinds": kinds}), encoding="utf-8")
