"""What `pool import` refuses before it writes anything, and how rows are compared with Secrets there.

The pool is in memory; that the API server takes what is made is for tests/cluster/test_pool_commands.py.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from components.connection import ClusterTarget, Reply
from operations.main import app
from operations.pool import importing
from tests.support.cases import tabled
from tests.support.memory_cluster import NAMESPACE
from tests.support.memory_pool import MemoryServer

SENTINEL = "s3ntinel"
HEADER = "name,type,accountId"
AZURE_ID = "0000000a-0000-4000-8000-000000000001"


@dataclass
class Connected:
    """An API server that keeps what it is sent."""

    sent: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    status: int = 201

    def call(self, method: str, _path: str, *, body: dict[str, Any] | None, content_type: str) -> Reply:
        del content_type
        if body is None:
            return Reply(200, {"metadata": {}, "data": {"key": "czNudGluZWw="}})
        assert method == "POST"
        self.sent.append(body)
        return Reply(self.status, {"reason": "Forbidden", "message": SENTINEL})


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Connected:
    api = Connected()

    def connect(_target: ClusterTarget) -> Connected:
        return api

    monkeypatch.setattr(importing, "connect", connect)
    monkeypatch.chdir(tmp_path)
    return api


def on_standard_input(monkeypatch: pytest.MonkeyPatch, values: object) -> None:
    def read(_file: str, _holds: str, **_: str) -> bytes:
        return json.dumps(values).encode()

    monkeypatch.setattr(importing, "read_bytes", read)


def run(*rows: str) -> Result:
    Path("more.csv").write_text("\n".join((HEADER, *rows)) + "\n")
    arguments = ["pool", "import", "more.csv", "--values", "-", "-n", NAMESPACE, "-o", "json"]
    return CliRunner().invoke(app, arguments)


def test_an_account_gets_the_labels_that_a_declared_one_has_and_its_values_go_nowhere_else(
    server: MemoryServer, connected: Connected, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_standard_input(monkeypatch, {"aws-7": {"key": SENTINEL}})
    done = run("aws-7,aws,777777777777")
    assert (done.exit_code, SENTINEL in done.output) == (0, False)
    assert json.loads(done.stdout)["accounts"][0]["outcome"] == "imported"
    (made,) = connected.sent
    assert made["metadata"] == {
        "name": "aws-7",
        "labels": {"hyperscaler-type": "aws"},
        "annotations": {"credfleet.io/account-id": "777777777777"},
    }
    assert made["data"] == {"key": "czNudGluZWw="}


@tabled("values, said")
def test_nothing_is_written_when_a_value_is_wrong(
    server: MemoryServer, connected: Connected, monkeypatch: pytest.MonkeyPatch, values: object, said: str
) -> None:
    on_standard_input(monkeypatch, values)
    refused = run("aws-7,aws,777777777777", "aws-8,aws,888888888888")
    assert refused.exit_code != 0
    assert said in refused.stdout
    assert SENTINEL not in refused.output
    assert connected.sent == []


@tabled("rows, said")
def test_nothing_is_written_when_a_row_names_no_account_or_one_that_is_another_rows(
    server: MemoryServer,
    connected: Connected,
    monkeypatch: pytest.MonkeyPatch,
    rows: list[str],
    said: str,
) -> None:
    server.add_member("aws-1", {}, {"credfleet.io/account-id": "111111111111"})
    server.add_member("azure-1", {"hyperscaler-type": "azure"}, {"credfleet.io/account-id": AZURE_ID})
    on_standard_input(monkeypatch, {name: {"key": "x"} for name in ("aws-7", "aws-8")})
    refused = run(*rows)
    assert refused.exit_code == 2
    assert [said in each["problem"] for each in json.loads(refused.stdout)["error"]["problems"]] == [True]
    assert connected.sent == []


def test_a_csv_that_is_not_there_is_told_by_its_own_name(connected: Connected) -> None:
    arguments = ["pool", "import", "none.csv", "--values", "-", "-n", NAMESPACE]
    refused = CliRunner().invoke(app, arguments)
    assert refused.exit_code == 2
    assert "✗ none.csv: it cannot be read" in refused.stderr
    assert not [said for said in ("membersFrom", "standard input") if said in refused.stderr]


@tabled("row, said")
def test_a_secret_that_is_there_is_compared_with_its_row_and_left_as_it_is(
    server: MemoryServer,
    connected: Connected,
    monkeypatch: pytest.MonkeyPatch,
    row: str,
    said: list[str | None],
) -> None:
    server.add_member("aws-1", {}, {"credfleet.io/account-id": "111111111111"})
    on_standard_input(monkeypatch, {"aws-1": {"key": SENTINEL}})
    done = run(row)
    (told,) = json.loads(done.stdout)["accounts"]
    assert (done.exit_code, [told["outcome"], told["reason"]]) == (int(said[0] == "differs"), said)
    assert connected.sent == []


def test_a_value_whose_file_is_misspelt_updates_nothing_and_that_is_an_error(
    server: MemoryServer, connected: Connected
) -> None:
    for name in ("aws-1", "aws-2"):
        server.add_member(name, {}, {"credfleet.io/account-id": name[-1] * 12})
    rows = ("aws-1,aws,111111111111", "aws-2,aws,222222222222")
    Path("more.csv").write_text("\n".join((HEADER, *rows)))
    command = ["pool", "import", "more.csv", "--values", "keys", "--update", "-n", NAMESPACE]
    Path("keys").mkdir()
    for name, code, said in (("aws-1.json", 0, "not compared"), ("aws2.json", 2, "value of aws2")):
        Path("keys", name).write_text(json.dumps({"key": SENTINEL}))
        done = CliRunner().invoke(app, command)
        assert (done.exit_code, said in done.output) == (code, True)


def test_what_the_api_server_refuses_is_told_in_its_word_that_quotes_nothing(
    server: MemoryServer, connected: Connected, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected.status = 403
    on_standard_input(monkeypatch, {"aws-7": {"key": SENTINEL}})
    refused = run("aws-7,aws,777777777777")
    assert (refused.exit_code, SENTINEL in refused.output) == (1, False)
    assert json.loads(refused.stdout)["accounts"][0]["reason"] == "Forbidden"
