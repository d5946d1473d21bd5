"""What `credfleet config` checks, reads and writes in stack files, secrets among them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from operations.main import app


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=stdin)


def configure(project: Path, text: str) -> None:
    (project / "Pulumi.dev.yaml").write_text(text)


def test_an_empty_configuration_is_sound(project: Path) -> None:
    result = run("config", "check", "--output", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"stack": "dev", "problems": []}


def test_checking_a_configuration_leaves_the_file_as_it_was(project: Path) -> None:
    before = (project / "Pulumi.dev.yaml").read_text()
    assert run("config", "check").exit_code == 0
    assert (project / "Pulumi.dev.yaml").read_text() == before


def test_every_problem_is_told_at_once_with_its_path(project: Path) -> None:
    configure(
        project,
        "config:\n"
        "  credfleet:tenants: {acme: {namespace: kube-system, acounts: {}}}\n"
        "  credfleet:acountPool: {}\n",
    )
    result = run("config", "check", "--output", "json")
    assert result.exit_code == 2
    error = json.loads(result.stdout)["error"]
    assert error["code"] == "bad-configuration"
    assert {
        "credfleet:tenants.acme.namespace",
        "credfleet:tenants.acme.acounts",
        "credfleet:acountPool",
    } <= {problem["place"] for problem in error["problems"]}
    assert all(problem["mend"] for problem in error["problems"])


def test_a_plain_credential_is_refused_beside_an_encrypted_one_and_not_repeated(project: Path) -> None:
    run("sandbox", "config", "set", "--secret", "--path", "credfleet:credentials.aws-1", stdin='{"a":"b"}')
    run("sandbox", "config", "set", "--path", "credfleet:credentials.aws-2", '{"key":"pl41n"}')
    result = run("config", "check")
    assert result.exit_code == 2
    assert "credfleet:credentials.aws-2" in result.stderr
    assert "aws-1" not in result.stderr
    assert "pl41n" not in result.output


def test_what_pulumi_yaml_forbids_is_a_configuration_error(project: Path) -> None:
    configure(project, "config:\n  credfleet:tenants: acme\n")
    result = run("config", "check")
    assert result.exit_code == 2
    assert "credfleet:tenants must be of type object" in result.stderr


def test_a_stack_that_is_not_there_is_named(project: Path) -> None:
    result = run("config", "check", "--stack", "prod")
    assert result.exit_code == 2
    assert "Pulumi.prod.yaml" in result.stderr


def test_the_schema_knows_the_keys_of_a_stack(project: Path) -> None:
    schema = json.loads(run("config", "schema").stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert {"cluster", "credentials", "tenants", "accountPool"} <= schema["properties"].keys()


def test_outside_of_a_project_the_command_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("config", "check")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"✗ {tmp_path}: neither this folder")


def test_a_value_that_was_set_is_read_back_and_comments_stay(project: Path) -> None:
    configure(project, "config:\n  # who pays\n  credfleet:tenants: {}\n")
    run("sandbox", "config", "set", "gcp:project", "acme-dev")
    assert run("sandbox", "config", "get", "gcp:project").stdout == "acme-dev\n"
    assert "# who pays" in (project / "Pulumi.dev.yaml").read_text()


def test_a_secret_from_standard_input_is_encrypted_in_the_file_and_read_back_in_plain(
    project: Path,
) -> None:
    path = "credfleet:credentials.aws-1"
    text = '{"accessKeyID":"AK","secretAccessKey":"sEcrEt"}'
    assert run("sandbox", "config", "set", "--secret", "--path", path, stdin=f"{text}\n").exit_code == 0
    assert "sEcrEt" not in (project / "Pulumi.dev.yaml").read_text()
    assert run("sandbox", "config", "get", "--path", path).stdout == f"{text}\n"
    got = run("sandbox", "config", "get", "--path", path, "--output", "json")
    assert json.loads(got.stdout) == {"value": text}


@pytest.mark.parametrize(
    "arguments", [["credfleet:nothing"], ["--path", "credfleet:tenants.acme"], ["--path", "credfleet:no.one"]]
)
def test_a_value_that_is_not_there_is_a_configuration_error(project: Path, arguments: list[str]) -> None:
    result = run("sandbox", "config", "get", *arguments)
    assert result.exit_code == 2
    assert "--path" in result.stderr


def test_a_wrong_passphrase_is_told_and_nothing_is_written(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("sandbox", "config", "set", "--secret", "gcp:token", "t")
    before = (project / "Pulumi.dev.yaml").read_text()
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "another")
    result = run("sandbox", "config", "set", "gcp:project", "p")
    assert result.exit_code == 1
    assert "passphrase" in result.stderr
    assert (project / "Pulumi.dev.yaml").read_text() == before
