"""What doctor, status and a refused claim advise is run as it is printed, in the project that printed it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from components.account_pool.core.config_map import PoolConfigMap
from sandbox.tests.support.cluster import ROOT
from tests.cluster.test_pool_commands import Place, made_with
from tests.support.memory_cluster import credfleet

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

_OF_THE_REPOSITORY: Final = ("Pulumi.yaml", "Pulumi.dev.yaml", "__main__.py", "components", "stacks")
UMBRELLA: Final = ("--type", "aws", "--tenant", "umbrella")


def made_by_init(folder: Path) -> Path:
    with chdir(folder):
        assert credfleet("init", "mine").exit_code == 0
    return folder / "mine"


def of_the_repository(folder: Path) -> Path:
    for name in _OF_THE_REPOSITORY:
        (folder / name).symlink_to(ROOT / name)
    return folder


def printed(place: Place) -> Iterator[str]:
    """Every command that the three print."""
    found = place.run("admin", "doctor", "--output", "json").json["findings"]
    shown = [place.run("admin", "pool", *words) for words in (("status",), ("claim", *UMBRELLA))]
    for text in (*(each["fix"] or "" for each in found), *(each.output + each.errors for each in shown)):
        yield from re.findall(r"`(credfleet [^`]+)`", " ".join(text.split()))


@pytest.fixture(params=[made_by_init, of_the_repository], ids=lambda made: made.__name__)
def place(
    request: pytest.FixtureRequest,
    control_plane: ControlPlane,
    admin: DynamicClient,
    namespace: str,
    tmp_path: Path,
) -> Place:
    folder: Path = request.param(tmp_path)
    stack = (folder / "Pulumi.dev.yaml").read_text("utf-8")
    (folder / "Pulumi.dev.yaml").unlink()
    stack = stack.replace(": account-pool", f": {namespace}").replace("credfleet-sandbox", "pulumi-sandbox")
    (folder / "Pulumi.dev.yaml").write_text(stack)
    return made_with(PoolConfigMap(), control_plane, admin, namespace, folder)


def test_advice_is_run_as_it_is_printed_in_the_project_that_prints_it_until_there_is_none(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    for name in ("aws-1", "aws-2"):
        place.add(name)
    place.ask("admin", "pool", "claim", "--type", "aws", "--tenant", "acme")
    place.ask("admin", "pool", "release", "--type", "aws", "--tenant", "acme")
    place.ask("admin", "pool", "quarantine", "aws-2", "--reason", "odd bills")
    place.ask("admin", "pool", "hold", "--reason", "accounts are moved")

    run: list[str] = []
    while commands := dict.fromkeys(printed(place)):
        for command in commands:
            words = shlex.split(command)[1:]
            with chdir(place.folder):
                done = credfleet(*words)
                done = credfleet(*words, "--yes") if "--yes" in done.stderr else done
            assert done.exit_code == 0, f"{command}: {done.output}"
            run.append(words[1])

    assert {*run} == {"clean", "resume", "unquarantine"}
    assert len(run) < 10
    assert sorted(place.standings().values()) == ["claimed", "free"]
