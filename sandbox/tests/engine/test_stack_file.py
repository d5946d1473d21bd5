"""A stack's configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.project.stack_file import StackFile
from pulumi_sandbox.errors import SandboxError

_WRITTEN = """\
# who reads this knows why
encryptionsalt: v1:abc
config:
  shop:colour: "blue"  # quoted on purpose
  size: 0x10
  shop:deep:
    list: [1, 2]
    # inside
    text: 'as it is'
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "Pulumi.dev.yaml"
    path.write_text(_WRITTEN)
    return path


def _changed(path: Path) -> StackFile:
    return StackFile.load(path, "shop")


def test_a_file_nobody_changed_is_written_back_byte_for_byte(path: Path):
    _changed(path).save()
    assert path.read_text() == _WRITTEN


def test_a_change_leaves_comments_and_all_other_lines_alone(path: Path):
    file = _changed(path)
    file.set("colour", "red")
    file.set("size", "12")
    file.save()
    assert path.read_text() == _WRITTEN.replace('"blue" ', '"red"  ').replace("0x10", "'12'")


_AS_PEOPLE_WRITE = """\
config:
  size:   12     # blanks as they like
  shop:lists:
    - deep
    -  deeper
  shop:rules: [{only: [one]}, {a: 1,  b: 2}]
  shop:far: {x: 1 , y: 2}
"""


@pytest.mark.parametrize(
    ("key", "value", "changed"),
    [
        ("size", "13", ["  size:   12     # blanks as they like"]),
        ("shop:new.key", "x", []),
        ("shop:lists[2]", "x", []),
        ("shop:lists[0]", "x", ["    - deep"]),
        ("shop:far.x", "3", ["  shop:far: {x: 1 , y: 2}"]),
    ],
)
def test_a_change_leaves_every_other_line_as_it_was_written(
    tmp_path: Path, key: str, value: str, changed: list[str]
):
    path = tmp_path / "Pulumi.dev.yaml"
    path.write_text(_AS_PEOPLE_WRITE)
    file = _changed(path)
    file.set(key, value, path="." in key or "[" in key)
    file.save()
    lines = path.read_text().splitlines()
    assert [line for line in _AS_PEOPLE_WRITE.splitlines() if line not in lines] == changed


def test_a_file_of_mixed_forms_is_written_anew_rather_than_broken(tmp_path: Path):
    path = tmp_path / "Pulumi.dev.yaml"
    path.write_text("config:\n  shop:deep:\n      - a\n  shop:flat:\n  - b\n")
    file = _changed(path)
    file.set("shop:flat[1]", "c", path=True)
    file.save()
    assert _changed(path).config == {"shop:deep": ["a"], "shop:flat": ["b", "c"]}


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        pytest.param("shop:new", "12", "  shop:new: '12'", id="a bare value stays text"),
        pytest.param("deep.n", "12", "    n: 12", id="a number inside a value"),
        pytest.param("deep.t", "true", "    t: true", id="a truth value inside a value"),
        pytest.param("deep.z", "007", "    z: '007'", id="leading zeros stay text"),
        pytest.param("deep.list[2]", "x", "    list: [1, 2, x]", id="behind the last element"),
        pytest.param('deep["a.b"]', "x", "    a.b: x", id="an odd name"),
        pytest.param("fresh.a[0].b", "x", "    - b: x", id="what is missing on the way is made"),
    ],
)
def test_a_place_is_set_as_the_genuine_cli_sets_it(path: Path, key: str, value: str, line: str):
    file = _changed(path)
    file.set(key, value, path="." in key or "[" in key)
    file.save()
    assert line in path.read_text().splitlines()


def test_a_secret_is_written_encrypted_and_never_in_plain(path: Path, crypter: PassphraseCrypter):
    file = _changed(path)
    file.set("deep.token", "hunter2", path=True, crypter=crypter)
    file.save()
    assert "hunter2" not in path.read_text()
    assert crypter.decrypt(_changed(path).config["shop:deep"]["token"]["secure"]) == "hunter2"


def test_the_same_secret_set_again_keeps_the_file_as_it_is(path: Path, crypter: PassphraseCrypter):
    texts: set[str] = set()
    for _ in range(2):
        file = _changed(path)
        file.set("token", "hunter2", crypter=crypter)
        file.save()
        texts.add(path.read_text())
    assert len(texts) == 1


@pytest.mark.parametrize("key", ["deep.list[9]", "colour.inside", "deep.list.key"])
def test_a_path_through_a_plain_value_is_refused(path: Path, key: str):
    with pytest.raises(SandboxError) as caught:
        _changed(path).set(key, "x", path=True)
    assert caught.value.code == "config-path"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("environment: [base]", "environment"),
        ("encryptedkey: abc", "encryptedkey"),
        ("secretsprovider: awskms://alias/x", "awskms"),
    ],
)
def test_what_only_the_genuine_cli_does_is_refused_by_name_where_a_key_is_wanted(
    path: Path, text: str, named: str
):
    path.write_text(f"{text}\nconfig: {{shop:a: b}}\n")
    file = _changed(path)
    assert file.config == {"shop:a": "b"}
    with pytest.raises(SandboxError, match=named) as caught:
        file.refuse_unsupported()
    assert caught.value.code == "stack-unsupported"


@pytest.mark.parametrize(
    ("text", "at", "cause"),
    [
        ("config:\n  a: 1\n  a: hunter2\n", "3:3", "the same key stands twice"),
        ("config:\n  a: [hunter2\n", "3:1", "the list that [ opens in line 2 is not closed"),
        ("- hunter2\n", "1:1", "it holds no map of keys"),
        ("config: hunter2\n", "1:1", "config is no map of keys"),
        ("config: []\n", "1:1", "config is no map of keys"),
        ("config:\n  shop:a: 1\n  a: hunter2\n", "3:3", "a and shop:a are one key"),
        ("config:\n  shop:config:a: 1\n  a: hunter2\n", "3:3", "a and shop:config:a are one key"),
        ("config:\n  a:b:c: hunter2\n", "2:3", "a:b:c is no key of configuration"),
        ("config:\n  a:config:b:c: hunter2\n", "2:3", "a:config:b:c is no key of configuration"),
    ],
)
def test_a_mistake_is_told_with_its_place_but_not_its_text(path: Path, text: str, at: str, cause: str):
    path.write_text(text)
    with pytest.raises(SandboxError) as caught:
        _changed(path)
    assert caught.value.code == "yaml-invalid"
    assert caught.value.place == f"{path}:{at}"
    assert caught.value.cause.startswith(cause)
    assert "hunter2" not in str(caught.value)


def test_where_a_value_stands_is_known_by_its_full_key_whatever_the_file_writes(path: Path):
    file = _changed(path)
    assert [
        str(file.at(*steps)).rpartition("yaml:")[2]
        for steps in (("shop:size",), ("shop:deep", "list", 1), ("shop:deep", "nothing"), ("shop:none",))
    ] == ["5:3", "7:15", "6:3", "3:1"]


def test_a_missing_file_is_a_stack_without_configuration(tmp_path: Path):
    file = _changed(tmp_path / "Pulumi.other.yaml")
    assert (file.config, file.salt) == ({}, "")
