"""`credfleet pull-secret`: what it answers, in JSON and tables; it never shows a credential."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from pulumi_sandbox.services.cloud.front import Fault
from typer.testing import CliRunner, Result

from components.pull_secret.hyperfleet import read_observed
from operations.main import app
from sandbox.tests.support.clouds import Served
from tests.support.cases import tabled
from tests.support.hyperfleet import bring, delete, say, served_hyperfleet

AUTH = "dXNlcjpTM2NyM3Q="  # user:S3cr3t
SOUND = f'{{"auths":{{"quay.io":{{"auth":"{AUTH}"}},"ghcr.io":{{"auth":"{AUTH}"}}}}}}\n'
DOUBTFUL = f'{{"auths":{{"quay.io":{{"auth":"UzNjcjN0Og"}},"https://user:S3cr3t@x.io":null,"a.io":{{"auth":"{AUTH}"}}}}}}'
NOT_SHOWN = (
    "auths, entry 2: its key is not a registry's name, and is not shown since it may be a credential"
    " → write HOST, HOST:PORT or a URL, in lower case, without user and password"
)
FIX = "write it with: podman login --authfile FILE REGISTRY"
EMPTY = "its user or its password is empty, so it opens nothing"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pull-secret.json"


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["pull-secret", "check", *map(str, arguments)])


def checked(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    result = check(*arguments, "--output", "json")
    return result.exit_code, json.loads(result.stdout)


def test_a_sound_pull_secret_is_valid_and_told_without_a_name_in_gcp(file: Path) -> None:
    file.write_text(SOUND)
    assert checked(file) == (
        0,
        {
            "valid": True,
            "errors": [],
            "warnings": [],
            "secretId": None,
            "labels": {},
            "bytes": len(SOUND),
            "registries": ["quay.io", "ghcr.io"],
        },
    )


def test_the_id_of_a_cluster_tells_the_secret_and_its_labels(file: Path) -> None:
    file.write_text(SOUND)
    exit_code, told = checked(file, "--cluster-id", "cls-0123456789ab")
    assert (exit_code, told["secretId"]) == (0, "hyperfleet-cls-0123456789ab-pull-secret")
    assert told["labels"] == {
        "managed-by": "hyperfleet",
        "adapter": "pullsecret",
        "resource-type": "pull-secret",
        "hyperfleet-version": "v1",
        "cluster-id": "cls-0123456789ab",
    }


def test_doubts_are_warnings_and_errors_to_the_strict(file: Path) -> None:
    file.write_text(DOUBTFUL)
    exit_code, told = checked(file)
    assert (exit_code, told["valid"], told["errors"]) == (0, True, [])
    assert told["registries"] == ["quay.io", "a.io"]
    doubts = [
        f'auths["quay.io"]: {EMPTY} → {FIX}',
        NOT_SHOWN,
        f"auths, entry 2: it holds no auth, so it opens nothing → {FIX}",
    ]
    assert told["warnings"] == doubts
    exit_code, told = checked(file, "--strict")
    assert (exit_code, told["valid"], told["errors"], told["warnings"]) == (1, False, doubts, [])


def test_one_entry_that_kubelet_cannot_read_makes_the_whole_not_valid(file: Path) -> None:
    file.write_text(SOUND.replace("}}", '},"x.io":{"auth":"S3cr3t","email":5}}'))
    exit_code, told = checked(file)
    assert (exit_code, told["valid"]) == (1, False)
    assert told["errors"] == [
        f'auths["x.io"]: kubelet refuses the whole pull secret for it: its email is not a string → {FIX}'
    ]


def test_an_unfit_id_of_a_cluster_is_told_behind_what_is_wrong_with_the_payload(file: Path) -> None:
    file.write_text("")
    exit_code, told = checked(file, "--cluster-id", "CLS-1")
    assert (exit_code, told["valid"], told["secretId"], told["labels"]) == (1, False, None, {})
    assert [text.partition(":")[0] for text in told["errors"]] == ["payload", "--cluster-id"]


def test_an_id_only_hyperfleets_job_is_too_narrow_for_is_a_warning(file: Path) -> None:
    file.write_text(SOUND)
    exit_code, told = checked(file, "--strict", "--cluster-id", "x" * 48)
    assert (exit_code, told["valid"], len(told["warnings"])) == (0, True, 1)


def test_a_table_tells_each_fix_below_what_is_wrong_and_ends_with_the_verdict(file: Path) -> None:
    file.write_text(DOUBTFUL)
    result = check(file, "--strict", "--cluster-id", "cls-1")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    at = lines.index(f'✗ auths["quay.io"] {EMPTY}')
    assert lines[at + 1] == f"→ {FIX}"
    assert {"registries quay.io, a.io", "secret id hyperfleet-cls-1-pull-secret"} <= {*lines}
    assert (result.exit_code, lines[-1]) == (1, "✗ not valid")


@pytest.mark.parametrize(
    "text", [SOUND, DOUBTFUL, AUTH, f'{{"auths":{{"quay.io":"{AUTH}" S3cr3t', f'{{"{AUTH}":"S3cr3t"}}']
)
@pytest.mark.parametrize("options", [[], ["--strict", "--cluster-id", "cls-1"]])
@pytest.mark.parametrize("form", ["table", "json"])
def test_no_credential_is_ever_shown(file: Path, text: str, options: list[str], form: str) -> None:
    file.write_text(text)
    result = check(file, *options, "--output", form)
    assert result.exit_code in (0, 1)
    assert "S3cr3t" not in result.output
    assert AUTH not in result.output


@pytest.fixture
def hyperfleet(tmp_path: Path) -> Generator[Served]:
    """A HyperFleet that knows one cluster, whose adapter dns is not done."""
    with served_hyperfleet(tmp_path / "hyperfleet") as running:
        bring(running, "cls-1")
        say(running.url, "cls-1", "dns", Available="False")
        yield running


def configure(project: Path, **section: Any) -> Path:
    clusters = {"cls-1": {"name": "east"}, "cls-2": {"name": "west"}}
    given = {"credfleet:pullSecrets": {"clusters": clusters, **section}}
    (project / "Pulumi.dev.yaml").write_text(json.dumps({"config": given}))
    return project / "observed.json"


def observe(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["pull-secret", "observe", *arguments])


def test_what_hyperfleet_tells_of_every_cluster_is_kept_for_the_stack(
    project: Path, hyperfleet: Served
) -> None:
    file = configure(project, adaptersFrom="observed.json", hyperfleet={"apiUrl": hyperfleet.url})
    result = observe("--output", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["clusters"] == {
        "cls-1": {"adapters": {"dns": "False"}},
        "cls-2": {"known": False},
    }
    assert file.read_text() == result.stdout
    assert not read_observed(file.read_text())["cls-2"].known


def test_a_table_tells_the_adapters_a_pull_secret_waits_for(project: Path, hyperfleet: Served) -> None:
    configure(project, adaptersFrom="observed.json")
    shown = observe("--api-url", hyperfleet.url).stdout
    assert "validation" in shown
    assert "HyperFleet knows no such cluster" in shown
    assert shown.endswith("observed.json\n")


def test_a_cluster_that_hyperfleet_deletes_is_kept_and_told_with_the_time(
    project: Path, hyperfleet: Served
) -> None:
    file = configure(project, adaptersFrom="observed.json", hyperfleet={"apiUrl": hyperfleet.url})
    delete(hyperfleet, "cls-1")
    shown = observe().stdout
    since = read_observed(file.read_text())["cls-1"].deleted_time
    assert since
    assert f"deleted {since}" in " ".join(shown.split())


@pytest.mark.parametrize("status", [401, 403])
def test_a_hyperfleet_that_refuses_leaves_the_file_as_it_was(
    project: Path, hyperfleet: Served, status: int
) -> None:
    file = configure(project, adaptersFrom="observed.json", hyperfleet={"apiUrl": hyperfleet.url})
    file.write_text("as it was")
    hyperfleet.service.faults.append(Fault(path="cls-2", status=status))
    result = observe()
    assert result.exit_code == 1
    assert f"cluster cls-2: HyperFleet answers HTTP {status}" in result.stderr
    assert file.read_text() == "as it was"


@tabled("section, place")
def test_a_stack_that_names_no_hyperfleet_or_no_file_is_told(
    project: Path, section: dict[str, Any], place: str
) -> None:
    configure(project, **section)
    result = observe()
    assert (result.exit_code, place in result.stderr) == (1, True)


def test_a_stack_that_is_not_there_is_told(project: Path) -> None:
    result = observe("--stack", "nowhere")
    assert (result.exit_code, "Pulumi.nowhere.yaml" in result.stderr) == (2, True)
