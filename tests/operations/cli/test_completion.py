"""What a shell is offered: names that the files of the stacks here hold, and nothing for what is broken."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from operations.main import app
from tests.support.cases import cases, table

STACKS = {
    "dev": "config:\n"
    "  credfleet:tenants: {acme: {accounts: {main: {type: aws}}}, globex: {accounts: {data: {type: gcp}}}}\n"
    "  credfleet:accountPool: {members: {aws-1: {type: aws}}, membersFrom: more.csv}\n",
    "prod": "config: {credfleet:tenants: {acme-prod: {}}}\n",
    "files": "config: {credfleet:tenantsFrom: files}\n",
    "broken": "config: [\n",
    "odd": "config: {credfleet:tenants: [acme], credfleet:accountPool: 7}\n",
}


@pytest.fixture(autouse=True)
def stacks(project: Path) -> None:
    for name, text in STACKS.items():
        (project / f"Pulumi.{name}.yaml").write_text(text)
    (project / "files").mkdir()
    (project / "files/hooli.yaml").write_text("accounts: {blob: {type: azure}}\n")
    (project / "files/_defaults.yaml").write_text("accounts: {none: {type: aws}}\n")
    (project / "more.csv").write_text("name,type,accountId\ngcp-7,gcp,seven\n")


def offered(line: str) -> list[str]:
    told = {"_CREDFLEET_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    return CliRunner().invoke(app, env=told, prog_name="credfleet").stdout.split()


@cases("line, names", table(__file__, "test_a_shell_is_offered_what_the_files_name"))
def test_a_shell_is_offered_what_the_files_name(line: str, names: list[str]) -> None:
    assert offered(line) == names


def test_where_there_is_no_project_nothing_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert offered("credfleet sandbox up --stack ") == []


@pytest.mark.parametrize(
    "line", [["--version"], ["pool", "claim", "--version"], ["sandbox", "up", "--version"]]
)
def test_every_command_says_its_version(line: list[str]) -> None:
    told = CliRunner().invoke(app, line)
    assert (told.exit_code, told.stdout.split()[0]) == (0, "credfleet")
