"""What a preview or an update comes to, by the events that the Pulumi CLI told; and locks of killed ones."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from pulumi.automation.events import EngineEvent

from components.errors import CredfleetError
from operations.sandbox.deployment import Deployed, deploy, free_dead_lock, interruptible, select_stack
from sandbox.tests.support.cli_folder import HANG, PROGRAM, STANDS, Cli, await_file
from tests.operations.sandbox.told import LOCKED, events, refusal


def tells(name: str, stderr: str = "") -> Callable[..., None]:
    """Return a command that tells what was recorded, and fails where it said something else."""

    def run(*, on_event: Callable[[EngineEvent], None], **_options: object) -> None:
        for event in events(name):
            on_event(event)
        if stderr:
            raise refusal(stderr)

    return run


def shown(_event: EngineEvent) -> None:
    """Show nothing."""


def steps(deployed: Deployed) -> set[tuple[str, str, bool, bool]]:
    return {(each.op, each.name, each.done, each.failed) for each in deployed.steps if each.id or each.inputs}


def test_deploy_tells_what_an_update_did() -> None:
    done = deploy(tells("second-up"), shown)
    assert (done.outcome, done.exit_code, done.errors) == ("succeeded", 0, [])
    assert steps(done) >= {
        ("same", "apple", True, False),
        ("delete", "plum", True, False),
        ("delete-replaced", "pear", True, False),
    }
    assert done.changes == {"delete": 1, "same": 3}
    assert done.seconds > 0


def test_deploy_tells_what_an_update_would_do() -> None:
    foreseen = deploy(tells("second-preview"), shown)
    assert steps(foreseen) >= {
        ("update", "apple", False, False),
        ("create-replacement", "pear", False, False),
        ("replace", "pear", False, False),
        ("delete", "plum", False, False),
    }
    assert not any(each.done for each in foreseen.steps)
    assert foreseen.changes == {"delete": 1, "replace": 1, "same": 1, "update": 1}


def test_deploy_tells_which_step_failed_and_why() -> None:
    done = deploy(tells("failing-up", "error: update failed"), shown)
    assert (done.outcome, done.exit_code) == ("failed", 1)
    assert ("create", "fig", True, True) in steps(done)
    assert "ValueError: no such colour" in done.errors[0]
    assert "something will fail" in done.messages
    assert "hello from the program" in done.messages


@pytest.mark.parametrize(
    ("name", "differ"),
    [("first-up", False), ("same-preview", False), ("second-preview", True), ("failing-up", True)],
)
def test_deploy_compares_the_outputs_of_the_stack(name: str, *, differ: bool) -> None:
    assert deploy(tells(name), shown).outputs_differ is differ


@pytest.mark.parametrize(
    ("name", "rule", "level"),
    [("first-preview", "no-green", "advisory"), ("denied-preview", "no-forbidden", "mandatory")],
)
def test_deploy_tells_what_policies_remarked(name: str, rule: str, level: str) -> None:
    found = deploy(tells(name), shown).policy
    assert [(each.policy_name, each.enforcement_level) for each in found] == [(rule, level)]


def test_deploy_shows_no_value_of_a_secret() -> None:
    (apple,) = {
        each.name: each for each in deploy(tells("first-up"), shown).steps if each.name == "apple"
    }.values()
    assert apple.inputs["colour"] == "green"
    assert "s3cret" not in str(apple.inputs)


def test_deploy_of_a_command_without_events_tells_its_last_words() -> None:
    def run(**_: object) -> None:
        raise refusal("warning: old\nerror: no such stack\n")

    done = deploy(run, shown)
    assert (done.outcome, done.errors) == ("failed", ["error: no such stack"])


def test_deploy_of_a_locked_stack_names_who_holds_it() -> None:
    with pytest.raises(CredfleetError) as caught:
        deploy(tells("first-preview", LOCKED), shown)
    assert caught.value.code == "stack-locked"
    assert "(pid 7)" in str(caught.value)


ENDED = subprocess.Popen([sys.executable, "-c", ""])
"""A process that has ended: no other one has its number while it is not waited for."""


def a_lock(backend: Path, **fields: Any) -> Path:
    folder = backend / ".pulumi" / "locks" / "organization" / "mine" / "dev"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{len([*folder.iterdir()])}.json"
    file.write_text(
        json.dumps({"pid": ENDED.pid, "username": "me", "hostname": socket.gethostname(), **fields})
    )
    return file


def test_free_dead_lock_removes_the_lock_of_a_process_that_is_gone(tmp_path: Path) -> None:
    ENDED.wait()
    file = a_lock(tmp_path)
    assert free_dead_lock(tmp_path, "mine", "prod") == []
    assert free_dead_lock(tmp_path, "mine", "dev") == [ENDED.pid]
    assert not file.exists()


def test_free_dead_lock_removes_the_lock_of_a_process_that_is_no_pulumi(tmp_path: Path) -> None:
    assert not psutil.Process().name().startswith("pulumi")
    a_lock(tmp_path, pid=os.getpid())
    assert free_dead_lock(tmp_path, "mine", "dev") == [os.getpid()]


def test_free_dead_lock_leaves_the_lock_of_a_wrapped_pulumi(tmp_path: Path) -> None:
    wrapped = tmp_path / ".pulumi-wrapped"
    shutil.copy(sys.executable, wrapped)
    with subprocess.Popen([wrapped, "-c", "input()"], stdin=subprocess.PIPE) as process:
        file = a_lock(tmp_path, pid=process.pid)
        assert free_dead_lock(tmp_path, "mine", "dev") == []
        process.communicate(b"\n")
    assert file.exists()


def test_free_dead_lock_leaves_the_lock_of_a_process_that_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hidden(pid: int) -> None:
        raise psutil.NoSuchProcess(pid)

    file = a_lock(tmp_path, pid=os.getpid())
    monkeypatch.setattr(psutil, "Process", hidden)
    assert free_dead_lock(tmp_path, "mine", "dev") == []
    assert file.exists()


@pytest.mark.parametrize("fields", [{"hostname": "elsewhere"}, {"pid": "seven"}, {"pid": None}])
def test_free_dead_lock_leaves_what_it_cannot_judge(tmp_path: Path, fields: dict[str, Any]) -> None:
    file = a_lock(tmp_path, **fields)
    assert free_dead_lock(tmp_path, "mine", "dev") == []
    assert file.exists()


def test_a_killed_update_leaves_a_lock_that_is_freed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli = Cli(tmp_path)
    for name, text in cli.environment.items():
        monkeypatch.setenv(name, text)
    process = cli.start("up", "--yes", "--skip-preview")
    assert process.stdout is not None
    with closing(process.stdout):
        assert free_dead_lock(tmp_path / "state", "mine", "dev") == []
        process.send_signal(signal.SIGKILL)
        process.wait(HANG)
    cli.program(PROGRAM)
    stack = select_stack(cli.folder, "dev")
    with pytest.raises(CredfleetError, match=rf"pid {process.pid}\b"):
        deploy(stack.up, shown)
    assert free_dead_lock(tmp_path / "state", "mine", "dev") == [process.pid]
    assert deploy(stack.up, shown).outcome == "succeeded"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_cli_in_order_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """By these; tests/operations/fleet/test_updating.py has SIGINT."""
    cli = Cli(tmp_path)
    for name, text in cli.environment.items():
        monkeypatch.setenv(name, text)
    cli.program(STANDS)
    stack = select_stack(cli.folder, "dev")

    def interrupt() -> None:
        await_file(cli.folder / "runs")
        os.kill(os.getpid(), number)

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        threading.Thread(target=interrupt, daemon=True).start()
        ended = deploy(stack.up, shown)
        assert (ended.outcome, ended.exit_code) == ("cancelled", 8)
        assert bystander.poll() is None
        assert bystander.stdin is not None
        bystander.stdin.write(b"\n")
    assert bystander.returncode == 0
    assert free_dead_lock(tmp_path / "state", "mine", "dev") == []


@pytest.mark.parametrize("error", [refusal("read"), CredfleetError(code="", place="", problem="", fix="")])
def test_what_a_cli_that_a_signal_ended_did_not_do_is_no_error_of_its_own(error: Exception) -> None:
    with pytest.raises(type(error)), interruptible():
        raise error
    with pytest.raises(KeyboardInterrupt), interruptible() as stopped:
        raise stopped.set() or error


def test_select_stack_makes_a_stack_and_tells_why_it_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = Cli(tmp_path)
    for name, text in cli.environment.items():
        monkeypatch.setenv(name, text)
    assert select_stack(cli.folder, "new").name == "new"
    monkeypatch.setenv("PULUMI_BACKEND_URL", (tmp_path / "nowhere").as_uri())
    with pytest.raises(CredfleetError, match="no such file or directory") as caught:
        select_stack(cli.folder, "new")
    assert caught.value.code == "stack-unavailable"
