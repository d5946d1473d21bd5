"""What Pulumi.yaml says of a program."""

from pathlib import Path

import pytest
from pulumi_sandbox.engine.project.project_file import Project
from pulumi_sandbox.errors import SandboxError


def _load(directory: Path, text: str) -> Project:
    (directory / "Pulumi.yaml").write_text(text)
    return Project.load(directory)


def test_a_project_knows_where_its_program_stacks_environment_and_providers_are(tmp_path: Path):
    project = _load(
        tmp_path,
        "name: shop\n"
        "runtime: {name: python, options: {virtualenv: .venv}}\n"
        "main: app\n"
        "stackConfigDir: stacks\n"
        "plugins: {providers: [{name: shelf, path: shelf}]}\n"
        "packages: {rooms: ./rooms, house: {source: ../house}}\n"
        "description: anything\n",
    )
    assert project.program == tmp_path / "app"
    assert project.stack_files == tmp_path / "stacks"
    assert project.virtualenv == tmp_path / ".venv"
    assert project.providers == {"shelf": tmp_path / "shelf"}
    assert project.packages == {"rooms": tmp_path / "rooms", "house": tmp_path / "../house"}
    assert (project.key("a"), project.key("gcp:b")) == ("shop:a", "gcp:b")


def test_without_options_the_program_runs_with_this_interpreter(tmp_path: Path):
    assert _load(tmp_path, "name: shop\nruntime: python\n").virtualenv is None


@pytest.mark.parametrize(
    ("addition", "named"),
    [
        ("runtime: java", "java"),
        ("runtime: {name: go, options: {race: true}}", "race"),
        ("runtime: {name: nodejs, options: {nodeargs: --inspect}}", "nodeargs"),
        ("runtime: {name: python, options: {toolchain: uv}}", "toolchain"),
        ("runtime: python\npackages: {x: terraform-provider}", "packages.x"),
        ("runtime: python\npackages: {x: {source: ./x, parameters: [y]}}", "packages.x.parameters"),
        ("runtime: python\nbackend: {url: file://~}", "backend"),
        ("runtime: python\noptions: {refresh: sometimes}", "options: {refresh: sometimes}"),
        ("runtime: python\noptions: {other: always}", "options: {other: always}"),
        ("runtime: python\nplugins: {analyzers: []}", "plugins.analyzers"),
    ],
)
def test_what_only_the_genuine_cli_does_is_refused_by_name(tmp_path: Path, addition: str, named: str):
    with pytest.raises(SandboxError, match=named) as caught:
        _load(tmp_path, f"name: shop\n{addition}\n")
    assert caught.value.code == "project-unsupported"


@pytest.mark.parametrize(("wanted", "runs"), [(">=3.0.0", True), ("<3.0.0", False), ("anything", False)])
def test_a_project_runs_only_under_the_release_it_requires(tmp_path: Path, wanted: str, runs: bool):
    text = f"name: shop\nruntime: python\nrequiredPulumiVersion: '{wanted}'\n"
    if runs:
        assert _load(tmp_path, text).name == "shop"
        return
    with pytest.raises(SandboxError, match="it wants Pulumi") as caught:
        _load(tmp_path, text)
    assert caught.value.code == "project-invalid"


@pytest.mark.parametrize(
    ("declaration", "wrong"),
    [
        ("key: 1.5", "is no text"),
        ("key: ", "is no text"),
        ("key: {defualt: 1}", "unknown keys: defualt"),
        ("key: {default: 1, value: 2}", "both a default and a value"),
        ("gcp:key: {default: 1}", "of another namespace"),
        ("key: {type: array}", "without `items"),
    ],
)
def test_a_declaration_the_genuine_cli_would_refuse_is_refused(tmp_path: Path, declaration: str, wrong: str):
    with pytest.raises(SandboxError, match=wrong) as caught:
        _load(tmp_path, f"name: shop\nruntime: python\nconfig:\n  {declaration}\n")
    assert caught.value.code == "project-invalid"


def test_a_program_in_go_is_built_or_has_a_target_to_be_built_at(tmp_path: Path):
    options = "{binary: claims, buildTarget: target}"
    with pytest.raises(SandboxError, match="both a binary and a buildTarget"):
        _load(tmp_path, f"name: shop\nruntime: {{name: go, options: {options}}}\n")


@pytest.mark.parametrize("name", ["", "name: ../../elsewhere", "name: '..'", "name: a/b"])
def test_a_project_whose_name_is_no_name_of_a_folder_is_refused(tmp_path: Path, name: str):
    with pytest.raises(SandboxError, match="name") as caught:
        _load(tmp_path, f"{name}\nruntime: python\n")
    assert caught.value.code == "project-invalid"


def test_a_directory_without_a_project_is_told_with_the_missing_file(tmp_path: Path):
    with pytest.raises(SandboxError) as caught:
        Project.load(tmp_path)
    assert caught.value.code == "file-missing"
    assert caught.value.place == str(tmp_path / "Pulumi.yaml")
