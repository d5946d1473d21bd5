"""What `credfleet sandbox` says of the services it keeps up, and what a shell gets to reach them."""

import json
import os
import shlex
from pathlib import Path

import pulumi_sandbox.providers
import pytest
from pulumi_sandbox.providers import MODULES
from pulumi_sandbox.services.parts import Layout
from pulumi_sandbox.stack_cluster import StackCluster
from typer.testing import CliRunner, Result

from operations.folders import Folders
from operations.main import app
from operations.sandbox.stand_ins import addresses


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["sandbox", *arguments])


def exports() -> dict[str, str]:
    words = [shlex.split(line) for line in run("env").stdout.splitlines()]
    assert all(word == "export" for word, _ in words)
    return dict(pair.split("=", 1) for _, pair in words)


@pytest.fixture(autouse=True)
def in_project(project: Path) -> None:
    """Run every command of this module in a project of its own."""


def test_before_anything_was_started_status_says_so(project: Path) -> None:
    assert json.loads(run("status", "--output", "json").stdout) == {
        "kubeconfig": None,
        "server": None,
        "users": {},
        "services": {},
        "state": (project / ".sandbox" / "backend").as_uri(),
    }
    assert "`credfleet sandbox up` starts it" in run("status").stdout


def test_status_tells_of_every_service_where_it_listens(project: Path) -> None:
    record = {
        "binaries": "/bin",
        "context": "c",
        "ports": {"etcd": 20001, "etcd_peer": 20002, "api_server": 20003},
    }
    layout = Layout(Folders(project).control_plane)
    layout.folder.mkdir(parents=True)
    layout.record.write_text(json.dumps(record))
    services = json.loads(run("status", "--output", "json").stdout)["services"]
    assert {name: service["address"] for name, service in services.items()} == {
        "etcd": "http://127.0.0.1:20001",
        "kube-apiserver": "https://127.0.0.1:20003",
        "kube-controller-manager": None,
    }
    assert "https://127.0.0.1:20003" in run("status").stdout


def test_stopping_what_does_not_run_is_no_error() -> None:
    result = run("down")
    assert (result.exit_code, result.stdout) == (0, "Nothing runs.\n")


def test_the_exports_name_backend_and_passphrase_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    assert exports() == {
        "PULUMI_BACKEND_URL": (project / ".sandbox" / "backend").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(project / "stacks" / "dev" / "passphrase"),
    }


def test_the_exports_leave_a_passphrase_of_the_users_alone() -> None:
    assert "PULUMI_CONFIG_PASSPHRASE_FILE" not in exports()


@pytest.fixture
def public(project: Path) -> Path:
    """The file of the public passphrase."""
    file = Folders(project).dev_passphrase
    file.parent.mkdir(parents=True)
    file.write_text("public\n")
    return file


def test_the_public_passphrase_is_handed_to_stack_dev_only_and_taken_from_a_shell_that_had_it(
    public: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    assert "PASSPHRASE" not in run("env", "--stack", "prod").stdout
    (tmp_path / "link").symlink_to(public)
    (tmp_path / "copy").write_text("public")
    named = (str(public), "stacks/dev/passphrase", f"{public.parent}/../dev/passphrase")
    for given in (*named, str(tmp_path / "link"), str(tmp_path / "copy")):
        monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", given)
        assert exports()["PULUMI_CONFIG_PASSPHRASE_FILE"] == str(public)
        assert "\nunset PULUMI_CONFIG_PASSPHRASE_FILE\n" in run("env", "--stack", "prod").stdout
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", "/of/the/user")
    assert "PASSPHRASE_FILE=/of/the/user\n" in run("env", "--stack", "prod").stdout
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "public")
    assert "\nunset PULUMI_CONFIG_PASSPHRASE\n" in run("env", "--stack", "prod").stdout


def test_nothing_of_a_real_stack_is_newly_encrypted_with_the_public_passphrase(
    public: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = ("config", "set", "--secret", "gcp:token", "t", "--stack", "real")
    file = project / "Pulumi.real.yaml"
    file.write_text("config:\n  credfleet:cluster: {context: prod}\n")
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(public))
    before = file.read_text()
    for words in (secret, ("up", "--stack", "real", "--yes")):
        file.write_text(before.replace("config:\n", "config:\n  credfleet:tenants: {}\n"))
        refused = run(*words)
        assert refused.exit_code == 1
        assert "the public passphrase" in refused.stderr
        assert "encryptionsalt" not in file.read_text()
    file.write_text(before.replace("prod", "credfleet-sandbox"))
    assert run(*secret).exit_code == 0
    file.write_text(file.read_text().replace("credfleet-sandbox", "prod"))
    assert f"PASSPHRASE_FILE={public}\n" in run("env", "--stack", "real").stdout
    assert run(*secret).exit_code == 0


def test_the_exports_survive_the_shell_whatever_the_path(project: Path) -> None:
    odd = project / "my cluster's $HOME"
    StackCluster(odd, "https://a", None, own=False).remember(Folders(project).clusters("dev"))
    assert exports()["KUBECONFIG"] == str(odd)


def test_providers_that_were_killed_are_not_exported(project: Path) -> None:
    record = Folders(project).providers
    record.parent.mkdir()
    record.write_text(json.dumps({"pid": os.getpid(), "addresses": "kubernetes:4001"}))
    assert addresses(record) is None
    assert "PULUMI_DEBUG_PROVIDERS" not in exports()


@pytest.mark.parametrize("record", [b"{", b"[]", b"{}", b"null", b"\xff", b'{"pid": -1, "addresses": "a:1"}'])
def test_a_record_of_providers_that_is_none_counts_for_nothing(project: Path, record: bytes) -> None:
    Folders(project).providers.parent.mkdir()
    Folders(project).providers.write_bytes(record)
    assert "PULUMI_DEBUG_PROVIDERS" not in exports()


def test_every_provider_of_the_sandbox_can_be_kept_up() -> None:
    folders = (path.parent for path in Path(pulumi_sandbox.providers.__path__[0]).glob("*/__main__.py"))
    assert set(MODULES.values()) == {f"pulumi_sandbox.providers.{folder.name}" for folder in folders}
