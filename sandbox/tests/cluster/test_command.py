"""The command `pulumi-sandbox`, from nothing to nothing, on a program that knows no sandbox.

It runs as people run it: a process in a project's folder. What its API server does is decided elsewhere.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pulumi_sandbox import services
from pulumi_sandbox.command import main
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.users import ADMIN

from sandbox.tests.support.cluster import client_for

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

GREETING = Path(__file__).parents[1] / "programs" / "greeting"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the program with an empty stack `dev`."""
    folder = Path(shutil.copytree(GREETING, tmp_path / "greeting"))
    (folder / "Pulumi.dev.yaml").touch()
    for variable in ("KUBECONFIG", "PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE_FILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "correct horse")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(project: Path) -> Generator[Run]:
    """Run the command in the project; whatever it started is stopped."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pulumi_sandbox", *arguments],
            cwd=project,
            env=os.environ,
            capture_output=True,
            text=True,
            check=False,
        )

    yield run
    run("down")


def test_a_program_comes_up_on_an_api_server_of_its_own_and_is_taken_down_again(
    run: Run, project: Path, tmp_path: Path
):
    assert run("status").stdout.startswith("API server  stopped")
    up = run("up", "--stack", "dev")
    assert up.returncode == 0, up.stderr
    assert "hello" not in up.stdout
    status = json.loads(run("status", "--json").stdout)
    with client_for(Path(status["kubeconfig"]), tmp_path / "discovered") as api:
        secrets = api.resources.get(api_version="v1", kind="Secret")
        assert text_of(secrets.get(namespace="greetings", name="greeting")) == "hello, world"
        again = run("up", "--stack", "dev", "--expect-no-changes")
        assert again.returncode == 0, again.stdout

        (project / "Pulumi.dev.yaml").write_text("config:\n  greeting:name: moon\n")
        previewed = run("preview", "--stack", "dev", "--expect-no-changes")
        assert previewed.returncode == 7, previewed.stderr
        assert text_of(secrets.get(namespace="greetings", name="greeting")) == "hello, world"
        assert run("up", "--stack", "dev").returncode == 0
        assert text_of(secrets.get(namespace="greetings", name="greeting")) == "hello, moon"

        secrets.delete(namespace="greetings", name="greeting")
        assert run("refresh", "--stack", "dev", "--expect-no-changes").returncode == 7
        unconfirmed = run("destroy", "--stack", "dev")
        assert (unconfirmed.returncode, "--yes" in unconfirmed.stderr) == (1, True)
        assert run("destroy", "--stack", "dev", "--yes").returncode == 0
        namespaces = api.resources.get(api_version="v1", kind="Namespace").get().items
        assert "greetings" not in [each.metadata.name for each in namespaces]
    assert run("down").stdout == "✓ stopped; data and state are kept\n"
    assert run("down").stdout == "Nothing runs.\n"


def test_what_exists_is_imported_and_its_code_is_what_the_next_update_finds_unchanged(
    run: Run, project: Path, tmp_path: Path
):
    (project / "__main__.py").write_text("")
    assert run("up", "--stack", "dev").returncode == 0
    key = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "default"}}
    with client_for(
        Path(json.loads(run("status", "--json").stdout)["kubeconfig"]), tmp_path / "discovered"
    ) as api:
        secrets = api.resources.get(api_version="v1", kind="Secret")
        secrets.create(body={**key, "stringData": {"text": "hello"}}, namespace="default")
    what = (
        "import",
        "--stack",
        "dev",
        "kubernetes:core/v1:Secret",
        "key",
        "default/key",
        "--protect",
        "false",
    )
    unconfirmed = run(*what)
    assert (unconfirmed.returncode, "--yes" in unconfirmed.stderr) == (1, True)
    imported = run(*what, "--yes")
    assert imported.returncode == 0, imported.stderr
    code = imported.stdout.partition("Copy this into the program")[2].partition("\n\n")[2]
    assert 'data=pulumi.Config().require_secret_object("key-data"),' in code
    sealed = base64.b64encode(b"hello").decode()
    assert sealed not in imported.stdout

    (project / "__main__.py").write_text(code)
    with (project / "Pulumi.dev.yaml").open("a") as stack:
        stack.write(f"config:\n  greeting:key-data: {{text: {sealed}}}\n")
    again = run("up", "--stack", "dev", "--expect-no-changes")
    assert again.returncode == 0, again.stdout + again.stderr
    assert run("destroy", "--stack", "dev", "--yes").returncode == 0


def test_a_cluster_of_the_users_is_written_to_once_that_is_confirmed(
    run: Run, control_plane: ControlPlane, admin: DynamicClient, namespace: str, project: Path
):
    program = project / "__main__.py"
    program.write_text(program.read_text().replace('"greetings"', f'"{namespace}-too"'))
    mine = ("--stack", "dev", "--kubeconfig", str(control_plane.kubeconfig(ADMIN.name)))
    asked = run("up", *mine)
    assert (asked.returncode, control_plane.server in asked.stderr) == (1, True)
    up = run("up", *mine, "--yes")
    assert up.returncode == 0, up.stderr
    secrets = admin.resources.get(api_version="v1", kind="Secret")
    assert text_of(secrets.get(namespace=f"{namespace}-too", name="greeting")) == "hello, world"
    assert json.loads(run("status", "--json").stdout)["server"] is None
    assert run("destroy", "--stack", "dev", "--yes").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["up", "--stack", "prod"], "there is no stack prod"),
        (["up", "--stack", "pr\x9bod"], r"stack 'pr\x9bod': a stack's name is"),
        (["up", "--stack", "dev", "--kubeconfig", "absent"], "there is no such kubeconfig file"),
    ],
)
def test_what_cannot_be_done_is_said_in_two_lines_with_its_mend(
    project: Path, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
):
    assert main(arguments) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert told in first
    assert second.startswith("→ ")


def test_a_full_disk_is_said_in_two_lines_with_its_mend(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/state/log")

    monkeypatch.setattr("pulumi_sandbox.folders.Folders.find", full)
    assert main(["down"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "✗ /state/log: no space is left to write to",
        "→ free some space, then run the same command again",
    ]


def test_outside_a_project_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(["status"]) == 1
    assert "Pulumi.yaml" in capsys.readouterr().err


def test_what_it_prints_steers_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def built(_: object) -> str:
        return "re\x1b[31md"

    monkeypatch.setattr(services, "binaries", built)
    assert main(["build"]) == 0
    assert capsys.readouterr().out == "✓ built: re\ufffd[31md\n"


def test_help_shows_examples_and_a_missing_stack_is_asked_for(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert (ended.value.code, "pulumi-sandbox up --stack dev" in capsys.readouterr().out) == (0, True)
    with pytest.raises(SystemExit) as ended:
        main(["up"])
    assert (ended.value.code, "--stack" in capsys.readouterr().err) == (2, True)


def text_of(secret: Any) -> str:
    return base64.b64decode(secret.data.text).decode()
