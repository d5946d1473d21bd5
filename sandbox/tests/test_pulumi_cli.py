"""Which Pulumi CLI a sandbox uses, and which provider it finds for each package."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from importlib import metadata
from pathlib import Path

import psutil
import pytest
from pulumi_sandbox import pulumi_cli
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.providers import MODULES
from pulumi_sandbox.pulumi_cli import LOCAL, PulumiCli
from pulumi_sandbox.services.build import PULUMI_CLI, GoModule
from pulumi_sandbox.services.progress import Progress, silent

from sandbox.tests.support import cli_folder

PACKAGE, PROGRAM = "gcp", "pulumi-resource-gcp"
HANG = 60.0
"""Seconds after which a process that should have ended counts as left behind."""


def program(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


@pytest.fixture(autouse=True)
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with one folder of ours, a home of the user's, no other CLI; and one that would be built."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    for variable in ("PULUMI", "PULUMI_HOME"):
        monkeypatch.delenv(variable, raising=False)

    def binaries(_progress: Progress, cache: Path, module: GoModule) -> Path:
        assert (cache.name, module) == ("pulumi-cli", PULUMI_CLI)
        return program(tmp_path / "built" / "pulumi", "echo v3.274.1").parent

    monkeypatch.setattr(pulumi_cli, "binaries", binaries)
    return tmp_path / "bin"


def found() -> PulumiCli:
    return pulumi_cli.find("tests", silent)


@pytest.mark.parametrize("version", ["v3.260.0", "v3.274.1", "v3.999.0-alpha.1"])
def test_find_takes_a_supported_cli_on_path(shell: Path, version: str) -> None:
    on_path = program(shell / "pulumi", f"echo {version}")
    assert found() == PulumiCli(on_path, version)
    assert pulumi_cli.is_installed()


@pytest.mark.parametrize("text", ["echo v3.259.9", "echo v4.0.0", "echo v2.25.0", "echo nonsense", "exit 1"])
def test_find_passes_over_an_unsupported_cli_on_path(shell: Path, tmp_path: Path, text: str) -> None:
    program(shell / "pulumi", text)
    assert found() == PulumiCli(tmp_path / "built" / "pulumi", "v3.274.1")
    assert not pulumi_cli.is_installed()


def test_find_builds_a_cli_where_there_is_none(tmp_path: Path) -> None:
    assert found() == PulumiCli(tmp_path / "built" / "pulumi", "v3.274.1")
    assert not pulumi_cli.is_installed()


def test_find_prefers_the_named_cli(shell: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(shell / "pulumi", "echo v3.270.0")
    named = program(tmp_path / "other" / "pulumi", "echo v3.271.0")
    monkeypatch.setenv("PULUMI", str(named))
    assert found() == PulumiCli(named, "v3.271.0")
    assert pulumi_cli.is_installed()


@pytest.mark.parametrize(
    ("text", "said"),
    [("echo v3.100.0", "Pulumi v3.100.0"), ("exit 1", "cannot be run"), (None, "cannot be run")],
)
def test_find_rejects_a_named_cli_that_is_unsupported(
    shell: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, said: str
) -> None:
    program(shell / "pulumi", "echo v3.270.0")
    named = tmp_path / "other" / "pulumi"
    if text:
        program(named, text)
    monkeypatch.setenv("PULUMI", str(named))
    with pytest.raises(SandboxError, match=said) as caught:
        found()
    assert (caught.value.code, caught.value.place) == ("cli-unsupported", f"PULUMI={named}")
    assert "unset PULUMI" in caught.value.fix


def plugin(home: Path, version: str | None = None) -> Path:
    """Return where the cache below a home has the provider of the package."""
    known = version or metadata.version(f"pulumi-{PACKAGE}")
    return home / "plugins" / f"resource-{PACKAGE}-v{known}" / PROGRAM


def is_local(file: Path) -> bool:
    return not file.is_symlink() and MODULES[PACKAGE] in file.read_text() and os.access(file, os.X_OK)


def test_furnish_puts_a_local_provider_where_none_is_installed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert pulumi_cli.furnish(home) == dict.fromkeys(MODULES, LOCAL)
    assert is_local(plugin(home))
    before = plugin(home).stat()
    pulumi_cli.furnish(home)
    assert plugin(home).stat() == before


def test_furnish_leaves_a_provider_on_path_to_the_cli(shell: Path, tmp_path: Path) -> None:
    on_path = program(shell / PROGRAM, "")
    assert pulumi_cli.furnish(tmp_path / "home")[PACKAGE] == str(on_path)
    assert not plugin(tmp_path / "home").exists()


@pytest.mark.parametrize("named", [False, True])
def test_furnish_links_a_provider_of_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, named: bool
) -> None:
    cache, home = tmp_path / "user" / ".pulumi", tmp_path / "home"
    if named:
        cache = tmp_path / "cache"
        monkeypatch.setenv("PULUMI_HOME", str(cache))
    installed = program(plugin(cache), "")
    for _ in range(2):
        assert pulumi_cli.furnish(home)[PACKAGE] == str(installed)
        assert plugin(home).readlink() == installed
    monkeypatch.setenv("PULUMI_HOME", str(home))  # as `sandbox env` exports it
    assert pulumi_cli.furnish(home)[PACKAGE] == str(installed)
    assert plugin(home).readlink() == installed


def test_furnish_follows_what_is_installed_and_removed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    pulumi_cli.furnish(home)
    installed = program(plugin(tmp_path / "user" / ".pulumi"), "")
    assert pulumi_cli.furnish(home)[PACKAGE] == str(installed)
    assert plugin(home).readlink() == installed
    installed.unlink()
    assert pulumi_cli.furnish(home)[PACKAGE] == LOCAL
    assert is_local(plugin(home))


def test_furnish_follows_the_version_of_the_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    pulumi_cli.furnish(home)

    def version(_name: str) -> str:
        return "99.0.0"

    monkeypatch.setattr(metadata, "version", version)
    assert pulumi_cli.furnish(home)[PACKAGE] == LOCAL
    assert is_local(plugin(home, "99.0.0"))


def test_furnish_passes_over_a_package_without_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    assert pulumi_cli.furnish(tmp_path / "home") == dict.fromkeys(MODULES, "not installed")
    assert not (tmp_path / "home").exists()


def test_the_cli_finds_every_provider_that_furnish_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(plugin(tmp_path / "user" / ".pulumi"), "")
    home = tmp_path / "pulumi"
    assert {*pulumi_cli.furnish(home).values()} > {LOCAL}
    monkeypatch.undo()
    folder = cli_folder.furnish(tmp_path / "cli")
    environment = {**cli_folder.environment(folder, tmp_path), "PULUMI_HOME": str(home)}
    command = ["pulumi", "plugin", "ls", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert {each["name"]: each["version"] for each in json.loads(done.stdout)} == {
        package: metadata.version(f"pulumi-{package}") for package in MODULES
    }


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_a_local_provider_ends_with_its_engine(tmp_path: Path, how: str) -> None:
    pulumi_cli.furnish(tmp_path / "home")
    (file,) = (tmp_path / "home").rglob(PROGRAM)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [str(file), "127.0.0.1:1"], stdin=pipe, stdout=pipe, start_new_session=True
    ) as engine:
        assert engine.stdout is not None
        assert engine.stdin is not None
        try:
            assert int(engine.stdout.readline())
            if how == "closed":
                os.killpg(engine.pid, signal.SIGINT)
            else:
                engine.stdin.close()
            _, alive = psutil.wait_procs([psutil.Process(engine.pid)], timeout=HANG)
            assert alive == []
        finally:
            engine.kill()
