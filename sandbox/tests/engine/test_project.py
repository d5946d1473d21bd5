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


@pytest.mark.parametrize(
    ("wanted", "runs"),
    [
        (">=3.0.0", True),
        ("<3.0.0", False),
        ("3.x", True),
        ("", True),
        ("anything", False),
        (">=3.0.0.0", False),
    ],
)
def test_a_project_runs_only_under_the_release_it_requires(tmp_path: Path, wanted: str, runs: bool):
    text = f"name: shop\nruntime: python\nrequiredPulumiVersion: '{wanted}'\n"
    if runs:
        assert _load(tmp_path, text).name == "shop"
        return
    with pytest.raises(SandboxError, match=r"it wants Pulumi|is no range of releases") as caught:
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
        ("key: {type: array, items: {items: text}}", "without `items"),
        ("key: {type: array, items: 5}", "a type that is no text"),
        ("key: {type: [string]}", "a type that is no text"),
        ("key: {secret: 5}", "not true or false"),
        ("key: {default: [2026-01-01]}", "a date"),
        ("key: {type: integer, default: abc}", "not of its type, integer"),
        ("key: {type: boolean, default: 3}", "not of its type, boolean"),
        ("key: {type: string, default: 3}", "not of its type, string"),
        ("key: {type: array, items: {type: string}, default: [1, 2]}", "not of its type, array<string>"),
        ("key: {type: text, default: abc}", "a type that there is not"),
        ("key: {type: array, items: {type: text}}", "a type that there is not"),
        ("a:b:c: {value: 1}", "is no key"),
    ],
)
def test_a_declaration_the_genuine_cli_would_refuse_is_refused(tmp_path: Path, declaration: str, wrong: str):
    with pytest.raises(SandboxError, match=wrong) as caught:
        _load(tmp_path, f"name: shop\nruntime: python\nconfig:\n  {declaration}\n")
    assert caught.value.code == "project-invalid"


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ("config: 5", "3:1 config is not a map"),
        ("main: 5", "3:1 main is not a text"),
        ("main: [a]", "3:1 main is not a text"),
        ('main: "a\\0b"', "3:1 main names no folder"),
        ("stackConfigDir: 5", "3:1 stackConfigDir is not a text"),
        (f"stackConfigDir: {'a' * 5_000}", "3:1 stackConfigDir names no folder"),
        ("plugins: 5", "3:1 plugins is not a map"),
        ("plugins: {providers: 5}", "3:11 plugins.providers is not a list"),
        ("plugins: {providers: [5]}", "3:23 plugins.providers[0] does not say"),
        ("plugins: {providers: [{name: [a]}]}", "3:24 plugins.providers[0].name is not a text"),
        ("packages: 5", "3:1 packages is not a map"),
        ("options: 5", "3:1 options is not a map"),
        ("runtime: [python]", "2:1 runtime is not a text"),
        ("runtime: {name: [python]}", "2:11 runtime.name is not a text"),
        ("runtime: {name: python, options: 5}", "2:25 runtime.options is not a map"),
        (
            "runtime: {name: python, options: {virtualenv: 5}}",
            "2:35 runtime.options.virtualenv is not a text",
        ),
        ("runtime: {name: nodejs, options: {typescript: 5}}", "2:35 runtime.options.typescript is not true"),
        ("runtime: {name: go, options: {binary: 5}}", "2:31 runtime.options.binary is not a text"),
    ],
)
def test_an_entry_of_another_type_is_told_with_its_line(tmp_path: Path, entry: str, named: str):
    runtime = "" if entry.startswith("runtime") else "runtime: python\n"
    with pytest.raises(SandboxError) as caught:
        _load(tmp_path, f"name: shop\n{runtime}{entry}\n")
    assert caught.value.code == "yaml-invalid"
    at, _, named = named.partition(" ")
    assert caught.value.place.endswith(f"Pulumi.yaml:{at}")
    assert caught.value.cause.startswith(named)


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
