"""What `credfleet sandbox` says of the services it keeps up, and what a shell gets to reach them."""

import json
import os
import shlex
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pulumi_sandbox.providers
import pytest
from pulumi_sandbox import pulumi_cli
from pulumi_sandbox.providers import MODULES
from pulumi_sandbox.pulumi_cli import LOCAL, PulumiCli
from pulumi_sandbox.services.parts import Layout
from pulumi_sandbox.stack_cluster import StackCluster
from typer.testing import CliRunner, Result

from operations.folders import Folders
from operations.main import app
from operations.stack.passphrase import PassphraseCrypter

CLI = PulumiCli(Path("/opt/pulumi/bin/pulumi"), "v3.274.1")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["sandbox", *arguments])


def exports() -> dict[str, str]:
    words = [shlex.split(line) for line in run("env").stdout.splitlines()]
    assert all(word == "export" for word, _ in words)
    return dict(pair.split("=", 1) for _, pair in words)


@pytest.fixture(autouse=True)
def in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every command of this module in a project of its own, with a CLI that nothing has to build."""

    def find(*_: object) -> PulumiCli:
        return CLI

    monkeypatch.setattr(pulumi_cli, "find", find)
    monkeypatch.delenv("PULUMI_HOME", raising=False)


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
    path = os.environ["PATH"]
    given = exports()
    own, credfleet, rest = given.pop("PATH").split(os.pathsep, 2)
    assert (own, credfleet) == (str(CLI.program.parent), str(Path(sys.executable).parent))
    assert rest.split(os.pathsep) == [each for each in path.split(os.pathsep) if each != credfleet]
    assert given == {
        "PULUMI_BACKEND_URL": (project / ".sandbox" / "backend").as_uri() + "?metadata=skip",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(project / "stacks" / "dev" / "passphrase"),
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_HOME": str(project / ".sandbox" / "pulumi"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }


def test_the_exports_leave_what_the_cli_needs_in_place(project: Path) -> None:
    given = exports()
    assert Path(urlsplit(given["PULUMI_BACKEND_URL"]).path).is_dir()
    assert (Path(given["PULUMI_HOME"]) / "plugins").is_dir()


def test_the_exports_are_the_same_in_a_shell_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    first = exports()
    for name, text in first.items():
        monkeypatch.setenv(name, text)
    assert exports() == first


def test_there_are_no_exports_for_a_stack_that_is_not_there(project: Path) -> None:
    refused = run("env", "--stack", "nope")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "there is no stack nope" in refused.stderr
    (project / "Pulumi.dev.yaml").unlink()
    assert "PULUMI_BACKEND_URL" in exports()


def test_the_exports_leave_a_passphrase_of_the_users_alone() -> None:
    assert "PULUMI_CONFIG_PASSPHRASE_FILE" not in exports()


@pytest.fixture
def public(project: Path) -> Path:
    """The file of the public passphrase."""
    file = Folders(project).dev_passphrase
    file.parent.mkdir(parents=True)
    file.write_text("public\n")
    (project / "Pulumi.prod.yaml").touch()
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
    file = project / "Pulumi.real.yaml"
    file.write_text("config:\n  credfleet:cluster: {context: prod}\n  credfleet:tenants: {}\n")
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(public))
    refused = run("up", "--stack", "real", "--yes")
    assert refused.exit_code == 1
    assert "the public passphrase" in refused.stderr
    assert "encryptionsalt" not in file.read_text()
    assert "\nunset PULUMI_CONFIG_PASSPHRASE_FILE\n" in run("env", "--stack", "real").stdout
    file.write_text(file.read_text().replace("prod", "credfleet-sandbox"))
    assert f"PASSPHRASE_FILE={public}\n" in run("env", "--stack", "real").stdout
    salt = PassphraseCrypter.new("public").salt
    file.write_text(f"encryptionsalt: {salt}\n{file.read_text().replace('credfleet-sandbox', 'prod')}")
    assert f"PASSPHRASE_FILE={public}\n" in run("env", "--stack", "real").stdout


def test_the_exports_survive_the_shell_whatever_the_path(project: Path) -> None:
    odd = project / "my cluster's $HOME"
    StackCluster(odd, "https://a", None, own=False).remember(Folders(project).clusters("dev"))
    assert exports()["KUBECONFIG"] == str(odd)


def test_providers_are_listed_with_what_serves_each(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    genuine = tmp_path / "bin" / "pulumi-resource-gcp"
    genuine.parent.mkdir()
    genuine.touch(0o755)
    monkeypatch.setenv("PATH", str(genuine.parent), prepend=os.pathsep)
    told = json.loads(run("providers", "--output", "json").stdout)["providers"]
    assert told == dict.fromkeys(MODULES, LOCAL) | {"gcp": str(genuine)}
    assert str(genuine) in run("providers").stdout


def test_every_provider_of_the_sandbox_can_be_kept_up() -> None:
    folders = (path.parent for path in Path(pulumi_sandbox.providers.__path__[0]).glob("*/__main__.py"))
    assert set(MODULES.values()) == {f"pulumi_sandbox.providers.{folder.name}" for folder in folders}
