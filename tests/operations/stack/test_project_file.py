"""What Pulumi.yaml says of a program."""

from pathlib import Path

import pytest

from components.documents import Unreadable
from components.errors import CredfleetError
from operations.stack.project_file import Project
from tests.support.cases import tabled


def _load(directory: Path, text: str) -> Project:
    (directory / "Pulumi.yaml").write_text(text)
    return Project.load(directory)


def test_a_project_knows_where_its_program_and_its_stacks_are(tmp_path: Path):
    project = _load(tmp_path, "name: shop\nruntime: java\nmain: app\nstackConfigDir: stacks\n")
    assert (project.program, project.stack_files) == (tmp_path / "app", tmp_path / "stacks")


@tabled("entry, named")
def test_an_entry_of_another_type_is_told_with_its_line(tmp_path: Path, entry: str, named: str):
    with pytest.raises(Unreadable) as caught:
        _load(tmp_path, f"name: shop\nruntime: python\n{entry}\n")
    assert caught.value.code == "yaml-invalid"
    at, _, named = named.partition(" ")
    assert caught.value.place.endswith(f"Pulumi.yaml:{at}")
    assert caught.value.problem.startswith(named)


@pytest.mark.parametrize("name", ["", "name: ../../elsewhere", "name: '..'", "name: a/b"])
def test_a_project_whose_name_is_no_name_of_a_folder_is_refused(tmp_path: Path, name: str):
    with pytest.raises(CredfleetError, match="name") as caught:
        _load(tmp_path, f"{name}\nruntime: python\n")
    assert caught.value.code == "project-invalid"


def test_a_directory_without_a_project_is_told_with_the_missing_file(tmp_path: Path):
    with pytest.raises(Unreadable) as caught:
        Project.load(tmp_path)
    assert caught.value.code == "file-missing"
    assert caught.value.place == str(tmp_path / "Pulumi.yaml")
