"""How a provider is asked that is served within the engine's process.

Not here: what the stand-ins answer (sandbox/tests/providers, sandbox/tests/cluster, sandbox/tests/clouds).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import pytest
from pulumi_sandbox.engine.plugins import plugin_provider
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.calls import Calls
from pulumi_sandbox.protocol.values import Properties, Secret
from pulumi_sandbox.providers.contract import InitFailedError, Package, Provider, State
from pulumi_sandbox.providers.server import calls

from sandbox.tests.support.engine_stack import Outcome, Stack
from sandbox.tests.support.scripted_program import Script

BOX = "boxes:index:Box"
PASSWORD = "hunter2-hunter2"


class Boxes:
    """Makes boxes, which it keeps, and fails as their inputs say."""

    def __init__(self) -> None:
        self.made: dict[str, Properties] = {}
        self.together = threading.Barrier(2, timeout=30)
        self.waiting = threading.Semaphore(0)
        self.cancelled = threading.Event()
        self.over = threading.Event()

    def check(self, _urn: str, _old: Properties, new: Properties, **_options: Any) -> Any:
        return new, []

    def preview_create(self, _urn: str, new: Properties) -> State:
        return State("", new, {})

    def create(self, _urn: str, new: Properties, _seconds: float) -> State:
        fails = new.get("fails")
        if fails == "refused":
            raise SandboxError(code="full", place="boxes", cause=f"not {PASSWORD}", mend="wait")
        if fails == "broken":
            raise KeyError(PASSWORD)
        if new.get("together"):
            self.together.wait()
        if new.get("stays"):
            os.kill(os.getpid(), signal.SIGINT)
            self.cancelled.wait(60)
            os.kill(os.getpid(), signal.SIGINT)
            if not self.over.wait(5):
                self.over.set()
        if new.get("waits"):
            self.waiting.release()
            self.cancelled.wait(60)
        state = State(f"box-{len(self.made)}", new, {})
        self.made[state.id] = new
        if fails == "half-way":
            raise InitFailedError(state, f"{PASSWORD} does not open it")
        return state

    def delete(self, _urn: str, old: State, _seconds: float) -> None:
        del self.made[old.id]

    def cancel(self) -> None:
        """End all waits."""
        self.cancelled.set()


@pytest.fixture
def boxes() -> Boxes:
    return Boxes()


def served_by(boxes: Boxes) -> Callable[[Path], Calls]:
    """Return what serves the package."""
    package = Package("Boxes", "1.0.0", lambda _options: [], lambda _options: cast("Provider", boxes))

    def served(_program: Path) -> Calls:
        return calls(package)

    return served


def up(stack: Stack, boxes: Boxes, *given: Properties) -> Outcome:
    """Declare a box for each of the inputs, all at once."""

    def program(script: Script) -> None:
        script.together(
            *(
                partial(script.register, f"box-{number}", inputs, type_=BOX)
                for number, inputs in enumerate(given)
            )
        )

    return stack.up(program, providers={"boxes": served_by(boxes)})


def test_calls_are_answered_side_by_side(stack: Stack, boxes: Boxes):
    assert up(stack, boxes, {"together": True}, {"together": True}).code == 0
    assert len(boxes.made) == 2


@pytest.mark.parametrize(
    ("fails", "told"),
    [
        ("refused", "not [secret]"),
        ("broken", "a defect of the stand-in: KeyError: '[secret]'"),
    ],
)
def test_a_call_that_is_refused_made_nothing_and_is_told_without_secrets(
    stack: Stack, boxes: Boxes, fails: str, told: str
):
    outcome = up(stack, boxes, {"fails": fails, "password": Secret(PASSWORD)})
    assert outcome.failed_with(told)
    assert PASSWORD not in outcome.text
    assert stack.records("box-0") == []


def test_what_was_made_by_half_is_recorded_with_its_reason_without_secrets(stack: Stack, boxes: Boxes):
    outcome = up(stack, boxes, {"fails": "half-way", "password": Secret(PASSWORD)})
    assert outcome.failed_with("[secret] does not open it")
    assert stack.resource("box-0").id == "box-0"
    assert PASSWORD not in outcome.text + stack.state_text


def test_what_a_stand_in_does_not_serve_is_refused_in_words(stack: Stack, boxes: Boxes):
    def program(script: Script) -> None:
        script.register("all", {}, type_="boxes:index:Boxes", custom=False, remote=True)

    outcome = stack.up(program, providers={"boxes": served_by(boxes)})
    assert outcome.failed_with("the stand-in does not serve Construct: use the Pulumi CLI")


def test_a_cancellation_reaches_a_provider_all_of_whose_places_are_taken(
    stack: Stack, boxes: Boxes, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(plugin_provider, "_AT_ONCE", 2)
    stopping = threading.Thread(
        target=lambda: [boxes.waiting.acquire(), boxes.waiting.acquire(), os.kill(os.getpid(), signal.SIGINT)]
    )
    stopping.start()
    waits: Properties = {"waits": True}
    assert up(stack, boxes, waits, waits, waits).result.summary.outcome == "cancelled"
    assert boxes.cancelled.is_set()
    stopping.join()


def test_the_second_signal_leaves_a_call_that_stays_to_itself_and_records_it_as_pending(
    stack: Stack, boxes: Boxes
):
    outcome = up(stack, boxes, {"stays": True})
    assert not boxes.over.is_set()
    boxes.over.set()
    assert outcome.code == 8
    assert [each.type for each in stack.snapshot.pending] == ["creating"]


AT_ONCE: Final = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pulumi_sandbox.providers import STAND_INS
with ThreadPoolExecutor() as pool:
    list(pool.map(lambda serve: serve(Path()), STAND_INS.values()))
before = {*sys.modules}
import kubernetes.config, requests.adapters
print({*sys.modules} - before)
"""


def test_what_stand_ins_import_in_circles_is_there_before_their_first_call():
    told = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"
