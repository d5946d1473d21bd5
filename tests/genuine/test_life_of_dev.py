"""Stack dev as a person lives with it, under the Pulumi CLI and its own Kubernetes provider."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.fleet_project import CREDFLEET, ROOT, Ran

_LINKED: Final = ("Pulumi.yaml", "__main__.py", "components", "policies", "stacks")
_NEW: Final = "sentinel-of-a-rotation"


@dataclass(frozen=True)
class Dev:
    """A checkout's stack dev in a folder of its own, with a sandbox of its own."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a person's shell."""
        kept = {name: text for name, text in os.environ.items() if name not in ("KUBECONFIG", "FORCE_COLOR")}
        return {**kept, "COLUMNS": "200"}

    def up(self, *words: str) -> Ran:
        """Run `credfleet sandbox up`."""
        return self._ran([str(CREDFLEET), "sandbox", "up", "--yes", *words], self.environment)

    def typed(self, line: str) -> Ran:
        """Run a line in a shell in which the exports of `sandbox env` were evaluated."""
        line = f'eval "$({CREDFLEET} sandbox env)"; {line}'
        return self._ran(["bash", "-euc", line], self.environment)

    def pool(self) -> Mapping[str, Any]:
        """Return what `credfleet pool status` says."""
        return self.typed("credfleet pool status --stack dev --output json").quiet().json

    def _ran(self, words: list[str], environment: Mapping[str, str]) -> Ran:
        done = subprocess.run(
            words, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def dev(tmp_path: Path) -> Generator[Dev]:
    """Lay stack dev out, and stop its sandbox in the end."""
    folder = tmp_path / "dev"
    folder.mkdir()
    for name in _LINKED:
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(Path(sys.prefix))
    shutil.copy(ROOT / "Pulumi.dev.yaml", folder)
    made = Dev(folder)
    try:
        yield made
    finally:
        subprocess.run([str(CREDFLEET), "sandbox", "down"], cwd=folder, check=False, capture_output=True)


def test_stack_dev_lives_from_its_first_update_to_its_end(dev: Dev) -> None:
    first = dev.up().quiet(0)
    assert "139 created: 139 resources declared, 6 accounts claimed" in first.out
    assert "Nothing changed" in dev.up("--expect-no-changes").quiet().out
    claimed = dev.pool()

    dev.typed(
        f'echo \'{{"accessKeyID": "AKIANEW", "secretAccessKey": "{_NEW}"}}\''
        " | pulumi config set --stack dev --secret --path 'credfleet:credentials.aws-1'"
    ).quiet()
    rotated = dev.typed("pulumi up --stack dev --yes --skip-preview --policy-pack policies --color never")
    assert rotated.code == 0, rotated.out + rotated.err
    assert _NEW not in rotated.out + rotated.err
    assert "account-pool-aws-1" in rotated.out

    secret = dev.typed("kubectl get secret aws-account -n tenant-acme -o json").json
    dev.typed("kubectl delete secret aws-account -n tenant-acme").quiet()
    drift = dev.typed("pulumi refresh --stack dev --preview-only --expect-no-changes --color never")
    assert drift.code == 7, drift.out
    dev.typed("pulumi refresh --stack dev --yes --skip-preview").quiet()
    dev.up().quiet()
    again = dev.typed("kubectl get secret aws-account -n tenant-acme -o json").json
    assert again["data"].keys() == secret["data"].keys()
    assert dev.pool() == claimed

    destroyed = dev.typed("pulumi destroy --stack dev --yes --skip-preview --color never")
    assert destroyed.code == 0, destroyed.out + destroyed.err
    left = json.loads(dev.typed("pulumi stack export --stack dev").quiet().out)
    assert not left["deployment"].get("resources")
