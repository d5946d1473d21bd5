"""That all commands of the tutorial and the tasks are taken as they stand, and each configuration is sound.

`make docs` runs them and compares what is printed.
"""

import re
import shlex
from collections.abc import Iterator
from functools import reduce
from itertools import takewhile
from operator import getitem
from pathlib import Path

import pytest
import typer
import yaml
from typer.core import TyperGroup

from operations.main import app
from tests.support.misconfigurations import copied_stack, told
from tests.tutorial import HOW_TO, PAGE, blocks, how_to_pages, merged, typed

_SET = re.compile(r"--secret --path credfleet:credentials\.([\w-]+)")
_REMOVED = re.compile(r"^\$ pulumi config rm --stack dev --path (\S+)$", re.MULTILINE)


def commands(page: Path) -> Iterator[list[str]]:
    for language, block in blocks(page.read_text(encoding="utf-8")):
        for each in typed(block) if language == "console" else ():
            for line in each.command.splitlines():
                if line.strip().startswith("credfleet "):
                    words = shlex.split(line.strip(), comments=True)[1:]
                    yield [*takewhile(lambda word: word not in ("|", "||", "<", ">"), words)]


COMMANDS = [*commands(PAGE)]


@pytest.mark.parametrize("page", [PAGE, *how_to_pages()], ids=lambda page: page.stem)
def test_the_commands_of_a_page_are_taken_with_their_options(page: Path) -> None:
    for words in commands(page):
        command, rest = typer.main.get_command(app), words
        while isinstance(command, TyperGroup):
            command, rest = command.commands[rest[0]], rest[1:]
        command.make_context("credfleet", list(rest))


def test_what_the_tasks_write_into_the_stacks_file_is_sound() -> None:
    pages = how_to_pages()
    assert {*pages} == {*HOW_TO.glob("*.md")} - {HOW_TO / "README.md"}
    with copied_stack():
        file, given = Path("Pulumi.dev.yaml"), set[str]()
        for page in pages:
            given |= {f"{name} is not an entry of credentials" for name in _SET.findall(page.read_text())}
            for path in _REMOVED.findall(page.read_text(encoding="utf-8")):
                whole = yaml.safe_load(file.read_text())
                *parents, last = path.split(".")
                del reduce(getitem, parents, whole["config"])[last]
                file.write_text(yaml.safe_dump(whole))
            for language, block in blocks(page.read_text(encoding="utf-8")):
                if language == "yaml":
                    whole = merged(yaml.safe_load(file.read_text()), yaml.safe_load(block))
                    file.write_text(yaml.safe_dump(whole))
            assert [str(each) for each in told() if each.problem not in given] == [], page.name


def test_the_tutorial_goes_to_a_second_environment_and_takes_everything_down() -> None:
    stacks = {words[words.index("--stack") + 1] for words in COMMANDS if words[:2] == ["sandbox", "up"]}
    gone = {*re.findall(r"^\$ pulumi destroy --stack (\S+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)}
    assert len(stacks) == 2
    assert stacks == gone
