"""A copy of the program with a stack of its own: small, with namespaces that no other test has."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from operations.stack.passphrase import PassphraseCrypter
from operations.stack.stack_file import StackFile
from tests.support import pulumi_shell

ROOT = Path(__file__).parents[2]
CREDFLEET = Path(sys.executable).with_name("credfleet")
STACK = "test"
PASSPHRASE = "only for tests"
HANGS_AFTER_SECONDS = 300

_NOTHING: Mapping[str, Any] = {}
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

    @property
    def said(self) -> str:
        """All it printed, in one line."""
        return " ".join(f"{self.out} {self.err}".split())

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
    stack: str = STACK

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
        """The variables of a person's shell."""
        own = {"KUBECONFIG": str(self.kubeconfig), "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE, "COLUMNS": "200"}
        return {**os.environ, **own, **self.trust}

    def configure(
        self,
        *,
        credentials: Mapping[str, str] = _NOTHING,
        tenants: Mapping[str, Any] = _NOTHING,
        pool: Mapping[str, Any] = _NOTHING,
        context: str = "pulumi-sandbox",
        existing_namespaces: Sequence[str] = (),
        services: Mapping[str, Any] = _NOTHING,
        further: Mapping[str, Any] = _NOTHING,
    ) -> None:
        """Write the stack's configuration; credentials are encrypted, each by itself.

        services: instance → what the configuration says of it. further: other keys, with their namespaces.
        """
        path = self.folder / f"Pulumi.{self.stack}.yaml"
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
            "credfleet:services": {"instances": services},
            **{
                key: {"secure": crypter.encrypt(str(value))} if key == "gcp:accessToken" else value
                for key, value in further.items()
            },
        }
        path.write_text(json.dumps({"encryptionsalt": crypter.salt, "config": config}), encoding="utf-8")
        pulumi_shell.bring_stack(self.folder, self.stack)

    def sandbox_up(self, *words: str) -> Ran:
        """Run `credfleet sandbox up` on the stack."""
        return self.run(
            "sandbox", "up", "--stack", self.stack, "--kubeconfig", str(self.kubeconfig), "--yes", *words
        )

    def up(self, *words: str) -> Ran:
        """Run a bare update: no preview before it."""
        return self.pulumi("up", "--skip-preview", "--yes", *words)

    def preview(self, *words: str) -> Ran:
        """Preview, without policies."""
        return self.pulumi("preview", *words)

    def refresh(self, *words: str) -> Ran:
        """Refresh, without a preview before it."""
        return self.pulumi("refresh", "--skip-preview", "--yes", *words)

    def destroy(self, *words: str) -> Ran:
        """Destroy, without a preview before it."""
        return self.pulumi("destroy", "--skip-preview", "--yes", *words)

    def pulumi(self, *words: str) -> Ran:
        """Run a command of the Pulumi CLI on the stack; one that hangs ends with code -9."""
        with subprocess.Popen(
            pulumi_shell.command(self.stack, *words),
            cwd=self.folder,
            env=self.shell,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=HANGS_AFTER_SECONDS)
            except subprocess.TimeoutExpired:
                pulumi_shell.kill(process)
                out, err = process.communicate()
        return Ran(process.returncode, out, err)

    def typed(self, line: str) -> Ran:
        """Run a line of a shell, as a person pastes it."""
        return self._ran(["bash", "-c", line], self.shell)

    @property
    def shell(self) -> dict[str, str]:
        """The variables of a shell in which the exports of `credfleet sandbox env` were evaluated."""
        return pulumi_shell.shell(self.folder, self.stack, self.environment)

    def up_until(self, writes: int) -> int:
        """Run `up` until its n-th write of the state; return its exit code, negative when killed."""
        return self.up_within(writes).code

    def up_within(self, writes: int, seconds: float = math.inf) -> Ran:
        """Run `up` until it is through, or killed: at its n-th write of the state, or after a time."""
        state = pulumi_shell.state_of(self.folder, self.stack)
        return self.up_beside(lambda update: pulumi_shell.kill_at(update, state, writes, seconds))

    def up_beside(self, attend: Callable[[subprocess.Popen[bytes]], int]) -> Ran:
        """Run `up` while it is attended to until it ends, as it may by being killed; then its lock goes.

        attend: returns its exit code.
        """
        said = self.folder / "said.txt"
        words = pulumi_shell.command(self.stack, "up", "--skip-preview", "--yes")
        with (
            said.open("w", encoding="utf-8") as to,
            subprocess.Popen(words, cwd=self.folder, env=self.shell, stdout=to, stderr=to) as update,
        ):
            code = attend(update)
        if code < 0:
            self.pulumi("cancel", "--yes").quiet()
        return Ran(code, said.read_text(encoding="utf-8"), "")

    def run(self, *words: str) -> Ran:
        """Run a `credfleet` command in the project's folder."""
        environment = self.environment
        return self._ran([str(CREDFLEET), *words], environment)

    def _ran(self, words: Sequence[str], environment: Mapping[str, str]) -> Ran:
        done = subprocess.run(
            words, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        return Ran(done.returncode, done.stdout, done.stderr)
