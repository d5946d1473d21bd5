"""What a shell is offered for --stack, and the version that every command says."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from operations.main import app


def offered(line: str) -> list[str]:
    told = {"_CREDFLEET_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    return CliRunner().invoke(app, env=told, prog_name="credfleet").stdout.split()


def test_a_shell_is_offered_the_stacks_of_the_project_below_which_it_is(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("dev", "prod", "prod-eu"):
        (project / f"Pulumi.{name}.yaml").write_text("config: [\n")
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    assert offered("credfleet sandbox up --stack ") == ["dev", "prod", "prod-eu"]
    assert offered("credfleet pool claim --stack p") == ["prod", "prod-eu"]


def test_a_shell_is_offered_no_stack_where_there_is_no_project(
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
    assert "  --version  " in CliRunner().invoke(app, ["--help"]).stdout
