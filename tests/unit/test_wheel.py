"""What the wheel holds: all code below one name, which no folder of the project that uses it can hide.

That the wheel installs is tried by hand (docs/package.md); this is what goes into it.
"""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import build_wheel
import credfleet
from tests.support.cases import tabled
from tests.support.stacks import ROOT

FROZEN = (ROOT / "tests" / "dynamic" / "frozen_paths.txt").read_text().split()
OF_THE_PROJECT = ("components", "operations", "policies", "pack", "rule", "aso")
"""Names of folders and files that a project of somebody else may have, and the checkout has."""

IN_A_PROJECT = """
import importlib, json, pickletools, base64, sys
from pulumi.dynamic.dynamic import serialize_provider

paths = json.loads(sys.argv[1])
for path in paths:
    module, name = path.split(":")
    provider = getattr(importlib.import_module(module), name)
    pickled = base64.b64decode(serialize_provider(provider()))
    texts = [text for _, text, _ in pickletools.genops(pickled) if isinstance(text, str)]
    assert texts == [module, name], texts
import credfleet.policies.pack, credfleet.operations.main
from credfleet.operations.cli.failures import PAGES, as_document
from credfleet.components.errors import CredfleetError
for code in PAGES:
    error = CredfleetError(code=code, place="here", problem="it is so", fix="fix it")
    with open(as_document(error)["error"]["page"].partition("#")[0]): pass
from credfleet import AccountPool
print(AccountPool.__module__, len(credfleet.policies.pack.POLICIES))
"""

EACH_COMMAND = """
from typer.main import get_command
from credfleet.operations.main import app
commands = get_command(app).commands
print(*(commands[word].name for word in commands))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site-packages")
    build_wheel.stage(ROOT, folder)
    return folder


def python(installed: Path, project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the interpreter in a project's folder, whose own modules come first, as a program's do."""
    path = os.pathsep.join(map(str, (project, installed)))
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *words], cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def hide(project: Path) -> None:
    for name in OF_THE_PROJECT:
        (project / f"{name}.py").write_text(f"raise ImportError('{name} is the project\\'s own')")


def as_json(paths: list[str]) -> str:
    return "[" + ",".join(f'"{path}"' for path in paths) + "]"


def test_a_projects_own_folders_hide_nothing_and_states_name_the_one_name(
    installed: Path, tmp_path: Path
) -> None:
    hide(tmp_path)
    paths = [f"credfleet.{path}" for path in FROZEN]

    done = python(installed, tmp_path, "-c", IN_A_PROJECT, as_json(paths))

    assert done.returncode == 0, done.stderr
    module, policies = done.stdout.split()
    assert (module, int(policies) > 10) == ("credfleet.components.account_pool.component", True)


def test_each_command_is_found_in_a_project_with_folders_of_its_own(installed: Path, tmp_path: Path) -> None:
    hide(tmp_path)

    done = python(installed, tmp_path, "-c", EACH_COMMAND)

    assert done.returncode == 0, done.stderr
    assert {"init", "sandbox", "pool", "stores"} <= set(done.stdout.split())


def test_a_stack_that_was_deployed_from_a_checkout_finds_its_providers_by_one_line(
    installed: Path, tmp_path: Path
) -> None:
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "__init__.py").write_text("from credfleet.components import __path__\n")

    done = python(installed, tmp_path, "-c", IN_A_PROJECT, as_json(FROZEN))

    assert done.returncode == 0, done.stderr


def test_both_packages_are_built_with_what_the_control_plane_is_built_from(installed: Path) -> None:
    project = tomllib.loads((installed / "pyproject.toml").read_text(encoding="utf-8"))

    assert project["tool"]["uv"]["build-backend"]["module-name"] == ["credfleet", "pulumi_sandbox"]
    assert (installed / "pulumi_sandbox" / "control-plane" / "go.mod").is_file()


@tabled("line")
def test_an_import_that_would_find_a_projects_own_folder_is_refused(tmp_path: Path, line: str) -> None:
    checkout, folder = tmp_path / "checkout", tmp_path / "wheel"
    for name in (
        "components",
        "operations",
        "credfleet",
        ".github",
        "docs",
        "sandbox/pulumi_sandbox",
        "stacks/dev/crds",
    ):
        (checkout / name).mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    shutil.copytree(ROOT / "policies", checkout / "policies")
    (checkout / "policies" / "new.py").write_text(f"{line}\n")
    folder.mkdir()

    with pytest.raises(ImportError, match=r"credfleet/policies/new\.py imports (components|operations|rule)"):
        build_wheel.stage(checkout, folder)


def test_the_public_names_are_the_ones_that_a_type_checker_sees() -> None:
    tree = ast.parse((ROOT / "credfleet" / "__init__.py").read_text(encoding="utf-8"))
    imported = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("components")
        for alias in node.names
    }
    listed = {name for name in dir(credfleet) if name[0].isupper() and name not in ("Any", "Final")}

    assert {name for _, name in imported if name[0].isupper()} == listed - {"TYPE_CHECKING"}
    for module, name in imported:
        assert getattr(credfleet, name) is getattr(__import__(str(module), fromlist=[name]), name)
    with pytest.raises(AttributeError, match="AccountPoll"):
        _ = credfleet.AccountPoll
