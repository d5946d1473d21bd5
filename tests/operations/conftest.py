"""An empty project to run commands in."""

from pathlib import Path

import pytest

from operations.stack import passphrase

PASSPHRASE = "a passphrase for tests"
PROJECT = """\
name: credfleet
runtime: {name: python}
config:
  credfleet:cluster: {type: object, default: {}}
  credfleet:credentials: {type: object, default: {}}
  credfleet:tenants: {type: object, default: {}}
  credfleet:accountPool: {type: object, default: {}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty project with a stack `dev`, which the command is run in."""
    for variable in ("KUBECONFIG", "PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE_FILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    monkeypatch.setattr(passphrase, "_ROUNDS", 1)  # a slow key protects nothing here
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text(PROJECT)
    (folder / "Pulumi.dev.yaml").write_text("config: {}  # of the stack\n")
    (folder / "__main__.py").touch()
    monkeypatch.chdir(folder)
    return folder
