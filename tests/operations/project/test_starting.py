"""`credfleet init`: what it writes is sound and declares a claim, and what is there stays byte for byte.

That the new project comes up on an API server is tried by `.github/scripts/try-package`.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PathDistribution as Distribution
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from operations.main import app
from operations.project import commands
from operations.project.starting import ROOMS
from operations.stack.at_rest import StackAtRest
from tests.support.cases import tabled
from tests.support.recorder import record
from tests.support.stacks import ROOT

TEMPLATES = ROOT / "operations" / "project" / "template"
EVERY_ROOM = ",".join(ROOMS)
WRITTEN = {
    ".github/workflows/ci.yml",
    ".gitignore",
    ".python-version",
    "Makefile",
    "Pulumi.dev.yaml",
    "Pulumi.yaml",
    "__main__.py",
    "policies/PulumiPolicy.yaml",
    "policies/__main__.py",
    "requirements.txt",
    "stack.schema.json",
    "stacks/dev/passphrase",
}
CLEANER = "stacks/dev/cleaners/sandbox.sh"
"""Written where there are accounts."""
EXISTING = {
    ".gitignore": "/node_modules\n",
    "Makefile": "all:\n\techo ours\n",
    "Pulumi.dev.yaml": "config: {}   # ours\n",
    "Pulumi.yaml": "name: ours\nruntime: python\n",
    "__main__.py": "import pulumi\r\n",
    "components/__init__.py": "raise ImportError('ours')\n",
    "policies/PulumiPolicy.yaml": "runtime: python\n",
}

METADATA = {"METADATA": "Metadata-Version: 2.4\nName: any\nVersion: 0.1.0\n"}


@pytest.fixture(autouse=True)
def no_passphrase_of_ones_own(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    monkeypatch.chdir(project.parent)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def files(folder: Path) -> Mapping[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize(
    "told",
    [
        (),
        ("--cloud", "azure"),
        ("--rooms", EVERY_ROOM, "--cloud", "gcp"),
        ("--rooms", "secretStores"),
        ("--rooms", ""),
    ],
    ids=lambda told: " ".join(told) or "as it is",
)
def test_a_new_project_is_sound(told: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("init", "mine", *told).exit_code == 0
    assert {*files(Path("mine"))} - {CLEANER} == WRITTEN
    monkeypatch.chdir("mine")
    checked = run("config", "check")
    assert checked.output.startswith("✓ the configuration of stack dev is sound\n")


@pytest.mark.parametrize("told", [(), ("--here",), (".",)], ids=lambda told: " ".join(told) or "init")
@pytest.mark.parametrize("has", ["nothing", "a repository", "a README"])
def test_the_folder_one_is_in_becomes_a_project(
    told: tuple[str, ...], has: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {"nothing": {}, "a repository": {".git/HEAD": "ours"}, "a README": {"README.md": "ours"}}[has]
    folder = tmp_path / "ours"
    folder.mkdir()
    for name, text in there.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    began = run("init", *told)
    if has == "a README" and told != ("--here",):
        assert began.stderr.endswith("add to what is there: credfleet init --here\n")
        began = run("init", "--here")
    assert began.exit_code == 0
    assert {*files(folder)} - {CLEANER} == WRITTEN | {*there}
    assert yaml.safe_load(Path("Pulumi.yaml").read_text())["name"] == "ours"
    assert "\n  make up  # " in began.stdout
    assert run("config", "check").exit_code == 0


@tabled("encrypted_by, cloud")
def test_a_cluster_of_ones_own_gets_a_stack_and_our_workflows(
    encrypted_by: str, cloud: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = "arn:aws:eks:eu-1:1:cluster/ours # not this"
    made = run("init", "mine", "--cluster", context, "--secrets-provider", encrypted_by)
    assert made.exit_code == 0
    assert ("bootstrap --stack prod --repo OWNER/REPO > setup.sh" in made.output) == bool(cloud)
    monkeypatch.chdir("mine")
    assert run("config", "check", "--stack", "prod").exit_code == 0
    prod = yaml.safe_load(Path("Pulumi.prod.yaml").read_text())
    assert prod["config"]["credfleet:cluster"] == {"context": context}
    assert prod.get("secretsprovider", "passphrase") == encrypted_by
    if not cloud:  # without one, nobody could sign in
        assert [each.name for each in Path(".github").rglob("*.yml")] == ["ci.yml"]
        return
    _assert_whole(Path())
    listed = subprocess.run([".github/scripts/stacks"], capture_output=True, text=True, check=True).stdout
    assert json.loads(listed) == [{"stack": "prod", "cloud": cloud, "clouds": [cloud]}]


def _assert_whole(project: Path) -> None:
    """Assert that its workflows are this repository's, and call nothing that is not there."""
    names = {str(each.relative_to(project)) for each in (project / ".github").rglob("*") if each.is_file()}
    ci = ".github/workflows/ci.yml"
    assert {n for n in names if n.startswith(".github/workflows/")} == {
        str(each.relative_to(ROOT)) for each in (ROOT / ".github/workflows").glob("*.yml")
    }
    for name in names - {ci}:
        assert (project / name).read_bytes() == (ROOT / name).read_bytes()
        assert os.access(project / name, os.X_OK) == os.access(ROOT / name, os.X_OK)
    texts = "\n".join((project / name).read_text() for name in names)
    called = set(re.findall(r"(?:uses: \./|run: |[ (])(\.github/[\w/.-]+\w)", texts))
    assert len(called) > 10
    assert {each for each in called if not (project / each).exists()} == set()
    makefile = (project / "Makefile").read_text()
    assert all(
        f"\n{each}:" in makefile for each in re.findall(r"^ *(?:- run: )?make (?:-s )?(\w+)", texts, re.M)
    )


