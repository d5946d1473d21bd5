"""A deployment that goes on after a failed step: what waits, what goes on, what is kept.

What stops a deployment all the same, refused inputs and doubled names, is in the tests of failures.
"""

from pathlib import Path

import pytest
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.state.checkpoint import verify

from sandbox.tests.engine.test_failures import raising
from sandbox.tests.engine.test_program import PROGRAMS, configuration
from sandbox.tests.support.engine_stack import Stack
from sandbox.tests.support.recording_provider import RecordingProvider
from sandbox.tests.support.scripted_program import Script, nothing

BROKEN = raising(ValueError("broken"))


def chain(script: Script) -> None:
    """Register `first`, what needs it directly and below, and `apart`, which needs nothing."""
    first = script.register("first")
    second = script.register("second", {}, depends_on={"": [first.urn]})
    room = script.component("room", parent=second.urn)
    script.register("below", parent=room.urn)
    script.outputs(room.urn, {})
    script.register("apart")


def test_what_hangs_on_a_failed_step_waits_and_the_rest_is_done(stack: Stack, provider: RecordingProvider):
    provider.on["Create", "first"] = BROKEN
    up = stack.up(chain, continue_on_error=True)
    assert (up.code, up.errors) == (1, ["broken"])
    assert provider.names() == ["apart"]
    assert [each.message.name for each in provider.of("Create")] == ["first", "apart"]


def test_a_later_run_takes_up_what_waited(stack: Stack, provider: RecordingProvider):
    provider.on["Create", "first"] = BROKEN
    stack.up(chain, continue_on_error=True)
    provider.on.clear()
    up = stack.up(chain)
    assert up.code == 0
    assert provider.names() == ["apart", "below", "first", "second"]
    assert up.ops("apart") == ["same"]


def test_a_failed_update_keeps_its_record_and_what_that_needs_while_the_rest_goes(
    stack: Stack, provider: RecordingProvider
):
    def before(script: Script) -> None:
        needed = script.register("needed")
        script.register("stays", {"colour": "blue"}, depends_on={"": [needed.urn]})
        script.register("gone")

    stack.up(before)
    provider.on["Update", "stays"] = BROKEN
    up = stack.up(lambda script: script.register("stays", {"colour": "red"}), continue_on_error=True)
    assert up.code == 1
    assert provider.names() == ["needed", "stays"]
    assert stack.resource("stays").inputs["colour"] == "blue"
    verify(stack.snapshot)


def test_what_waits_keeps_its_record_too(stack: Stack, provider: RecordingProvider):
    stack.up(chain)
    provider.on["Update", "first"] = BROKEN

    def changed(script: Script) -> None:
        first = script.register("first", {"colour": "red"})
        script.register("second", {"colour": "red"}, depends_on={"": [first.urn]})

    assert stack.up(changed, continue_on_error=True).code == 1
    assert "colour" not in stack.resource("second").inputs
    verify(stack.snapshot)


def test_a_failed_deletion_spares_what_it_needs_and_no_other(stack: Stack, provider: RecordingProvider):
    stack.up(chain)
    provider.on["Delete", "second"] = BROKEN
    down = stack.up(nothing, continue_on_error=True)
    assert down.code == 1
    assert provider.names() == ["first", "second"]


def test_without_the_option_nothing_begins_after_a_failure(stack: Stack, provider: RecordingProvider):
    provider.on["Create", "first"] = BROKEN
    assert stack.up(chain).code == 1
    assert provider.names() == []


@pytest.fixture
def facts(tmp_path: Path, crypter: PassphraseCrypter) -> Stack:
    return Stack.genuine(tmp_path / "project", crypter, RecordingProvider(), PROGRAMS / "facts")


def test_a_real_program_goes_on_and_exports_what_it_knows(facts: Stack):
    configuration(facts, size=1, trouble="create")
    up = facts.up(continue_on_error=True)
    exported = facts.snapshot.resources[0].outputs
    assert (up.code, up.failed_with("out of stock")) == (1, True)
    assert (exported["made"], "kind" in exported) == ("in here", False)
    configuration(facts, size=1)
    assert facts.up().code == 0
    assert "kind" in facts.snapshot.resources[0].outputs
