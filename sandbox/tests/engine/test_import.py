"""Objects that exist already become resources, by the rules of the genuine engine."""

from __future__ import annotations

import pytest
from pulumi_sandbox.protocol.values import Properties

from sandbox.tests.support.engine_stack import Outcome, Stack, urn_of
from sandbox.tests.support.recording_provider import RecordingProvider, Thing

BLUE: Properties = {"colour": "blue", "name": "ours", "fixed": "1"}
RED: Properties = {**BLUE, "colour": "red"}


@pytest.fixture(autouse=True)
def existing(provider: RecordingProvider) -> None:
    """Let there be two things that nobody manages."""
    for id_ in ("one", "two"):
        provider.things[id_] = Thing(urn_of("else"), BLUE, {**BLUE, "made": id_})


def importing(stack: Stack, inputs: Properties, import_id: str = "one", *, preview: bool = False) -> Outcome:
    operate = stack.preview if preview else stack.up
    return operate(lambda script: script.register("it", inputs, importId=import_id))


def test_what_is_as_the_program_says_is_taken_as_it_is(stack: Stack, provider: RecordingProvider):
    assert importing(stack, BLUE, preview=True).ops("it") == ["import"]
    assert importing(stack, BLUE).ops("it") == ["import"]
    record = stack.resource("it")
    assert (record.id, record.import_id, record.inputs, record.outputs["made"]) == ("one", "one", BLUE, "one")
    assert record.created
    assert not provider.of("Create") + provider.of("Update")
    assert importing(stack, BLUE).ops("it") == ["same"]
    assert stack.up(lambda script: script.register("it", BLUE)).ops("it") == ["same"]


def test_the_provider_is_asked_by_the_id_alone(stack: Stack, provider: RecordingProvider):
    importing(stack, BLUE)
    (read,) = provider.of("Read")
    assert (read.message.id, read.properties("inputs"), read.properties("properties")) == ("one", {}, {})


def test_what_differs_is_updated(stack: Stack, provider: RecordingProvider):
    assert importing(stack, RED).ops("it") == ["import", "update"]
    assert provider.things["one"].inputs == RED
    assert stack.resource("it").import_id == "one"


def test_what_is_to_be_ignored_stays_as_it_is(stack: Stack, provider: RecordingProvider):
    up = stack.up(lambda script: script.register("it", RED, importId="one", ignoreChanges=["colour"]))
    assert up.ops("it") == ["import"]
    assert stack.resource("it").inputs == BLUE
    assert not provider.of("Update")


def test_what_would_have_to_be_replaced_is_refused(stack: Stack, provider: RecordingProvider):
    other = {**BLUE, "fixed": "2"}
    preview = importing(stack, other, preview=True)
    assert (preview.code, len(preview.said("warning"))) == (0, 1)
    assert importing(stack, other).failed_with("previously-imported resources that still specify an ID")
    assert {*provider.things} == {"one", "two"}
    assert stack.resource("it").id == "one"


def test_another_id_takes_the_place_of_the_one_before(stack: Stack, provider: RecordingProvider):
    importing(stack, BLUE)
    assert importing(stack, BLUE, "two").ops("it") == ["import-replacement", "replace", "delete-replaced"]
    assert [each.id for each in stack.records("it")] == ["two"]
    assert {*provider.things} == {"two"}


def test_what_was_only_read_is_managed_from_now_on(stack: Stack, provider: RecordingProvider):
    stack.up(lambda script: script.read("it", "one"))
    assert importing(stack, BLUE).ops("it") == ["import"]
    assert not stack.resource("it").external
    stack.destroy()
    assert {*provider.things} == {"two"}


@pytest.mark.parametrize("preview", [True, False])
def test_what_is_not_there_cannot_be_imported(stack: Stack, provider: RecordingProvider, preview: bool):
    assert importing(stack, BLUE, "none", preview=preview).failed_with("resource 'none' does not exist")
    assert not provider.of("Create")


def test_a_provider_is_not_imported(stack: Stack):
    up = stack.up(lambda script: script.register("it", {}, type_="pulumi:providers:fake", importId="x"))
    assert up.failed_with("provider resources may not be imported")
