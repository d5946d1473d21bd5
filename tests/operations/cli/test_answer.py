"""How an answer is written, for people and for machines; neither form steers a terminal."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from components.errors import CredfleetError
from operations.cli import inputs
from operations.cli.answer import CommandResult, Part, VerdictLine
from operations.cli.command import command, group
from operations.cli.failures import ReportingGroup
from operations.cli.inputs import shown
from operations.cli.tables import Column, Commands, Table
from tests.support.advice import advised
from tests.support.fleet_project import CREDFLEET, ROOT

STEERING = "re\x1b[31md\x9b2J\x07\u202e\u061c\u200b\u2028\u2029\ud800ok"
SHOWN = "re\ufffd[31md\ufffd2J\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdok"
SIGNS = {*"\x1b\x9b\x07\u202e\u061c\u200b\u2028\u2029\ud800"}


def run(answer: CommandResult | CredfleetError, *arguments: str) -> Result:
    app = group("Answers.")
    app.info.cls = ReportingGroup

    @command(app)
    def told() -> CommandResult:  # pyright: ignore[reportUnusedFunction] - the group calls it
        if isinstance(answer, CommandResult):
            return answer
        raise answer

    @command(app)
    def other() -> None:  # pyright: ignore[reportUnusedFunction] - makes the app a group
        pass

    return CliRunner().invoke(app, ["told", *arguments])


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(STEERING, id="line"),
        pytest.param(VerdictLine(well=False, text=STEERING), id="verdict"),
        pytest.param(Table("Pool", ("Reason",), [(STEERING,)]), id="table"),
        pytest.param(Table(STEERING, ("Reason",), []), id="title"),
        pytest.param(Commands("Next", ((STEERING, STEERING),)), id="commands"),
    ],
)
def test_what_could_steer_a_terminal_is_shown_as_a_sign_that_does_not(part: Part) -> None:
    shown = run(CommandResult(None, [part])).stdout
    assert SHOWN in shown
    assert not SIGNS & {*shown}


def test_commands_are_told_as_they_have_to_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "TYPED", ".venv/bin/credfleet")
    fix = "run `credfleet pool status`, or credfleet doctor; credfleet expects .venv/bin/credfleet pool"
    told = "run `.venv/bin/credfleet pool status`, or .venv/bin/credfleet doctor; credfleet expects .venv"
    for part in (
        f"None is free.\n→ {fix}",
        Table("Pool", ("Fix",), [(fix,)]),
        Commands("Next", ((fix, "goes on"),)),
    ):
        assert told in run(CommandResult(None, [part])).stdout
    assert run(CommandResult(None, ["# credfleet pool status"])).stdout == "# credfleet pool status\n"
    assert told in run(CredfleetError(code="odd", place="pool", problem="it is odd", fix=fix)).stderr
    for advice in advised():
        assert shown(advice) == re.sub("^credfleet", ".venv/bin/credfleet", advice)


@pytest.mark.parametrize("is_on_path", [True, False])
def test_command_is_typed_with_its_path_where_path_has_it_not(is_on_path: bool, tmp_path: Path) -> None:
    typed = "credfleet" if is_on_path else str(CREDFLEET)
    environment = {"PATH": f"/usr/bin:/bin:{CREDFLEET.parent if is_on_path else ''}", "PYTHONPATH": str(ROOT)}
    words = [str(CREDFLEET), "init", "--here", "there"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert f"→ {typed} init DIR, or in the folder: {typed} init --here" in done.stderr


@pytest.mark.parametrize("text", ["::error::x", "a\n  ::add-mask::x", "it is ##[error]x"])
def test_text_with_a_command_to_a_runner_of_github_is_written_without_it(text: str) -> None:
    shown = run(CommandResult(None, [text])).stdout + run(CommandResult({"a": text}, []), "-o", "json").stdout
    assert "error" in shown or "mask" in shown
    assert re.search(r"##\[|^\s*::[a-z]", shown, re.MULTILINE) is None


def test_an_error_that_quotes_an_object_steers_no_terminal_either() -> None:
    shown = run(CredfleetError(code="odd", place=STEERING, problem=STEERING, fix=STEERING)).stderr
    assert shown.count(SHOWN) == 3
    assert "\x1b" not in shown


def test_json_holds_the_text_as_it_is_and_no_sign_that_steers() -> None:
    written = run(CommandResult({"reason": STEERING}, []), "--output", "json").stdout
    assert json.loads(written) == {"reason": STEERING}
    assert not SIGNS & {*written}


def test_yaml_holds_the_same_document_and_steers_no_terminal_either() -> None:
    written = run(CommandResult({"reason": STEERING, "names": ["é"]}, []), "--output", "yaml").stdout
    assert yaml.safe_load(written) == {"reason": STEERING, "names": ["é"]}
    assert not SIGNS & {*written}
    assert run(CommandResult({"name": "é"}, []), "-o", "yaml").stdout == "name: é\n"


ACCOUNTS = Table("Pool", (Column("Account", names=True), "Type"), [("aws-1", "aws"), ("aws-2", "aws")])


def test_names_are_those_of_the_tables_one_a_line() -> None:
    assert run(CommandResult(None, ["Pool", ACCOUNTS, ACCOUNTS]), "-o", "name").stdout == "aws-1\naws-2\n"
    assert run(CommandResult({"secretName": "aws-1"}, ["✓ it is"]), "-o", "name").stdout == "aws-1\n"


def test_table_without_rows_is_its_text_for_people_and_no_name() -> None:
    nothing = CommandResult({}, [Table("Cleaned", ACCOUNTS.columns, [], empty="Nothing is dirty.")])
    assert run(nothing).stdout == "Nothing is dirty.\n"
    assert run(nothing, "-o", "name").stdout == run(CommandResult([], ["None."]), "-o", "name").stdout == ""


@pytest.mark.parametrize(
    "part", [Table("Facts", ("Fact",), [("bytes",)]), "✓ it is sound"], ids=["table", "line"]
)
def test_what_has_no_names_says_so_instead_of_printing_none(part: Part) -> None:
    refused = run(CommandResult({"problems": []}, [part]), "-o", "name")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "→ take --output json" in refused.stderr


def test_a_failure_in_yaml_has_the_document_of_json() -> None:
    error = CredfleetError(code="odd", place="here", problem="because", fix="do")
    assert yaml.safe_load(run(error, "-o", "yaml").stdout) == json.loads(run(error, "-o", "json").stdout)


def test_lines_and_tabs_stay() -> None:
    assert run(CommandResult(None, ["one\n\ttwo"])).stdout == "one\n\ttwo\n"


@pytest.mark.parametrize("arguments", [(), ("--output", "json")])
def test_the_exit_code_of_an_answer_is_that_of_the_command_whatever_its_form(
    arguments: tuple[str, ...],
) -> None:
    assert run(CommandResult({}, [], exit_code=1), *arguments).exit_code == 1
    assert run(CommandResult({}, []), *arguments).exit_code == 0
