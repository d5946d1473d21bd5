"""What `credfleet sandbox` up, destroy, refresh, import and export do in which order, say, and end with.

The engine and the cluster are stand-ins; whole updates run in tests/program.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pulumi_sandbox.engine
import pytest
from pulumi_sandbox.engine import (
    Import,
    Op,
    Options,
    Outcome,
    Resource,
    Sink,
    Snapshot,
    StepFinished,
    Workspace,
)
from pulumi_sandbox.engine import (
    Result as Deployed,
)
from pulumi_sandbox.engine.model.events import Operation, PolicyViolation, Step, Summary
from pulumi_sandbox.engine.model.resource import PendingOperation
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties, Secret
from pulumi_sandbox.stack_cluster import StackCluster
from typer.testing import CliRunner, Result

from components.errors import Unreachable
from operations.folders import Folders
from operations.main import app
from operations.pool.access import Where
from operations.sandbox import existing, summary, updates
from operations.sandbox.stack_state import open_workspace

ROOT = "urn:pulumi:dev::credfleet::pulumi:pulumi:Stack::credfleet-dev"


def stack(outputs: Properties) -> Resource:
    return Resource(ROOT, "pulumi:pulumi:Stack", custom=False, outputs=outputs)


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
class Engine:
    """An engine that does as told and notes what it was asked for."""

    ops: dict[Operation, list[Op]] = field(default_factory=dict[Operation, list[Op]])
    outcome: dict[Operation, Outcome] = field(default_factory=dict[Operation, Outcome])
    outputs: Properties = field(default_factory=lambda: {"greeting": "hello", "token": Secret("t0ken")})
    locked: bool = False
    calls: list[tuple[Operation, Options]] = field(default_factory=list[tuple[Operation, Options]])
    deployed: Resource = field(default_factory=claim)
    kubeconfigs: list[str] = field(default_factory=list[str])

    def does(self, operation: Operation) -> Callable[[Workspace, Options, Sink], Deployed]:
        def deploy(workspace: Workspace, options: Options, sink: Sink) -> Deployed:
            self.calls.append((operation, options))
            if self.locked and operation != "preview":
                raise SandboxError(
                    code="stack-locked", place="lock", cause="me@here (pid 7) holds it", mend="wait"
                )
            outcome = self.outcome.get(operation, "succeeded")
            steps = tuple(
                StepFinished(Step.of(op, self.deployed, self.deployed), 0.1)
                for op in self.ops.get(operation, ["same"])
            )
            if operation == "update" and outcome == "succeeded":
                workspace.store.save(Snapshot((stack(self.outputs), claim())))
            changes: dict[str, int] = {step.step.op: 1 for step in steps}
            summary = Summary(operation, changes, 0.5, outcome)
            sink.handle(summary)
            code = {"succeeded": 0, "failed": 1, "cancelled": 8}[outcome]
            if not code and options.expect_no_changes and set(changes) != {"same"}:
                code = 7
            policy = PolicyViolation("no-plain", "pack", "1", "advisory", "look here", claim().urn)
            return Deployed(summary, self.outputs, steps, (policy,), code)

        return deploy

    @property
    def operations(self) -> list[Operation]:
        return [operation for operation, _ in self.calls]


@pytest.fixture
def engine(project: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    fake = Engine(ops={"preview": ["create"], "update": ["create"]})
    named: dict[str, Operation] = {
        "preview": "preview",
        "up": "update",
        "refresh": "refresh",
        "destroy": "destroy",
        "import_": "import",
    }
    for name, operation in named.items():
        monkeypatch.setattr(pulumi_sandbox.engine, name, fake.does(operation))

    def choose(folders: Folders, *_: object, **__: object) -> tuple[StackCluster, bool]:
        return StackCluster(project / "kubeconfig", "https://127.0.0.1:6443", "uid", own=False), False

    def opened(where: Where) -> None:
        raise Unreachable(place=f"pool {where.namespace}", seconds=1, last="refused")

    monkeypatch.setenv("KUBECONFIG", "/another")

    def bring(*_: Path) -> None:
        """There is no cluster to bring anything into."""

    monkeypatch.setattr(updates, "choose", choose)
    monkeypatch.setattr(existing, "bring", bring)
    monkeypatch.setattr(existing, "bring_kinds", bring)
    monkeypatch.setattr(Where, "open", opened)
    return fake


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["sandbox", *arguments])


def test_up_previews_first_and_then_updates(engine: Engine) -> None:
    assert run("up").exit_code == 0
    assert engine.operations == ["preview", "update"]


def test_up_without_a_preview_asks_first_and_updates_at_once(engine: Engine) -> None:
    refused = run("up", "--skip-preview")
    assert refused.exit_code != 0
    assert "will be updated without a preview" in refused.output
    assert engine.operations == []

    told = json.loads(run("up", "--skip-preview", "--yes", "--output", "json").stdout)
    assert engine.operations == ["update"]
    assert (told["outcome"], told["changes"]) == ("succeeded", {"create": 1})


def test_up_says_in_json_what_was_declared_and_claimed_and_masks_secrets(
    engine: Engine, project: Path
) -> None:
    result = run("up", "--output", "json")
    told = json.loads(result.stdout)
    assert told["outcome"] == "succeeded"
    assert told["changes"] == {"create": 1}
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
    assert [each["rule"] for each in told["policies"]] == ["no-plain"]
    assert told["report"] == str(project / ".sandbox" / "report.html")
    assert "t0ken" not in result.output + (project / ".sandbox" / "report.html").read_text()


def test_up_shows_tables_the_page_and_what_to_do_next(engine: Engine, project: Path) -> None:
    shown = run("up").stdout
    for part in ("Claimed", "Policies", "Next", "account-pool/aws-1"):
        assert part in shown
    assert "✓ 1 created: 1 resource declared, 1 account claimed, 0 skipped" in shown
    assert "  report  .sandbox/report.html\n" in shown


def test_what_to_do_next_names_the_stack_in_every_command(
    engine: Engine, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "typed_command", lambda: "credfleet")
    pool = "{namespace: accounts, members: {}}"
    (project / "Pulumi.mine.yaml").write_text(
        f"config:\n  credfleet:cluster: {{context: mine}}\n  credfleet:accountPool: {pool}\n"
    )
    shown = run("up", "--stack", "mine").stdout.partition("Next\n")[2].splitlines()
    commands = [line.partition("#")[0].strip() for line in shown if "credfleet" in line]
    assert len(commands) == 4
    assert [command for command in commands if "--stack mine" not in command] == []


def test_a_second_up_that_finds_everything_there_says_so_and_updates_nothing(engine: Engine) -> None:
    run("up")
    engine.calls.clear()
    engine.ops["preview"] = ["same"]
    result = run("up")
    assert result.exit_code == 0
    assert engine.operations == ["preview"]
    assert "Nothing changed" in result.stdout


def test_an_output_that_alone_changed_is_still_written_down(engine: Engine) -> None:
    run("up")
    engine.calls.clear()
    engine.ops["preview"] = ["same"]
    engine.outputs = {"greeting": "good morning"}
    run("up")
    assert engine.operations == ["preview", "update"]


@pytest.mark.parametrize(("outcome", "exit_code"), [("failed", 1), ("cancelled", 8)])
def test_a_preview_that_does_not_succeed_keeps_up_from_writing(
    engine: Engine, outcome: Outcome, exit_code: int
) -> None:
    engine.outcome["preview"] = outcome
    result = run("up")
    assert result.exit_code == exit_code
    assert engine.operations == ["preview"]
    assert "nothing was changed" in result.stderr


def test_changes_where_none_are_expected_are_found_before_anything_is_written(engine: Engine) -> None:
    assert run("up", "--expect-no-changes").exit_code == 7
    assert engine.operations == ["preview"]


@pytest.mark.parametrize(
    ("outcome", "exit_code", "begins"), [("failed", 1, "Failed"), ("cancelled", 8, "Stopped by you")]
)
def test_an_update_that_does_not_end_well_says_so_and_keeps_its_exit_code(
    engine: Engine, outcome: Outcome, exit_code: int, begins: str
) -> None:
    engine.outcome["update"] = outcome
    result = run("up")
    assert result.exit_code == exit_code
    assert f"✗ {begins}" in result.stdout
    assert "Next" not in result.stdout


def test_the_second_of_two_updates_is_told_who_holds_the_lock(engine: Engine) -> None:
    engine.locked = True
    result = run("up", "--output", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["code"] == "stack-locked"
    assert "pid 7" in json.loads(result.stdout)["error"]["message"]


def test_a_state_that_could_not_catch_up_with_a_new_api_server_is_not_built_upon(
    engine: Engine, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = StackCluster(project / "kubeconfig", "https://127.0.0.1:6443", "new", own=True)

    def choose(*_: object, **__: object) -> tuple[StackCluster, bool]:
        return new, True

    monkeypatch.setattr(updates, "choose", choose)
    engine.outcome = {"refresh": "failed"}
    result = run("up")
    assert (result.exit_code, engine.operations) == (1, ["refresh"])
    assert "not looked up to the end" in result.stderr
    assert StackCluster.recall(Folders(project).clusters("dev")) is None
    engine.outcome = {"refresh": "cancelled"}
    assert run("up").exit_code == 8
    engine.outcome = {}
    assert run("up").exit_code == 0
    assert StackCluster.recall(Folders(project).clusters("dev")) == new


def test_a_preview_stopped_by_the_user_is_called_so(engine: Engine) -> None:
    engine.outcome = {"preview": "cancelled"}
    result = run("up")
    assert (result.exit_code, engine.operations) == (8, ["preview"])
    assert "You stopped the preview; nothing was changed." in result.stderr


def test_a_bad_configuration_is_refused_before_a_cluster_is_looked_for(
    engine: Engine, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def choose(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(updates, "choose", choose)
    (project / "Pulumi.dev.yaml").write_text("config:\n  credfleet:tenants: {acme: {}}\n")
    assert run("up").exit_code == 2
    assert engine.calls == []


def test_the_policy_pack_of_the_project_is_used_unless_others_are_named(
    engine: Engine, project: Path
) -> None:
    (project / "policies").mkdir()
    (project / "policies" / "PulumiPolicy.yaml").write_text("runtime: python\n")
    run("preview")
    run("preview", "--policy-pack", "other", "--policy-pack", "/third", "--parallel", "3")
    assert [options.policy_packs for _, options in engine.calls] == [
        (project / "policies",),
        (project / "other", Path("/third")),
    ]
    assert engine.calls[1][1].parallel == 3


def test_the_projects_own_pack_is_told_the_limits_of_the_stack_and_other_packs_are_not(
    engine: Engine, project: Path
) -> None:
    own, limits = project / "policies", project / "policies" / "config" / "dev.json"
    limits.parent.mkdir(parents=True)
    (own / "PulumiPolicy.yaml").write_text("runtime: python\n")
    run("preview")
    limits.write_text("{}")
    run("preview")
    run("preview", "--policy-pack", "other")
    assert [options.policy_configs for _, options in engine.calls] == [{}, {own: limits}, {}]


@pytest.mark.parametrize("op", ["delete", "replace"])
def test_up_asks_before_it_takes_away_what_is_on_a_cluster_of_yours(engine: Engine, op: Op) -> None:
    engine.ops = {"preview": [op], "update": [op]}
    refused = run("up", "--kubeconfig", "mine")

    assert refused.exit_code == 1
    assert "--yes" in refused.stderr
    assert "update" not in engine.operations
    assert run("up", "--kubeconfig", "mine", "--yes").exit_code == 0
    assert engine.operations[-1] == "update"


def test_up_shows_what_the_sandboxs_own_cluster_loses_and_goes_on_where_nobody_could_answer(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def own(*_: object, **__: object) -> tuple[StackCluster, bool]:
        return StackCluster(Path("kubeconfig"), "https://127.0.0.1:6443", "uid", own=True), False

    monkeypatch.setattr(updates, "choose", own)
    engine.ops = {"preview": ["delete"], "update": ["delete"]}
    engine.deployed = replace(claim(), urn=f"{claim().urn}\x1b")
    result = run("up")

    assert result.exit_code == 0
    assert f"would be deleted: {claim().type} acme/aws\ufffd\n" in result.stderr
    assert engine.operations == ["preview", "update"]


def test_destroy_asks_first(engine: Engine) -> None:
    run("up")
    engine.calls.clear()
    result = run("destroy")
    assert result.exit_code == 1
    assert "1 resource of stack dev" in result.stderr
    assert engine.calls == []
    assert run("destroy", "--yes").exit_code == 0
    assert engine.operations == ["destroy"]


def test_a_stack_that_was_destroyed_may_go_to_another_cluster(engine: Engine, project: Path) -> None:
    remembered = Folders(project).clusters("dev")
    run("up")
    assert StackCluster.recall(remembered) is not None
    run("destroy", "--yes")
    assert StackCluster.recall(remembered) is None


def test_a_destroy_that_stopped_half_way_keeps_the_cluster_in_mind(engine: Engine, project: Path) -> None:
    run("up")
    engine.outcome["destroy"] = "cancelled"
    assert run("destroy", "--yes").exit_code == 8
    assert StackCluster.recall(Folders(project).clusters("dev")) is not None


MINE = ("import", "kubernetes:core/v1:Namespace", "mine", "of-mine")


def test_an_import_is_shown_asked_for_and_ends_with_the_code(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def code(imported: Import, *_: object) -> str:
        return f"{imported.name} = Namespace()\n"

    monkeypatch.setattr(pulumi_sandbox.engine, "constructor_of", code)
    asked = run(*MINE)
    assert asked.exit_code == 1
    assert "of-mine will be recorded as kubernetes:core/v1:Namespace mine of stack dev on" in asked.stderr
    assert [options.preview_only for _, options in engine.calls] == [True]
    engine.calls.clear()

    done = run(*MINE, "--yes", "--parent", "p=urn:pulumi:dev::credfleet::a:b:C::p", "--protect=false")
    assert done.exit_code == 0
    assert "Copy this into the program" in done.stdout
    assert done.stdout.endswith("mine = Namespace()\n")
    (_, shown), (_, made) = engine.calls
    assert (shown.preview_only, made.preview_only) == (True, False)
    assert made.imported == Import(
        "kubernetes:core/v1:Namespace",
        "mine",
        "of-mine",
        parent="p=urn:pulumi:dev::credfleet::a:b:C::p",
        protect=False,
    )
    assert json.loads(run(*MINE, "--yes", "--output", "json").stdout)["code"] == "mine = Namespace()\n"


def test_an_import_that_is_only_shown_or_fails_goes_no_further(engine: Engine) -> None:
    assert run(*MINE, "--preview-only").exit_code == 0
    engine.outcome["import"] = "failed"
    assert run(*MINE, "--yes").exit_code == 1
    assert [options.preview_only for _, options in engine.calls] == [True, True]
    assert run("import", "Namespace", "mine", "of-mine").exit_code == 1


def test_an_import_without_code_says_why_and_is_done(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> str:
        raise SandboxError(code="code-unavailable", place="mine", cause="no\x1b package", mend="by hand")

    monkeypatch.setattr(pulumi_sandbox.engine, "constructor_of", none)
    done = run(*MINE, "--yes", "--output", "json")
    assert (done.exit_code, json.loads(done.stdout)["code"]) == (0, None)
    assert "no\ufffd package" in done.stderr


def test_refresh_says_in_json_how_it_ended(engine: Engine) -> None:
    assert json.loads(run("refresh", "--output", "json").stdout) == {
        "stack": "dev",
        "outcome": "succeeded",
        "changes": {"same": 1},
        "seconds": 0.5,
        "errors": [],
    }


def test_events_are_json_one_a_line(engine: Engine) -> None:
    lines = [json.loads(line) for line in run("up", "--json").stdout.splitlines()]
    assert [line["summaryEvent"]["isPreview"] for line in lines] == [True, False]


def test_outputs_are_shown_masked_in_order_of_name(engine: Engine) -> None:
    run("up")
    result = run("outputs", "--output", "json")
    assert json.loads(result.stdout) == {"greeting": "hello", "token": "[secret]"}
    assert "[secret]" in run("outputs").stdout


def test_a_deployment_that_was_exported_is_imported_again(engine: Engine, project: Path) -> None:
    run("up")
    run("stack", "export", "--file", "out.json")
    exported = (project / "out.json").read_text()
    assert "t0ken" not in exported
    store = open_workspace(Folders(project), "dev").store
    before = store.load()
    store.save(Snapshot())
    assert run("stack", "import", "--file", "out.json").exit_code == 0
    assert store.load() == before


def test_what_a_stack_holds_steers_no_terminal(engine: Engine) -> None:
    engine.outputs = {"greeting": "\x9b2Jhello"}
    assert "\x9b" not in run("up").output
    written = run("stack", "export").stdout
    assert "\x9b" not in written
    stack, _ = json.loads(written)["deployment"]["resources"]
    assert stack["outputs"] == engine.outputs


def test_importing_over_resources_asks_first(engine: Engine, project: Path) -> None:
    run("up")
    run("stack", "export", "--file", "out.json")
    assert "will be replaced" in run("stack", "import", "--file", "out.json").stderr
    assert run("stack", "import", "--file", "out.json", "--yes").exit_code == 0


def test_an_import_drops_calls_that_were_under_way_and_says_so(engine: Engine, project: Path) -> None:
    run("up")
    store = open_workspace(Folders(project), "dev").store
    store.save(
        Snapshot((stack({}),), (PendingOperation(replace(claim(), urn=f"{claim().urn}\x1b"), "creating"),))
    )
    run("stack", "export", "--file", "out.json")
    result = run("stack", "import", "--file", "out.json", "--yes")
    assert f"creating {claim().urn}\ufffd" in result.stderr
    assert store.load() == Snapshot((stack({}),))


def test_a_deployment_that_breaks_a_rule_is_not_imported(engine: Engine, project: Path) -> None:
    run("up")
    run("stack", "export", "--file", "out.json")
    broken = json.loads((project / "out.json").read_text())
    broken["deployment"]["resources"].reverse()
    (project / "out.json").write_text(json.dumps(broken))
    store = open_workspace(Folders(project), "dev").store
    before = store.path.read_text()
    assert "does not stand before it" in run("stack", "import", "--file", "out.json", "--yes").stderr
    assert store.path.read_text() == before


@pytest.mark.parametrize("text", ["", "{}", "[]", "nonsense"])
def test_what_is_no_deployment_is_not_imported(engine: Engine, project: Path, text: str) -> None:
    (project / "in.json").write_text(text)
    result = run("stack", "import", "--file", "in.json")
    assert result.exit_code == 1
    assert "in.json" in result.stderr
    assert "Traceback" not in result.stderr
