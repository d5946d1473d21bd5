"""The configuration a program is given, from Pulumi.yaml and Pulumi.STACK.yaml."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from components.errors import CredfleetError
from operations.stack.project_file import Project
from operations.stack.stack_file import Fault, ProgramConfig, StackFile, read_config
from tests.support.cases import tabled

Given = Callable[[str, str], ProgramConfig]
Read = Callable[[str, str], tuple[ProgramConfig, Sequence[Fault]]]


def _decrypted(ciphertext: str) -> str:
    if ciphertext == "damaged":
        raise CredfleetError(
            code="ciphertext-unreadable", place="-", problem="it was damaged", fix="restore it"
        )
    return ciphertext.removeprefix("sealed-")


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read the `config:` of a project and of a stack (both YAML)."""

    def make(project: str, stack: str) -> tuple[ProgramConfig, Sequence[Fault]]:
        (tmp_path / "Pulumi.yaml").write_text(f"name: shop\nruntime: python\nconfig:\n{project or '  {}'}\n")
        (tmp_path / "Pulumi.dev.yaml").write_text(f"config:\n{stack or '  {}'}\n")
        stack_file = StackFile.load(tmp_path / "Pulumi.dev.yaml", "shop")
        return read_config(Project.load(tmp_path), stack_file, _decrypted)

    return make


@pytest.fixture
def given(read: Read) -> Given:
    """Return what a program gets of files without a fault."""

    def make(project: str, stack: str) -> ProgramConfig:
        config, faults = read(project, stack)
        assert not faults
        return config

    return make


# What the Pulumi CLI, v3.272.0, put into PULUMI_CONFIG for each of these.
@tabled("written, text")
def test_all_values_are_texts_as_the_cli_writes_them(given: Given, written: str, text: str):
    assert given("", f"  shop:key: {written}").values == {"shop:key": text}


def test_a_default_that_is_whole_is_an_integer(given: Given):
    one, some = "{type: integer, default: 5.0}", "{type: array, items: {type: integer}, default: [1, 2.0]}"
    assert given(f"  one: {one}\n  some: {some}", "").values == {"shop:one": "5", "shop:some": "[1,2]"}


def test_keys_without_namespace_get_the_projects(given: Given):
    config = given("  own: 1\n  gcp:project: p", "  mine: 2\n  gcp:zone: z")
    assert config.values == {"gcp:project": "p", "gcp:zone": "z", "shop:mine": "2", "shop:own": "1"}


def test_a_stacks_value_wins_over_the_projects_default(given: Given):
    declared = "  colour: {type: string, default: red}\n  size: {default: {w: 1}}\n  aws:region: {value: r}"
    config = given(declared, "  shop:colour: blue\n  aws:region: s")
    assert config.values == {"aws:region": "s", "shop:colour": "blue", "shop:size": '{"w":1}'}


def test_secrets_arrive_decrypted_and_their_keys_are_listed_at_any_depth(given: Given):
    stack = (
        "  shop:token: {secure: sealed-t0ken}\n"
        "  shop:deep: {list: [{secure: sealed-1}], open: o}\n"
        "  shop:plain: p"
    )
    config = given("", stack)
    assert config.secret_keys == ("shop:deep", "shop:token")
    assert config.values["shop:token"] == "t0ken"
    assert config.values["shop:deep"] == '{"list":["1"],"open":"o"}'
    assert "t0ken" not in repr(config)


def test_each_value_that_cannot_be_decrypted_is_named(read: Read):
    config, faults = read(
        "", "  a: {secure: damaged}\n  b: {c: [{secure: damaged}]}\n  d: {secure: sealed-x}"
    )
    places = [("shop:a",), ("shop:b", "c", 0)]
    assert [*faults] == [Fault(each, "it was damaged", "restore it") for each in places]
    assert [*config.sealed] == places


def test_a_key_of_the_old_form_is_the_one_without_its_middle(given: Given):
    config = given("  aws:config:region: {value: r}", "  shop:config:legacy: v\n  gcp:config:zone: z")
    assert config.values == {"aws:region": "r", "gcp:zone": "z", "shop:legacy": "v"}


def test_all_that_is_missing_is_told_at_once_and_types_are_for_the_cli(read: Read):
    declared = "  a: {type: integer}\n  b: {type: object}\n  c: {secret: true}\n  d: {default: d}"
    _, faults = read(declared, "  b: text")
    assert [*faults] == [Fault((each,), "is missing") for each in ("shop:a", "shop:c")]
