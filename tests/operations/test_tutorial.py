"""That every command of the tutorial is taken as it stands; `make tutorial` runs them and compares output."""

import shlex

import pytest
import typer
from typer.core import TyperGroup

from operations.main import app
from tests.tutorial import PAGE, typed

COMMANDS = [
    words[1:]
    for each in typed(PAGE.read_text(encoding="utf-8"))
    for line in each.command.splitlines()
    if (words := shlex.split(line.strip(), comments=True) if line.strip().startswith("credfleet ") else [])
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_of_the_tutorial_is_taken_with_its_options(words: list[str]) -> None:
    command, rest = typer.main.get_command(app), words
    while isinstance(command, TyperGroup):
        command, rest = command.commands[rest[0]], rest[1:]
    command.make_context("credfleet", list(rest))


def test_the_tutorial_goes_to_a_second_environment_and_takes_everything_down() -> None:
    stacks = {words[words.index("--stack") + 1] for words in COMMANDS if words[:2] == ["sandbox", "up"]}
    gone = {words[words.index("--stack") + 1] for words in COMMANDS if words[:2] == ["sandbox", "destroy"]}
    assert len(stacks) == 2
    assert stacks == gone
