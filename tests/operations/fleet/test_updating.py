"""In which order the stacks of a fleet are brought up, and what of them when one fails."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from threading import Barrier, Event
from types import SimpleNamespace

import pytest

from components.config.shards import Shards
from components.errors import CredfleetError
from operations.fleet import updating
from operations.fleet.updating import Outcome, up_together, update_fleets
from operations.folders import Folders
from sandbox.tests.support.cli_folder import HANG, Cli, await_file, left_behind, running
from tests.support.fleet_project import CREDFLEET

FLEETS = {
    "prod": Shards.model_validate({"pool": "pool", "stacks": {"a": {}, "b": {"since": "m"}}}),
    "other": Shards.model_validate({"pool": "broken", "stacks": {"c": {}}}),
    "third": Shards.model_validate({"pool": "pool", "stacks": {"d": {}}}),
}
ALL = {"pool", "broken", "a", "b", "c", "d"}


def test_pools_come_first_and_once_and_what_claims_from_one_that_failed_is_left_out() -> None:
    asked: list[str] = []

    def update(stack: str) -> Outcome:
        asked.append(stack)
        return Outcome(stack, "failed", 1) if stack == "broken" else Outcome(stack, "succeeded", 0)

    told = {each.stack: each.outcome for each in update_fleets(FLEETS, ALL, 1, update)}
    assert asked == ["pool", "broken", "a", "b", "d"]
    assert told == {
        **dict.fromkeys(("pool", "a", "b", "d"), "succeeded"),
        "broken": "failed",
        "c": "left out",
    }


def test_as_many_as_are_allowed_run_at_the_same_time() -> None:
    together = Barrier(3)

    def update(stack: str) -> Outcome:
        together.wait(timeout=60)
        return Outcome(stack, "succeeded", 0)

    assert [each.stack for each in update_fleets(FLEETS, {"a", "b", "d"}, 3, update)] == ["a", "b", "d"]


def test_stack_whose_cli_a_signal_ended_is_told_as_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = Event()

    def found(*_: object) -> SimpleNamespace:
        return backend

    def ended(*_: object, **_options: object) -> None:
        stopped.set()
        raise CredfleetError(code="stack-unavailable", place="a", problem="the CLI cannot open it", fix="-")

    (tmp_path / "Pulumi.yaml").write_text("{name: mine, runtime: python}")
    (tmp_path / "stacks.yaml").write_text("fleets: {f: {stacks: {a: {}}}}")
    backend = SimpleNamespace(folders=Folders(tmp_path), names=list, deployments=dict.fromkeys)
    monkeypatch.setattr(updating.Backend, "find", found)
    monkeypatch.setattr(updating, "interruptible", lambda: nullcontext(stopped))
    monkeypatch.setattr(updating.StackAtRest, "find", ended)
    monkeypatch.chdir(tmp_path)
    done = up_together((), 1, None)
    assert done.exit_code == 8
    assert [(each["outcome"], each["code"]) for each in done.document["stacks"]] == [("cancelled", 8)]


STANDS = """\
import pathlib, threading, pulumi
pathlib.Path("runs-" + pulumi.get_stack()).touch()
threading.Event().wait()
"""


@pytest.mark.life
def test_ctrl_c_ends_every_cli_in_order_and_begins_with_no_other_stack(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cli.program(STANDS)
    for stack in ("a", "b", "c"):
        text = "config:\n  credfleet:cluster: {context: mine}\n  credfleet:tenants: {}\n"
        (cli.folder / f"Pulumi.{stack}.yaml").write_text(text)
    (cli.folder / "Pulumi.broken.yaml").write_text("config: {credfleet:tenants: 7}\n")
    stacks = {"broken": {}, "a": {"since": "m"}, "b": {"since": "n"}, "c": {"since": "o"}}
    (cli.folder / "stacks.yaml").write_text(json.dumps({"fleets": {"f": {"stacks": stacks}}}))
    command = [sys.executable, str(CREDFLEET), "fleet", "up", "--at-once", "2", "--output", "json"]
    with subprocess.Popen(
        command, cwd=cli.folder, env=cli.environment, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        for stack in ("a", "b"):
            await_file(cli.folder / f"runs-{stack}", process.poll)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=HANG)
    told = {each["stack"]: each for each in json.loads(out)["stacks"]}
    assert process.returncode == 8
    assert {name: each["outcome"] for name, each in told.items()} == {
        "broken": "failed",
        "a": "cancelled",
        "b": "cancelled",
        "c": "left out",
    }
    assert "Pulumi.broken.yaml" in told["broken"]["why"]
    assert not [*(tmp_path / "state" / ".pulumi" / "locks").rglob("*.json")]
    assert not left_behind(running(str(tmp_path)))
