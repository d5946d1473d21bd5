"""Every command's help has an example, every documented command is there, and help loads little."""

import re
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


def test_help_fits_a_terminal_of_80_columns_and_says_what_a_person_would_write(
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = typer.main.get_command(app)
    for typed, _ in tree():
        root.main([*typed.split()[1:], "--help"], standalone_mode=False, terminal_width=80)
        shown = capsys.readouterr().out
        assert "Usage:" in shown
        assert [line for line in shown.splitlines() if len(line) > 80] == [], typed
        assert re.findall(r"<\w+( range|\[\w+\])?>|[{}]|\[\[", shown.partition("Examples:")[0]) == [], typed


def test_import_names_the_columns_of_its_file_and_the_pool_lists_commands_by_task() -> None:
    shown = [CliRunner().invoke(app, ["pool", *words, "--help"]).stdout for words in (["import"], [])]
    assert "one for each partition key" in " ".join(shown[0].split())
    assert re.search(r"\n\n  Claim:\n    claim .*\n    release .*\n    adopt .*\n\n  \w", shown[1])


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
    words = {
        "sandbox": ["up", "down", "status", "env", "providers", "build"],
        "pool": ["status", "claim", "release"],
        "config": ["schema", "check"],
        "aso": ["explain"],
        "pull-secret": ["check"],
        "fleet": ["status"],
        "stores": ["explain"],
    }
    named = {f"credfleet {group} {word}" for group, below in words.items() for word in below}
    assert named | {"credfleet preview-report", "credfleet init"} <= {typed for typed, _ in tree()}


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
