"""A copy of the program with a stack of its own: small, with namespaces that no other test has."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.project.stack_file import StackFile

from tests.support import killed_up
from tests.support.warm_commands import CREDFLEET, forking, warm

ROOT = Path(__file__).parents[2]
STACK = "test"
PASSPHRASE = "only for tests"

_LINKED = (".venv", "Pulumi.yaml", "__main__.py", "components", "policies")


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def quiet(self, code: int = 0) -> Ran:
        """Assert that it ended so, and told no credential."""
        assert self.code == code, self.out + self.err
        assert "sentinel-" not in self.out + self.err
        return self


@dataclass(frozen=True)
class FleetProject:
    """The program in a folder of its own, with one stack, on one cluster."""

    folder: Path
    kubeconfig: Path
    pool: str
    trust: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables by which what runs here trusts stand-ins."""

    @classmethod
    def make(cls, folder: Path, kubeconfig: Path, unique: str) -> FleetProject:
        """Lay out the program and its stack; every namespace of it begins with `unique`."""
        folder.mkdir(exist_ok=True)
        for name in _LINKED:
            (folder / name).symlink_to(Path(sys.prefix) if name == ".venv" else ROOT / name)
        return cls(folder, kubeconfig, f"{unique}-pool")

    def consumer(self, folder: Path) -> FleetProject:
        """Lay out a project called as its folder, whose stack is to claim from this one's pool."""
        made = replace(self.make(folder, self.kubeconfig, folder.name), pool=self.pool)
        said = (folder / "Pulumi.yaml").read_text(encoding="utf-8").partition("\nconfig:")[0]
        (folder / "Pulumi.yaml").unlink()
        (folder / "Pulumi.yaml").write_text(
            re.sub("^name: .*", f"name: {folder.name}", said), encoding="utf-8"
        )
        return made

    @property
    def environment(self) -> dict[str, str]:
        own = {"KUBECONFIG": str(self.kubeconfig), "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE, "COLUMNS": "200"}
        return forking("programs", {**os.environ, **own, **self.trust})

    def configure(
        self,
        *,
        credentials: Mapping[str, str],
        tenants: Mapping[str, Any],
        pool: Mapping[str, Any],
        context: str = "pulumi-sandbox",
        existing_namespaces: Sequence[str] = (),
        services: Mapping[str, Any] | None = None,
        further: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the stack's configuration; credentials are encrypted, each by itself.

        services: instance → what the configuration says of it. further: other keys, with their namespaces.
        """
        path = self.folder / f"Pulumi.{STACK}.yaml"
        stack = StackFile.load(path, "credfleet")
        crypter = (
            PassphraseCrypter.open(stack.salt, PASSPHRASE)
            if stack.salt
            else PassphraseCrypter.new(PASSPHRASE)
        )
        config = {
            "credfleet:cluster": {"context": context, "existingNamespaces": list(existing_namespaces)},
            "credfleet:credentials": {
                name: {"secure": crypter.encrypt(text)} for name, text in credentials.items()
            },
            "credfleet:tenants": tenants,
            "credfleet:accountPool": pool if "from" in pool else {"namespace": self.pool, **pool},
            "credfleet:services": {"instances": services or {}},
            **(further or {}),
        }
        path.write_text(json.dumps({"encryptionsalt": crypter.salt, "config": config}), encoding="utf-8")

    def sandbox(self, verb: str, *words: str) -> Ran:
        """Run a command of `credfleet sandbox` on the stack."""
        named = ["--kubeconfig", str(self.kubeconfig), "--yes"]
        return self.run("sandbox", verb, "--stack", STACK, *named, *words)

    def up(self) -> Ran:
        """Run a bare update: no preview before it, no report behind it."""
        return self._up(writes=0)

    def up_until(self, writes: int) -> int:
        """Run `up` until its n-th write of the state; return its exit code, negative when killed."""
        return self._up(writes).code

    def up_within(self, writes: int, seconds: float) -> Ran:
        """Run `up` until it is through, or killed: at its n-th write of the state, or after a time."""
        return self._up(writes, str(seconds))

    def _up(self, writes: int, *words: str) -> Ran:
        backend = self.folder / ".sandbox" / "backend"
        return self._ran(Path(killed_up.__file__), str(self.folder), STACK, str(backend), str(writes), *words)

    def run(self, *words: str) -> Ran:
        """Run a `credfleet` command in the project's folder."""
        return self._ran(CREDFLEET, *words)

    def _ran(self, script: Path, *words: str) -> Ran:
        environment = self.environment
        done = subprocess.run(
            warm(script, *words, environment=environment),
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)