def test_a_stack_for_ones_own_cluster_says_that_it_declares_nothing_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run("init", "mine", "--rooms", "services", "--cluster", "ours").exit_code == 0
    monkeypatch.chdir("mine")
    assert run("config", "check", "--stack", "prod").exit_code == 0


def test_a_new_project_claims_an_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run("init", "mine")
    monkeypatch.chdir("mine")
    passphrase = Path("stacks/dev/passphrase").read_text().strip()
    at_rest = StackAtRest.find(Path.cwd(), "dev", backend_dir=tmp_path / "backend")
    config, _ = at_rest.read(at_rest.unlock(passphrase).decrypt)

    def program() -> None:
        runpy.run_path(str(Path("__main__.py").absolute()))

    recorder = record(
        program,
        config=config.values,
        secret_keys=config.secret_keys,
        preview=True,
    )

    claims = recorder.of_type("pulumi-python:dynamic/credfleet:AccountClaim")
    assert [(one.inputs["tenant"], one.inputs["type"]) for one in claims.values()] == [("acme", "aws")]
    assert {"accountPool", "tenants"} <= set(recorder.stack_outputs)


@pytest.mark.parametrize("missing", ["", "__main__.py", "Pulumi.dev.yaml", "policies/PulumiPolicy.yaml"])
def test_what_a_project_has_stays_byte_for_byte_and_what_it_lacks_is_added(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "ours"
    kept = {
        name: text.encode() for name, text in EXISTING.items() if name != missing or name == "Pulumi.yaml"
    }
    for name, content in kept.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    monkeypatch.chdir(folder)

    assert run("init", "--here").exit_code == 0

    now = files(folder)
    assert {name: now[name] for name in kept} == kept
    policies = {"policies/__main__.py"} if "policies/PulumiPolicy.yaml" in kept else set[str]()
    passphrase = {"stacks/dev/passphrase"} if "Pulumi.dev.yaml" in kept else set[str]()
    assert set(now) - {CLEANER} == (WRITTEN | set(kept)) - policies - passphrase
    assert (CLEANER in now) == (missing == "Pulumi.dev.yaml")
    again = run("init", "--here", "--cluster", "ours")
    assert "requirements.txt" not in again.output.partition("Next")[2], "it has what the first run wrote"
    assert ("from credfleet import" in again.output) == (missing != "__main__.py")
    assert "pulumi stack init prod" in again.output
    assert {name: text for name, text in files(folder).items() if name != "Pulumi.prod.yaml"} == now


@tabled("told, code")
def test_what_cannot_be_begun_is_refused_before_anything_is_written(
    told: tuple[str, ...], code: str, project: Path
) -> None:
    before = files(project.parent)
    refused = run(*told, "--output", "json")
    assert refused.exit_code != 0
    assert f'"code": "{code}"' in refused.stdout
    assert files(project.parent) == before


@pytest.mark.parametrize("name", ["2026", "Flotte d'é", "x" * 200, "..."])
def test_a_folder_of_any_name_becomes_a_project(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("init", name, "--rooms", EVERY_ROOM).exit_code == 0
    monkeypatch.chdir(name)
    assert run("config", "check").output.startswith("✓ the configuration of stack dev is sound\n")
    project = yaml.safe_load(Path("Pulumi.yaml").read_text())["name"]
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", project)


def test_a_program_that_has_another_place_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text(
        "name: ours\nruntime: python\nmain: app.py\nstackConfigDir: stacks\n"
    )
    (tmp_path / "app.py").write_text("import pulumi\n")
    monkeypatch.chdir(tmp_path)
    assert "from credfleet import Fleet" in run("init", "--here").output
    assert (tmp_path / "app.py").read_text() == "import pulumi\n"
    assert not (tmp_path / "__main__.py").exists()
    first, *_ = (tmp_path / "stacks" / "Pulumi.dev.yaml").read_text().splitlines()
    assert (tmp_path / "stacks" / first.partition("$schema=")[2]).resolve() == tmp_path / "stack.schema.json"


def test_a_program_in_another_language_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "Pulumi.yaml").write_text("name: ours\nruntime: nodejs\n")
    monkeypatch.chdir(project)
    assert "not-python" in run("init", "--here", "--output", "json").stdout


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "somebody_is_there", lambda: True)


