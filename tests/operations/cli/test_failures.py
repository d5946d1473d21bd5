"""How a failed command ends: its exit code, its two lines or its JSON, and where a traceback goes."""

import errno
import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from pulumi_sandbox.errors import SandboxError
from typer.testing import CliRunner, Result

from components.connection import NoReply
from components.errors import ConfigurationError, CredfleetError, Problem
from operations.cli.failures import PAGES, ReportingGroup, exit_code
from operations.cli.inputs import ask
from operations.cli.options import Form, OutputOption
from operations.main import app as program
from operations.main import main
from tests.support.cases import tabled


def run(raising: Callable[[], None], *arguments: str) -> Result:
    """Run a command that fails as told, under the root group of the command tree."""
    app = typer.Typer(cls=ReportingGroup, rich_markup_mode=None, pretty_exceptions_enable=False)

    @app.command()
    def fail(output: OutputOption = Form.TABLE) -> None:  # pyright: ignore[reportUnusedFunction] - typer calls it
        raising()

    @app.command()
    def other() -> None:  # pyright: ignore[reportUnusedFunction] - makes the app a group
        pass

    return CliRunner().invoke(app, ["fail", *arguments])


def raise_(error: BaseException) -> Callable[[], None]:
    def raising() -> None:
        raise error

    return raising


def an_error(code: str) -> CredfleetError:
    return CredfleetError(code=code, place="pool account-pool", problem="it is empty", fix="add accounts")


@tabled("code, exit_code")
@pytest.mark.parametrize("kind", [CredfleetError, SandboxError])
def test_the_code_of_an_error_decides_the_exit_code(
    kind: type[CredfleetError | SandboxError], code: str, exit_code: int
) -> None:
    error = kind(code=code, place="p", problem="c", fix="m")
    assert run(raise_(error)).exit_code == exit_code


def test_a_foreseen_error_is_two_lines_on_standard_error() -> None:
    result = run(raise_(an_error("odd")))
    assert result.stderr == "✗ pool account-pool: it is empty\n→ add accounts\n"
    assert result.stdout == ""


def test_a_foreseen_error_is_one_json_document_on_standard_output_when_json_was_asked_for() -> None:
    result = run(raise_(an_error("odd")), "--output", "json")
    assert json.loads(result.stdout) == {
        "error": {"code": "odd", "message": "pool account-pool: it is empty → add accounts"}
    }
    assert result.stderr == ""
    assert result.exit_code == 1


def test_every_problem_of_a_configuration_is_told_with_its_place_and_fix() -> None:
    error = ConfigurationError(
        [
            Problem("tenants.acme.namespace", "it is no name", "rename it"),
            Problem("accountPool.members.aws-1", "no such credential", "add it"),
        ]
    )
    lines = run(raise_(error)).stderr.splitlines()
    assert lines[:4] == [
        "✗ tenants.acme.namespace: it is no name",
        "→ rename it",
        "✗ accountPool.members.aws-1: no such credential",
        "→ add it",
    ]
    assert lines[4].startswith("2 problems found")
    problems = json.loads(run(raise_(error), "-o", "json").stdout)["error"]["problems"]
    assert [problem["place"] for problem in problems] == [
        "tenants.acme.namespace",
        "accountPool.members.aws-1",
    ]


@tabled("place, told")
def test_file_of_a_problem_is_told_once(place: str, told: str) -> None:
    at = ("mine/a.yaml", 3, 4)
    expected = f"✗ mine/a.yaml:3:4{told}: it is no map\n→ write one\n"
    error = CredfleetError(code="odd", place=place, problem="it is no map", fix="write one", at=at)
    assert run(raise_(error)).stderr == expected
    problem = Problem(place, "it is no map", "write one", at)
    assert run(raise_(ConfigurationError([problem]))).stderr.startswith(expected)


