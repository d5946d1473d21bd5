"""What `credfleet services flatten` prints, and that no value is in its table unless asked for."""

import json
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from operations.main import app
from tests.support.cases import cases, table

DATABASE = '{"type":"database","port":5432,"user":{"name":"alice", "password": "hunter2"}}'


def flatten(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["services", "flatten", *arguments])


def data(**entries: str) -> dict[str, str]:
    return {key: b64encode(value.encode()).decode() for key, value in entries.items()}


@pytest.fixture
def given(tmp_path: Path) -> Path:
    path = tmp_path / "credentials.json"
    path.write_text(DATABASE)
    return path


def test_json_holds_both_secrets_and_the_warnings_and_nothing_else(given: Path) -> None:
    result = flatten(str(given), "--output", "json")

    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "source": data(
            credentials=DATABASE.replace(", ", ",")
            .replace(": ", ":")
            .replace('"type":"database","port":5432', '"port":5432,"type":"database"')
        ),
        "binding": {
            "type": "servicebinding.io/database",
            "data": data(type="database", port="5432", user='{"name":"alice","password":"hunter2"}'),
        },
        "warnings": [],
    }


def test_a_table_shows_keys_and_sizes_and_no_value(given: Path) -> None:
    result = flatten(str(given))

    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines() if line]
    assert rows == [
        ["Secrets"],
        ["Secret", "Type", "Key", "Bytes"],
        ["source", "Opaque", "credentials", "76"],
        ["binding", "servicebinding.io/database", "type", "8"],
        ["port", "4"],
        ["user", "37"],
    ]


def test_a_table_shows_values_when_asked_and_keeps_what_steers_a_terminal_from_it(given: Path) -> None:
    given.write_text(r'{"password": "hunter2", "motd": "\u001b[2J", "pem": "one\ntwo"}')

    shown = flatten(str(given), "--show-values").stdout

    assert "hunter2" in shown
    assert "\x1b" not in shown
    assert r'"\u001b[2J"' in shown
    assert "two" in [line.strip() for line in shown.splitlines()]


def test_the_default_type_and_the_form_of_numbers_are_chosen_by_options(given: Path) -> None:
    given.write_text('{"id": 9007199254740993}')

    rounded = json.loads(flatten(str(given), "--output", "json").stdout)
    exact = json.loads(
        flatten(str(given), "--type-default", "sql", "--numbers", "exact", "--output", "json").stdout
    )

    assert rounded["binding"]["data"] == data(type="user-provided", id="9007199254740992")
    assert [warning.partition(":")[0] for warning in rounded["warnings"]] == ["id"]
    assert exact["binding"] == {
        "type": "servicebinding.io/sql",
        "data": data(type="sql", id="9007199254740993"),
    }
    assert exact["warnings"] == []


def test_an_empty_default_type_is_a_usage_error(given: Path) -> None:
    result = flatten(str(given), "--type-default", "")

    assert result.exit_code == 2
    assert "classifies nothing" in result.stderr


def test_a_warning_is_told_beside_the_secrets_and_refuses_them_with_strict(given: Path) -> None:
    given.write_text('{"port": "hunter2", "apiKey": "hunter2"}')

    told, refused = flatten(str(given)), flatten(str(given), "--strict")

    assert told.exit_code == 0
    assert "a port from 1 to 65535" in told.stdout
    assert refused.exit_code == 1
    assert refused.stdout == ""
    assert "port:" in refused.stderr
    assert "apiKey:" in refused.stderr
    assert "hunter2" not in told.output + refused.output


@cases("text, place", table(__file__, "test_invalid_credentials_end_with_1_and_their_key_never_a_value"))
def test_invalid_credentials_end_with_1_and_their_key_never_a_value(
    given: Path, text: str, place: str
) -> None:
    given.write_text(text)

    result = flatten(str(given))

    assert result.exit_code == 1
    assert result.stdout == ""
    assert str(given) in result.stderr
    assert place in result.stderr
    assert "hunter2" not in result.stderr


def test_a_refusal_is_json_where_json_was_asked_for(given: Path) -> None:
    given.write_text('{"a": Infinity}')

    result = flatten(str(given), "--output", "json")

    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert error["code"] == "credentials-invalid"
    assert "a: the number" in error["message"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = flatten(str(tmp_path / "nowhere.json"))

    assert result.exit_code == 1
    assert "nowhere.json" in result.stderr


@pytest.mark.parametrize(("text", "code"), [(b'{"name":"h\xc3\xa9llo"}', 0), (b'{"name":"h\xe9llo"}', 1)])
def test_standard_input_is_read_byte_for_byte(text: bytes, code: int) -> None:
    command = ["from operations.main import main; main()", "services", "flatten", "-", "--output", "json"]

    done = subprocess.run([sys.executable, "-c", *command], input=text, capture_output=True, check=False)

    answer = json.loads(done.stdout)
    assert done.returncode == code
    if code == 0:
        assert answer["source"] == data(credentials='{"name":"héllo"}')
    else:
        assert "standard input" in answer["error"]["message"]
