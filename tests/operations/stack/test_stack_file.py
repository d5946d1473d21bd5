"""A stack's configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.documents import Unreadable
from components.errors import CredfleetError
from operations.stack.stack_file import StackFile
from operations.stack.yaml_file import load_yaml, merge
from tests.support.cases import tabled

_WRITTEN = """\
# who reads this knows why
encryptionsalt: v1:abc
config:
  shop:colour: "blue"  # quoted on purpose
  size: 0x10
  shop:deep:
    list: [1, 2]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "Pulumi.dev.yaml"
    path.write_text(_WRITTEN)
    return path


def _loaded(path: Path) -> StackFile:
    return StackFile.load(path, "shop")


_AS_PEOPLE_WRITE = """\
config:
  size: 12  # as they like
  # about lists
  shop:lists:
    - deep
    - deeper
  shop:rules: [{only: [one]}, {a: 1, b: 2}]
  shop:far: {x: 1, y: 2}
"""


@tabled("key, value, changed")
def test_a_change_leaves_every_other_line_as_it_was_written(
    tmp_path: Path, key: str, value: object, changed: list[str]
):
    path = tmp_path / "Pulumi.dev.yaml"
    path.write_text(_AS_PEOPLE_WRITE)
    config = load_yaml(path)["config"] | {key: value}
    lines = merge(_AS_PEOPLE_WRITE, {"config": config}).splitlines()
    assert [line for line in _AS_PEOPLE_WRITE.splitlines() if line not in lines] == changed


def test_a_file_of_mixed_forms_is_written_whole_rather_than_broken(tmp_path: Path):
    path = tmp_path / "Pulumi.dev.yaml"
    former = "config:\n  shop:deep:\n      - a\n  shop:flat:\n  - b\n"
    document = {"config": {"shop:deep": ["a"], "shop:flat": ["b", "c"]}}
    path.write_text(merge(former, document))
    assert load_yaml(path) == document


@tabled("text, named")
def test_what_only_the_cli_does_is_refused_by_name_where_a_key_is_wanted(path: Path, text: str, named: str):
    path.write_text(f"{text}\nconfig: {{shop:a: b}}\n")
    file = _loaded(path)
    assert file.config == {"shop:a": "b"}
    with pytest.raises(CredfleetError, match=named) as caught:
        file.refuse_unsupported()
    assert caught.value.code == "stack-unsupported"


@tabled("text, at, problem")
def test_a_mistake_is_told_with_its_place_but_not_its_text(path: Path, text: str, at: str, problem: str):
    path.write_text(text)
    with pytest.raises(Unreadable) as caught:
        _loaded(path)
    assert caught.value.code == "yaml-invalid"
    assert caught.value.place == f"{path}:{at}"
    assert caught.value.problem.startswith(problem)
    assert "hunter2" not in str(caught.value)


def test_a_missing_file_is_a_stack_without_configuration(tmp_path: Path):
    file = _loaded(tmp_path / "Pulumi.other.yaml")
    assert (file.config, file.salt) == ({}, "")
