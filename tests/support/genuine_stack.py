"""A stack of the program under the genuine Pulumi CLI, on the tests' API server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.support.fleet_project import PASSPHRASE, STACK, FleetProject, Ran

ACCOUNTS = tuple(f"aws-{n}" for n in range(1, 5))


def cli_folder() -> Path:
    """The folder of `pulumi` and of what lies beside it."""
    return Path(os.environ.get("CREDFLEET_TEST_CLI", "/tmp/genuine/bin"))


@dataclass(frozen=True)
class GenuineStack:
    """A stack whose tenants have a claim and a copy in each of their slots.

    attached: PULUMI_DEBUG_PROVIDERS.
    """

    project: FleetProject
    attached: str
    name: str = STACK
    held_as: Mapping[str, str] = field(default_factory=dict[str, str])

    def declare(
        self,
        accounts: int,
        tenants: Mapping[str, Sequence[str]],
        *,
        required: Sequence[str] = (),
        services: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the stack's file. tenants: name → slots. required: tenants whose claims are."""
        names = ACCOUNTS[:accounts]
        self.project.configure(
            credentials={
                "service": '{"user":"u","password":"sentinel-s"}',
                **{name: f'{{"secretAccessKey":"sentinel-{name}"}}' for name in names},
            },
            tenants={
                tenant: {
                    "namespace": f"{self.project.pool}-{tenant}",
                    "accounts": {
                        slot: {
                            "type": "aws",
                            "deliverTo": {"name": "account"},
                            **({"required": True} if tenant in required else {}),
                        }
                        for slot in slots
                    },
                }
                for tenant, slots in tenants.items()
            },
            pool={
                "allowDestroy": True,
                "members": {
                    name: {"type": "aws", "accountId": f"{n:012}", "credentialsFrom": name}
                    for n, name in enumerate(names)
                },
            },
            services=services,
            further={"credfleet:heldAs": self.held_as["heldAs"]} if self.held_as else None,
        )
        if self.name != STACK:
            folder = self.project.folder
            (folder / f"Pulumi.{STACK}.yaml").rename(folder / f"Pulumi.{self.name}.yaml")

    def pulumi(self, *words: str) -> Ran:
        """Run a command of the CLI."""
        done = subprocess.run(
            [cli_folder() / "pulumi", *words, "--non-interactive"],
            cwd=self.project.folder,
            env={
                **os.environ,
                **self.project.environment,
                "PATH": f"{cli_folder()}:{os.environ['PATH']}",
                "PULUMI_HOME": str(self.project.folder / ".pulumi-home"),
                "PULUMI_BACKEND_URL": f"file://{self.project.folder}",
                "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
                "PULUMI_SKIP_UPDATE_CHECK": "true",
                "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
                "PULUMI_DEBUG_PROVIDERS": self.attached,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def preview(self, *words: str) -> Ran:
        """Preview."""
        return self.pulumi("preview", "--stack", self.name, *words)

    def up(self, *words: str) -> Ran:
        """Update, after a preview."""
        return self.pulumi("up", "--yes", "--stack", self.name, *words)

    def renamed(self, name: str) -> GenuineStack:
        """Rename the stack."""
        self.pulumi("stack", "rename", name, "--stack", self.name).quiet()
        return replace(self, name=name)


@contextmanager
def kubernetes_attached() -> Generator[str]:
    """Serve the sandbox's Kubernetes provider, as PULUMI_DEBUG_PROVIDERS names it."""
    provider = subprocess.Popen(
        [sys.executable, "-u", "-m", "pulumi_sandbox.providers.kubernetes"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert provider.stdout is not None
        yield f"kubernetes:{int(provider.stdout.readline())}"
    finally:
        provider.send_signal(signal.SIGTERM)
        provider.communicate()
