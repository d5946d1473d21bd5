"""What `credfleet sandbox up` does in which order, says, and ends with.

What the Pulumi CLI tells was recorded from it; the cluster is a stand-in. Whole updates run in tests/program.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pulumi.automation.events import EngineEvent
from pulumi_sandbox import files, pulumi_cli
from pulumi_sandbox.progress_line import ProgressLine
from pulumi_sandbox.protocol.values import Properties, Secret
from pulumi_sandbox.pulumi_cli import PulumiCli
from pulumi_sandbox.stack_cluster import StackCluster
from typer.testing import CliRunner, Result

from components.errors import Unreachable
from components.skipped_lines import skipped_lines
from operations.folders import Folders, stack_of
from operations.main import app
from operations.pool.access import PoolTarget
from operations.sandbox import control_plane, existing, updates
from operations.sandbox.results import FLEET
from operations.stack.state import Resource, Snapshot, state_text
from tests.operations.sandbox.told import LOCKED, raw, refusal
from tests.support.cases import tabled

ROOT = "urn:pulumi:dev::credfleet::pulumi:pulumi:Stack::credfleet-dev"
FAILED = "error: update failed\n"


def stack(outputs: Properties) -> Resource:
    return Resource(ROOT, "pulumi:pulumi:Stack", custom=False, outputs=outputs)


def fleet(skipped: Properties) -> Resource:
    urn = f"urn:pulumi:dev::credfleet::{FLEET}::fleet"
    return Resource(urn, FLEET, custom=False, parent=ROOT, outputs={"skipped": skipped})


def claim(phase: str = "Bound") -> Resource:
    kind = "pulumi-python:dynamic/credfleet:AccountClaim"
    outputs: Properties = {
        "tenant": "acme",
        "slot": "aws",
        "type": "aws",
        "secretName": "aws-1",
        "namespace": "account-pool",
        "phase": phase,
        "reused": False,
    }
    urn = f"urn:pulumi:dev::credfleet::{kind}::acme/aws"
    return Resource(urn, kind, custom=True, id="claim-1", parent=ROOT, outputs=outputs)


@dataclass
class Cli:
    """A stack of the CLI, which tells what was recorded, of a claim in place of the first resource.

    tells: verb → what it tells. ends: verb → what it says last where it does not end well.
    """

    tells: dict[str, str] = field(default_factory=lambda: {"preview": "first-preview", "up": "first-up"})
    ends: dict[str, str] = field(default_factory=dict[str, str])
    outputs: Properties = field(default_factory=lambda: {"greeting": "hello", "token": Secret("t0ken")})
    phase: str = "Bound"
    skipped: tuple[Properties, ...] = ()
    name: str = claim().urn
    said: tuple[str, ...] = ()
    stopped: bool = False
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list[tuple[str, dict[str, Any]]])

    def _does(self, verb: str, on_event: Callable[[EngineEvent], None], options: dict[str, Any]) -> None:
        self.calls.append((verb, options))
        for text in self.said:
            message = {"message": text, "severity": "info", "color": "never"}
            on_event(EngineEvent.from_json({"sequence": 0, "timestamp": 0, "diagnosticEvent": message}))
        for event in raw(self.tells.get(verb, "same-preview")):
            text = json.dumps(event).replace("urn:pulumi:dev::mine::pulumi:pulumi:Stack::mine-dev", ROOT)
            text = text.replace(
                "urn:pulumi:dev::mine::pulumi-python:dynamic:Resource::apple", json.dumps(self.name)[1:-1]
            )
            on_event(EngineEvent.from_json(json.loads(text)))
        if self.stopped:
            os.kill(os.getpid(), 2)
        if verb in self.ends:
            raise refusal(self.ends[verb])
        if verb == "up":
            folders = Folders.find(Path.cwd())
            for each in ("dev", "mine"):
                if (folders.project / f"Pulumi.{each}.yaml").is_file():
                    at_rest = stack_of(folders, each)
                    crypter = at_rest.unlock(public=folders.public_passphrase(each))
                    state = Snapshot((stack(self.outputs), claim(self.phase), *map(fleet, self.skipped)))
                    files.replace(at_rest.state_file, state_text("credfleet", each, state, crypter))

    def preview(self, *, on_event: Callable[[EngineEvent], None], **options: Any) -> None:
        self._does("preview", on_event, options)

    def up(self, *, on_event: Callable[[EngineEvent], None], **options: Any) -> None:
        self._does("up", on_event, options)

    def refresh(self, *, on_event: Callable[[EngineEvent], None], **options: Any) -> None:
        self._does("refresh", on_event, options)

    @property
    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.calls]


@pytest.fixture
def cli(project: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    fake = Cli()

    def select(*_: object) -> Cli:
        return fake

    def find(_owner: str, _progress: ProgressLine) -> PulumiCli:
        return PulumiCli(project / "bin" / "pulumi", "v3.274.1")

    def build(*_: object, **__: object) -> None:
        """There is nothing to build."""

    def choose(folders: Folders, *_: object, **__: object) -> tuple[StackCluster, bool]:
        return StackCluster(project / "kubeconfig", "https://127.0.0.1:6443", "uid", own=False), False

    def opened(where: PoolTarget) -> None:
        raise Unreachable(place=f"pool {where.namespace}", seconds=1, last="refused")

    for variable in ("KUBECONFIG", "PATH", "PULUMI_HOME", "PULUMI_BACKEND_URL", "SSL_CERT_FILE"):
        monkeypatch.setenv(variable, os.environ.get(variable, ""))  # what an update sets is undone
    monkeypatch.delenv("PULUMI_BACKEND_URL")
    monkeypatch.setattr(updates, "select_stack", select)
    monkeypatch.setattr(pulumi_cli, "find", find)
    monkeypatch.setattr(control_plane, "build", build)
    monkeypatch.setattr(updates, "choose", choose)
    monkeypatch.setattr(existing, "bring", build)
    monkeypatch.setattr(existing, "bring_kinds", build)
    monkeypatch.setattr(PoolTarget, "open", opened)
    return fake


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["sandbox", *arguments])


def test_up_without_a_preview_asks_first_and_updates_at_once(cli: Cli) -> None:
    refused = run("up", "--skip-preview")
    assert refused.exit_code != 0
    assert "will be updated without a preview" in refused.output
    assert cli.verbs == []

    told = json.loads(run("up", "--skip-preview", "--yes", "--output", "json").stdout)
    assert cli.verbs == ["up"]
    assert (told["outcome"], told["changes"]) == ("succeeded", {"create": 4})


def test_up_says_in_json_what_was_declared_and_claimed_and_masks_secrets(cli: Cli, project: Path) -> None:
    result = run("up", "--output", "json")
    told = json.loads(result.stdout)
    assert cli.verbs == ["preview", "up"]
    assert "Previewing" in result.stderr
    assert told["outcome"] == "succeeded"
    assert told["changes"] == {"create": 4}
    assert told["declared"] == [
        {
            "urn": claim().urn,
            "type": "pulumi-python:dynamic/credfleet:AccountClaim",
            "name": "acme/aws",
            "id": "claim-1",
            "action": "created",
        }
    ]
    assert told["claimed"] == [
        {
            "tenant": "acme",
            "slot": "aws",
            "type": "aws",
            "secretName": "aws-1",
            "namespace": "account-pool",
            "phase": "Bound",
            "reused": False,
        }
    ]
    assert told["outputs"] == {"greeting": "hello", "token": "[secret]"}
    assert [each["rule"] for each in told["policies"]] == ["no-green"]
    assert told["report"] == str(project / ".sandbox" / "report.html")
    assert "t0ken" not in result.output + (project / ".sandbox" / "report.html").read_text()


def test_up_shows_tables_the_page_and_what_to_do_next(cli: Cli) -> None:
    shown = run("up").stdout
    for part in ("Claimed", "Policies", "Next", "account-pool/aws-1"):
        assert part in shown
    assert "✓ 1 created: 1 resource declared, 1 account claimed, 0 skipped" in shown
    assert "  report  .sandbox/report.html\n" in shown


def test_what_to_do_next_names_the_stack_in_every_command(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = "{namespace: accounts, members: {}}"
    (project / "Pulumi.mine.yaml").write_text(
        f"config:\n  credfleet:cluster: {{context: mine}}\n  credfleet:accountPool: {pool}\n"
    )
    shown = run("up", "--stack", "mine").stdout.partition("Next\n")[2].splitlines()
    commands = [each for line in shown if "credfleet" in (each := line.partition("#")[0]) or "pulumi" in each]
    assert len(commands) == 4
    assert [command for command in commands if "--stack mine" not in command] == []


def test_a_second_up_that_finds_everything_there_says_so_and_updates_nothing(cli: Cli) -> None:
    run("up")
    cli.calls.clear()
    cli.tells["preview"] = "same-preview"
    result = run("up", "--expect-no-changes")
    assert result.exit_code == 0
    assert cli.verbs == ["preview"]
    assert "Nothing changed" in result.stdout


@pytest.mark.parametrize(("stopped", "exit_code"), [(False, 1), (True, 8)])
def test_a_preview_that_does_not_succeed_keeps_up_from_writing(
    cli: Cli, *, stopped: bool, exit_code: int
) -> None:
    cli.ends["preview"] = "error: preview failed\n"
    cli.stopped = stopped
    result = run("up")
    assert result.exit_code == exit_code
    assert cli.verbs == ["preview"]
    why = "You stopped the preview" if stopped else "The preview found a reason not to go on"
    assert f"{why}; nothing was changed." in result.stderr


def test_a_mandatory_policy_keeps_up_from_writing(cli: Cli) -> None:
    cli.tells["preview"], cli.ends["preview"] = "denied-preview", "error: preview failed\n"
    result = run("up")
    assert (result.exit_code, cli.verbs) == (1, ["preview"])
    assert "no-forbidden: nothing is forbidden" in result.stdout


def test_changes_where_none_are_expected_are_found_before_anything_is_written(cli: Cli) -> None:
    assert run("up", "--expect-no-changes").exit_code == 7
    assert cli.verbs == ["preview"]


@pytest.mark.parametrize(
    ("stopped", "exit_code", "begins"), [(False, 1, "Failed"), (True, 8, "Stopped by you")]
)
def test_an_update_that_does_not_end_well_says_so_and_keeps_its_exit_code(
    cli: Cli, *, stopped: bool, exit_code: int, begins: str
) -> None:
    cli.tells["up"], cli.ends["up"] = "failing-up", FAILED
    run_up = cli.up

    def up(**options: Any) -> None:
        cli.stopped = stopped
        run_up(**options)

    cli.up = up
    result = run("up")
    assert result.exit_code == exit_code
    assert f"✗ {begins}" in result.stdout
    assert "Next" not in result.stdout


@tabled("phase, what, codes")
def test_what_was_skipped_ends_an_update_with_its_own_code_unless_the_sandbox_lacks_its_operator(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, phase: str, what: str, codes: tuple[int, int]
) -> None:
    cli.phase, cli.skipped = phase, ({what: "ExternalSecret is not served"},) if what else ()
    assert run("up").exit_code == codes[0]

    def choose(*_: object, **__: object) -> tuple[StackCluster, bool]:
        return StackCluster(Path("kubeconfig"), "https://127.0.0.1:6443", "uid", own=True), False

    monkeypatch.setattr(updates, "choose", choose)
    assert run("up").exit_code == codes[1]


def test_the_second_of_two_updates_is_told_who_holds_the_lock(cli: Cli) -> None:
    cli.ends["up"] = LOCKED
    result = run("up", "--output", "json")
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert error["code"] == "stack-locked"
    assert "pid 7" in error["message"]
    assert "`pulumi cancel --yes`" in result.stdout


def test_a_state_that_could_not_catch_up_with_a_new_api_server_is_not_built_upon(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = StackCluster(project / "kubeconfig", "https://127.0.0.1:6443", "new", own=True)

    def choose(*_: object, **__: object) -> tuple[StackCluster, bool]:
        return new, True

    monkeypatch.setattr(updates, "choose", choose)
    cli.ends = {"refresh": FAILED}
    result = run("up")
    assert (result.exit_code, cli.verbs) == (1, ["refresh"])
    assert "was not completed" in result.stderr
    assert StackCluster.recall(Folders(project).clusters("dev")) is None
    cli.stopped = True
    assert run("up").exit_code == 8
    cli.ends, cli.stopped = {}, False
    assert run("up").exit_code == 0
    assert StackCluster.recall(Folders(project).clusters("dev")) == new


def test_a_bad_configuration_is_refused_before_a_cluster_is_looked_for(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def choose(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(updates, "choose", choose)
    (project / "Pulumi.dev.yaml").write_text("config:\n  credfleet:tenants: {acme: {}}\n")
    assert run("up").exit_code == 2
    assert cli.calls == []


def test_the_policy_pack_of_the_project_is_used_with_what_the_stack_tells_it(cli: Cli, project: Path) -> None:
    limits = project / "policies" / "config" / "dev.json"
    limits.parent.mkdir(parents=True)
    (project / "policies" / "PulumiPolicy.yaml").write_text("runtime: python\n")
    run("up", "--parallel", "3")
    limits.write_text("{}")
    run("up")
    pack = {"policy_packs": [str(project / "policies")]}
    assert [options for _, options in cli.calls] == [
        *[{"parallel": 3, **pack}] * 2,
        *[{"parallel": 16, **pack, "policy_pack_configs": [str(limits)]}] * 2,
    ]


def test_up_asks_before_it_takes_away_what_is_on_a_cluster_of_yours(cli: Cli) -> None:
    cli.tells = {"preview": "second-preview", "up": "second-up"}
    refused = run("up", "--kubeconfig", "mine")
    assert refused.exit_code == 1
    assert "2 resources of stack dev" in refused.stderr
    assert "--yes" in refused.stderr
    assert "up" not in cli.verbs
    assert run("up", "--kubeconfig", "mine", "--yes").exit_code == 0
    assert cli.verbs[-1] == "up"


def test_up_shows_what_the_sandboxs_own_cluster_loses_and_goes_on_where_nobody_could_answer(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def own(*_: object, **__: object) -> tuple[StackCluster, bool]:
        return StackCluster(Path("kubeconfig"), "https://127.0.0.1:6443", "uid", own=True), False

    monkeypatch.setattr(updates, "choose", own)
    cli.tells = {"preview": "second-preview", "up": "second-up"}
    result = run("up")

    assert result.exit_code == 0
    assert "would be deleted: pulumi-python:dynamic:Resource plum\n" in result.stderr
    assert "would be replaced: pulumi-python:dynamic:Resource pear\n" in result.stderr
    assert cli.verbs == ["preview", "up"]


def test_what_a_resource_is_called_steers_no_terminal(cli: Cli) -> None:
    cli.name = f"{claim().urn}\x1b[2J"
    cli.outputs = {"greeting": "\x9b2Jhello"}
    shown = run("up").output
    assert "\x1b" not in shown
    assert "\x9b" not in shown


def test_people_are_not_shown_what_a_table_tells_them(cli: Cli) -> None:
    cli.said = (*skipped_lines({"pull secret x": "adapter dns reports False"}), "expected to get aws-1")
    shown = run("up").output
    assert "adapter dns" not in shown
    assert "info: expected to get aws-1" in shown


def test_up_goes_not_on_from_a_state_that_lacks_what_a_killed_run_of_old_did(cli: Cli, project: Path) -> None:
    files.replace(stack_of(Folders(project), "dev").state_file.with_name("dev.json.steps"), "{}")
    refused = run("up", "--output", "json")
    assert json.loads(refused.stdout)["error"]["code"] == "state-invalid"
    assert cli.verbs == []


def test_up_removes_the_lock_of_a_killed_update_and_says_so(cli: Cli, project: Path) -> None:
    locks = Folders(project).backend / ".pulumi" / "locks" / "organization" / "credfleet" / "dev"
    locks.mkdir(parents=True)
    own = {"pid": os.getpid(), "hostname": socket.gethostname()}
    (locks / "a.json").write_text(json.dumps(own))
    result = run("up")
    assert f"an update was killed (process {os.getpid()}): its lock is removed" in result.stderr
    assert [*locks.iterdir()] == []
    assert result.exit_code == 0