@pytest.mark.usefixtures("terminal")
def test_on_a_terminal_it_asks_four_questions() -> None:
    done = CliRunner().invoke(app, ["init", "mine"], input="services\n\nfleet-prod\npassphrase\n")
    assert re.findall(r"(Rooms|Cloud|Context|Who) ", done.stderr) == ["Rooms", "Cloud", "Context", "Who"]
    dev = Path("mine/Pulumi.dev.yaml").read_text()
    assert ("credfleet:services" in dev, "credfleet:accountPool" in dev) == (True, False)
    assert "fleet-prod" in Path("mine/Pulumi.prod.yaml").read_text()


@pytest.mark.usefixtures("terminal")
def test_what_an_option_says_is_not_asked_and_a_cloud_is_asked_for_until_it_is_one() -> None:
    done = CliRunner().invoke(app, ["init", "mine", "--rooms", "accountPool"], input="oracle\ngcp\n\n")
    assert ("Rooms" in done.stderr, done.stderr.count("Cloud of")) == (False, 2)
    assert "type: gcp" in Path("mine/Pulumi.dev.yaml").read_text()


@tabled("told, line")
def test_it_depends_on_the_package_from_where_it_was_installed(
    told: str | None, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_: Distribution, name: str) -> str | None:
        return METADATA.get(name, told)

    monkeypatch.setattr(Distribution, "read_text", read)
    assert run("init", "mine").exit_code == 0
    lines = [each for each in Path("mine/requirements.txt").read_text().splitlines() if each[0] != "#"]
    assert lines == [line]


def test_with_pull_secrets_it_needs_the_sdk_of_google_cloud_and_says_so_where_that_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pulumi_gcp", None)
    assert "pip install" not in run("init", "other").output
    assert "pip install -r mine/requirements.txt" in run("init", "mine", "--rooms", "pullSecrets").output
    assert "credfleet[gcp]" in Path("mine/requirements.txt").read_text()
    assert "credfleet[gcp]" not in Path("other/requirements.txt").read_text()


def test_its_workflows_pin_actions_that_this_repository_uses_by_their_commits() -> None:
    def used(folder: Path) -> set[str]:
        texts = [each.read_text() for each in folder.rglob("*.y*ml*")]
        return {line.strip() for text in texts for line in re.findall(r"uses: ([^.\n].*)", text)}

    ours = used(TEMPLATES)
    assert len(ours) == 3
    assert [line for line in ours if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", line)] == []
    assert {line.partition("@")[0] for line in ours} <= {
        line.partition("@")[0] for line in used(ROOT / ".github")
    }


@pytest.mark.parametrize(
    ("code", "fix"),
    [(3, "export PULUMI_BACKEND_URL=…"), (6, "pulumi stack init prod --secrets-provider 'awskms://alias/k'")],
)
def test_make_preview_without_a_backend_or_a_stack_says_the_fix_below_what_pulumi_says(
    code: int, fix: str, tmp_path: Path
) -> None:
    run("init", "mine", "--cluster", "ours", "--secrets-provider", "awskms://alias/k")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, line in (("pulumi", f"echo error: of Pulumi; exit {code}"), ("credfleet", "exit 0")):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["make", "-s", "preview", "STACK=prod"],
        cwd="mine",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    first, second = done.stdout.splitlines()
    assert (first, second.startswith(f"→ {fix}")) == ("error: of Pulumi", True)