def test_ctrl_c_ends_with_the_exit_code_of_a_cancelled_update_and_says_how_to_go_on() -> None:
    result = run(raise_(KeyboardInterrupt()))
    assert result.exit_code == 8
    assert "stopped by Ctrl-C" in result.stderr
    assert "run the same command again" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_that_stops_a_command_is_named(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = dict[int, Any]()
    monkeypatch.setattr(signal, "signal", heard.__setitem__)

    def stopped_at_once(**_settings: object) -> None:
        heard[number](number, None)

    monkeypatch.setattr("operations.main.app", stopped_at_once)
    with pytest.raises(KeyboardInterrupt) as stopped:
        main()
    assert f"stopped by {number.name};" in run(raise_(stopped.value)).stderr


def test_ctrl_c_at_a_question_says_that_nothing_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> bool:
        raise typer.Abort

    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(typer, "confirm", interrupted)
    with pytest.raises(CredfleetError, match="nothing was changed") as stopped:
        ask("All of it?", yes=False)
    assert exit_code(stopped.value) == 8


def test_a_question_that_quotes_an_object_steers_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    def agreed(question: str, **_: object) -> bool:
        asked.append(question)
        return True

    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(typer, "confirm", agreed)
    ask("Delete re\x1b[31md?", yes=False)
    assert asked == ["Delete re\ufffd[31md?"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named_with_the_file_that_could_not_be_written(number: int) -> None:
    result = run(raise_(OSError(number, "No space left on device", "/state/dev.json")))
    assert result.stderr.startswith("✗ /state/dev.json: no space is left")
    assert result.exit_code == 1


def test_a_silent_cluster_is_no_defect_in_any_command() -> None:
    result = run(raise_(NoReply("Connection refused")))
    assert result.stderr.startswith(
        "✗ credfleet:cluster: the API server does not answer (Connection refused)"
    )
    assert result.exit_code == 1


def test_a_defect_is_one_line_and_its_traceback_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(raise_(ZeroDivisionError("deep inside")))
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    written = re.search(r"traceback in (\S+)", result.stderr)
    assert written is not None
    assert "ZeroDivisionError: deep inside" in Path(written.group(1)).read_text()


def test_a_defect_is_still_told_when_its_traceback_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".sandbox").write_text("a file where the folder should be")
    monkeypatch.chdir(tmp_path)
    result = run(raise_(ZeroDivisionError()))
    assert result.exit_code == 1
    assert "could not be written" in result.stderr


def test_a_wrong_option_is_told_by_the_parser_and_exits_with_2() -> None:
    result = run(lambda: None, "--no-such-option")
    assert result.exit_code == 2
    assert "No such option" in result.stderr


@pytest.mark.parametrize("asked", [("--output", "json"), ("--output=json",), ("-o", "json"), ("-ojson",)])
def test_a_wrong_option_is_one_json_document_when_json_was_asked_for(asked: tuple[str, ...]) -> None:
    result = run(lambda: None, "--no-such-option", *asked)
    assert result.exit_code == 2
    error = json.loads(result.stdout)["error"]
    assert error["code"] == "usage"
    assert "--no-such-option" in error["message"]
    assert result.stderr == ""


@pytest.mark.parametrize("page", sorted(set(PAGES.values())))
def test_a_page_that_is_said_to_tell_more_is_there_with_its_heading(page: str) -> None:
    file, _, anchor = page.partition("#")
    lines = (Path(__file__).parents[3] / file).read_text(encoding="utf-8").splitlines()
    headings = [line.lstrip("# ").lower() for line in lines if line.startswith("#")]
    slugs = [re.sub(r"[^a-z0-9 -]", "", heading).replace(" ", "-") for heading in headings]
    assert not anchor or anchor in slugs


def test_a_fix_names_the_page_that_tells_more_to_people_and_to_programs() -> None:
    assert run(raise_(an_error("exhausted"))).stderr.splitlines()[-1] == f"  See {PAGES['exhausted']}"
    assert (
        json.loads(run(raise_(an_error("exhausted")), "--output", "json").stdout)["error"]["page"]
        == (PAGES["exhausted"])
    )
    assert "  See " not in run(raise_(an_error("odd"))).stderr


BRING = "pool bring --tenant a --type aws --account-id 1 --namespace p --values"


@pytest.mark.parametrize("typed", ["preview-report", "pull-secret check", "review --record", BRING])
def test_path_that_cannot_be_read_ends_each_command_with_exit_code_2(typed: str, tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xff")
    told = {"none": "no such file", ".": "it cannot be read (is a directory)"}
    told |= {} if "pull-secret" in typed else {"latin": "not utf-8"}
    for name, problem in told.items():
        result = CliRunner().invoke(program, [*typed.split(), str(tmp_path / name)])
        assert (result.exit_code, problem in result.stderr.lower()) == (2, True), result.stderr
