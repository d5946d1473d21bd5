"""The programs of examples/, each deployed from a copy by the Pulumi CLI: what a reader types works.

That the commands of their page print what it says is tried by hand.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from base64 import b64decode
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests
from pulumi_sandbox.services.cloud.registry import SECRET_MANAGER
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import ADMIN
from pulumi_sandbox.services.ports import LOOPBACK, free_ports

from operations.folders import Folders
from operations.sandbox.cloud_services import stand_ins
from tests.support import pulumi_shell
from tests.support.stacks import ROOT

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

EXAMPLES = ROOT / "examples"


@dataclass(frozen=True)
class Copies:
    """Copies of the examples, with namespaces of their own and the tests' API server."""

    folder: Path
    replaced: Mapping[str, str]
    environment: Mapping[str, str]

    def up(self, name: str) -> None:
        folder = self.folder / name
        folder.mkdir()
        for file in (EXAMPLES / name).glob("*.*"):
            if file.is_file():
                self.write(folder / file.name, file.read_text(encoding="utf-8"))
        self.deploy(folder)

    def write(self, file: Path, text: str) -> None:
        for old, new in self.replaced.items():
            text = text.replace(old, new)
        file.write_text(text, encoding="utf-8")

    def deploy(self, folder: Path) -> None:
        pulumi_shell.bring_stack(folder, "dev")
        done = subprocess.run(
            pulumi_shell.command("dev", "up", "--skip-preview", "--yes"),
            cwd=folder,
            env=pulumi_shell.shell(folder, "dev", {**os.environ, **self.environment}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "made up" not in done.stdout + done.stderr


@pytest.fixture
def copies(tmp_path: Path, control_plane: ControlPlane) -> Generator[Copies]:
    unique = f"t{secrets.token_hex(4)}"
    services = stand_ins(Folders(tmp_path))
    (google,) = free_ports(1)
    services.start({SECRET_MANAGER: google})
    try:
        yield Copies(
            tmp_path,
            {
                '"accounts"': f'"{unique}-accounts"',
                '{"name": "globex"}': f'{{"name": "{unique}-globex"}}',
                "credfleet-sandbox": "pulumi-sandbox",
                "127.0.0.1:0": f"{LOOPBACK}:{google}",
            },
            {
                "KUBECONFIG": str(control_plane.kubeconfig(ADMIN.name)),
                "PULUMI_CONFIG_PASSPHRASE": "only for the examples",
                **services.trust(),
            },
        )
    finally:
        services.stop()


@pytest.mark.life
def test_claims_of_other_stacks_are_served_and_used_beside_other_providers(
    copies: Copies, admin: DynamicClient
) -> None:
    for name in ("pool", "claim", "aso-credential"):
        copies.up(name)

    secret = admin.resources.get(api_version="v1", kind="Secret")
    accounts = copies.replaced['"accounts"'].strip('"')
    owners = {
        each.metadata.name: each.metadata.labels["tenant-name"]
        for each in secret.get(namespace=accounts).items
    }
    assert owners == {"gcp-1": "acme", "azure-1": "globex"}
    credential = secret.get(namespace=accounts.replace("accounts", "globex"), name="aso-credential").data
    assert b64decode(credential["AZURE_CLIENT_SECRET"]) == b"made up"
    endpoint = copies.replaced["127.0.0.1:0"]
    entry = f"http://{endpoint}/v1/projects/acme-prod-1/secrets/api-key"
    told = requests.get(entry, headers={"Authorization": "Bearer any"}, timeout=20)
    assert told.status_code == 200


def test_every_example_is_deployed_by_these_tests_and_listed_on_its_page() -> None:
    folders = {each.parent.name for each in EXAMPLES.glob("*/Pulumi.yaml")}
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert folders == {"pool", "claim", "aso-credential"}
    assert all(f"]({name})" in page for name in folders)


def test_the_program_that_the_readme_shows_is_one_of_them() -> None:
    (shown,) = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    whole = (EXAMPLES / "claim" / "__main__.py").read_text().splitlines()
    assert [line for line in shown.splitlines() if line not in whole] == []
