"""Every command's help has an example, every documented command is there, and help loads little."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from operations.main import app


def tree() -> Iterator[tuple[str, str]]:
    """Return every command, groups included, as what is typed, and its epilog."""

    def below(command: object, typed: str) -> Iterator[tuple[str, str]]:
        yield typed, str(getattr(command, "epilog", ""))
        if isinstance(command, TyperGroup):
            for name, child in command.commands.items():
                yield from below(child, f"{typed} {name}")

    yield from below(typer.main.get_command(app), "credfleet")


@pytest.mark.parametrize(("typed", "epilog"), [pytest.param(*each, id=each[0]) for each in tree()])
def test_the_help_of_every_command_has_an_example_that_begins_with_it(typed: str, epilog: str) -> None:
    assert "Examples:" in epilog
    assert typed in epilog


def test_no_line_of_any_help_is_wider_than_a_terminal_of_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = typer.main.get_command(app)
    for typed, _ in tree():
        root.main([*typed.split()[1:], "--help"], standalone_mode=False, terminal_width=80)
        shown = capsys.readouterr().out
        assert "Usage:" in shown
        assert [line for line in shown.splitlines() if len(line) > 80] == [], typed


def test_whatever_names_a_stack_is_completed() -> None:
    named, lacking, root = 0, list[str](), typer.main.get_command(app)
    for typed, _ in tree():
        command: Any = root
        for name in typed.split()[1:]:
            command = command.commands[name]
        for each in command.params:
            if each.name == "stack":
                named += 1
                lacking += [f"{typed} {each.name}"] * (each._custom_shell_complete is None)
    assert named > 20
    assert lacking == []


@pytest.mark.parametrize("words", [[], ["pool"], ["stores"], ["aso"], ["pull-secret"]], ids=" ".join)
def test_the_help_of_a_group_tells_what_each_command_does_to_the_end(words: list[str]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], terminal_width=80).stdout.partition("Commands:")[2]
    assert shown
    assert "..." not in shown


def test_the_tree_holds_the_commands_the_documentation_names() -> None:
    assert {
        "credfleet sandbox up",
        "credfleet sandbox down",
        "credfleet sandbox status",
        "credfleet sandbox env",
        "credfleet sandbox providers",
        "credfleet sandbox build",
        "credfleet pool status",
        "credfleet pool claim",
        "credfleet pool release",
        "credfleet aso explain",
        "credfleet pull-secret check",
        "credfleet fleet status",
        "credfleet stores explain",
        "credfleet preview-report",
        "credfleet init",
        "credfleet config schema",
        "credfleet config check",
    } <= {typed for typed, _ in tree()}


COMPLETION = "COMP_WORDS=credfleet pool claim --stack ", "COMP_CWORD=4", "_CREDFLEET_COMPLETE=complete_bash"


@pytest.mark.parametrize("told", [(), COMPLETION], ids=["help", "completion"])
def test_neither_help_nor_completion_loads_anything_heavy(told: tuple[str, ...]) -> None:
    heavy = ["pulumi", "kubernetes", "jinja2", "rich", "grpc", "cryptography", "ruamel"]
    heavy += ["operations.sandbox.commands"]  # of commands, only those below the words that were typed
    heavy += [] if told else ["yaml", "pydantic"]  # by the latter, typer reads options
    code = (
        "import os, sys, operations.main\n"
        f"os.environ.update(each.split('=') for each in {told})\n"
        "try: operations.main.app(['--help'], prog_name='credfleet')\n"
        "except SystemExit: pass\n"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert ("dev" if told else "Usage: ") in done.stdout
