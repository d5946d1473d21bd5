"""Ctrl-C and SIGTERM: the first ends gracefully, the second at once."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from pulumi_sandbox.services import processes

from sandbox.tests.engine.conftest import PASSPHRASE
from sandbox.tests.support.engine_stack import Stack
from sandbox.tests.support.recording_provider import RecordingProvider
from sandbox.tests.support.scripted_program import Script, nothing


def interrupting(number: signal.Signals, then: Callable[[], object]) -> Callable[[], None]:
    """Return an interference that sends this process a signal in the middle of a call."""

    def interfere() -> None:
        os.kill(os.getpid(), number)
        then()

    return interfere


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_calls_under_way_finish_and_begins_no_other(
    stack: Stack, provider: RecordingProvider, number: signal.Signals
):
    told = threading.Event()
    provider.on["Create", "slow"] = interrupting(number, lambda: told.wait(5))
    late: list[BaseException | None] = []

    def program(script: Script) -> None:
        def then_late() -> None:
            while not provider.of("Cancel"):
                told.wait(0.01)
            told.set()
            script.register("late")

        late.extend(script.together(lambda: script.register("slow"), then_late))

    up = stack.up(program)
    assert up.code == 8
    assert up.result.summary.outcome == "cancelled"
    assert any("stopping" in message for message in up.messages)
    assert provider.names() == ["slow"]
    assert stack.resource("slow").outputs == provider.thing("slow").outputs
    assert stack.records("late") == []
    assert stack.snapshot.pending == ()
    assert late[1] is not None
    assert stack.up(lambda program: [program.register(name) for name in ("slow", "late")]).code == 0


def test_the_second_signal_ends_at_once_and_leaves_the_call_recorded_as_pending(
    stack: Stack, provider: RecordingProvider
):
    over = threading.Event()

    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        while not provider.of("Cancel"):
            over.wait(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        over.wait(10)

    provider.on["Create", "stuck"] = twice
    up = stack.up(lambda program: program.register("stuck"))
    over.set()
    assert up.code == 8
    assert [(each.type, each.resource.urn.rpartition("::")[2]) for each in stack.snapshot.pending] == [
        ("creating", "stuck")
    ]
    provider.on.clear()
    up = stack.up(lambda program: program.register("stuck"))
    assert up.code == 0
    assert stack.snapshot.pending == ()


def test_a_destroy_can_be_interrupted_too(stack: Stack, provider: RecordingProvider):
    def program(script: Script) -> None:
        needed = script.register("needed")
        script.register("slow", {}, depends_on={"": [needed.urn]})

    stack.up(program)
    provider.on["Delete", "slow"] = interrupting(signal.SIGINT, lambda: None)
    destroy = stack.destroy()
    assert destroy.code == 8
    assert "needed" in provider.names()
    assert "needed" in stack.names
    provider.on.clear()
    assert stack.destroy().code == 0
    assert stack.names == []


def test_an_interrupted_refresh_leaves_the_state_as_it_was(stack: Stack, provider: RecordingProvider):
    stack.up(lambda program: [program.register(name) for name in ("a", "b")])
    before = stack.state_text
    provider.on["Read", "a"] = interrupting(signal.SIGINT, provider.things.clear)
    assert stack.refresh(parallel=1).code == 8
    assert stack.state_text == before


_ENGINE = """
import sys
from pathlib import Path
from pulumi_sandbox.engine import Options, Workspace, up

class Sink:
    def handle(self, event): ...

project = Path(sys.argv[1])
workspace = Workspace.open(project, "dev", backend_dir=project / "backend", passphrase=sys.argv[2])
up(workspace, Options(), Sink())
"""


def test_no_child_outlives_an_engine_that_is_killed(stack: Stack):
    command = [sys.executable, "-c", _ENGINE, str(stack.directory), PASSPHRASE]
    with subprocess.Popen(command) as engine:
        (stack.virtualenv / "bin" / "task").read_text()
        program = int((stack.virtualenv / "bin" / "pid").read_text())
        engine.kill()
        assert processes.first_ended([program], 10) == program


def test_the_signals_mean_what_they_meant_before_when_the_run_is_over(stack: Stack):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    stack.up(nothing)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
