"""Components that a provider constructs: what it is told, what it registers, and what becomes of it.

What the genuine engine tells one was recorded of Pulumi's CLI (sandbox/docs/engine-facts.md).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format, struct_pb2
from pulumi_sandbox.protocol import signatures, wire
from pulumi_sandbox.protocol.stubs import (
    alias_pb2,
    resource_pb2,
)
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Secret

from sandbox.tests.support.engine_stack import Stack, urn_of
from sandbox.tests.support.furnished import furnish
from sandbox.tests.support.recording_provider import RecordingProvider
from sandbox.tests.support.scripted_program import Script

ROOM, CHAIR = "fake:index:Room", "fake:index:Chair"
ROOMS = Path(__file__).with_name("programs") / "rooms"
_Timeouts = resource_pb2.RegisterResourceRequest.CustomTimeouts


@pytest.fixture(autouse=True)
def furnished(provider: RecordingProvider) -> None:
    provider.build = furnish


def room(script: Script, inputs: Any = None, **options: Any) -> resource_pb2.RegisterResourceResponse:
    request = script.request("room", inputs or {"size": 3}, type_=ROOM, custom=False, remote=True, **options)
    return script.monitor.RegisterResource(request)


def test_a_component_is_what_its_provider_registers_and_answers(
    stack: Stack, provider: RecordingProvider
) -> None:
    answers: list[resource_pb2.RegisterResourceResponse] = []

    def program(script: Script) -> None:
        answers.append(room(script, {"size": 3, "colour": Secret("red")}))

    assert stack.up(program).code == 0
    (answer,) = answers
    assert answer.urn == urn_of("room", ROOM)
    chair = stack.resource("room-chair")
    assert wire.decode(answer.object) == {"chair": chair.outputs["made"], "size": 3}
    assert [*answer.propertyDependencies["chair"].urns] == [chair.urn]
    assert chair.parent == answer.urn
    assert chair.inputs["colour"] == Secret("red")
    assert stack.resource("room").outputs == wire.decode(answer.object)

    again = stack.up(program)
    assert {op for op, _ in again.steps} == {"same"}
    assert stack.destroy().code == 0
    assert not stack.names
    assert not provider.things


def test_a_provider_is_told_what_the_genuine_engine_tells_one(
    stack: Stack, provider: RecordingProvider
) -> None:
    """`genuine` is a request of Pulumi's CLI, for the same registration."""
    provider.accepts_outputs = True
    output = {signatures.KEY: "d0e6a833031e9bbcd3f4e8bde6ca49a4"}
    sent: dict[str, Any] = {
        "size": 3.0,
        "secret": {**output, "secret": True, "value": "hush"},
        "of": {**output, "value": urn_of("first", "x:index:Above")},
    }

    def program(script: Script) -> None:
        first = script.register("first", type_="x:index:Above", custom=False)
        above = script.register("above", type_="x:index:Above", custom=False, protect=False)
        request = script.request(
            "room",
            dict.fromkeys(sent),
            type_=ROOM,
            custom=False,
            remote=True,
            parent=above.urn,
            aliases=[alias_pb2.Alias(spec=alias_pb2.Alias.Spec(name="old-room"))],
            retainOnDelete=True,
            ignoreChanges=["x"],
            additionalSecretOutputs=["secret"],
            customTimeouts=_Timeouts(create="5m"),
            deletedWith=first.urn,
        )
        request.object.CopyFrom(json_format.ParseDict(sent, struct_pb2.Struct()))
        script.monitor.RegisterResource(request)

    stack.up(program)
    (told,) = (
        json_format.MessageToDict(each.message) for each in provider.calls if each.method == "Construct"
    )
    assert told.pop("monitorEndpoint")
    genuine = {
        "acceptsOutputValues": True,
        "additionalSecretOutputs": ["secret"],
        "aliases": [{"spec": {"name": "old-room"}}],
        "customTimeouts": {"create": "5m"},
        "deletedWith": urn_of("first", "x:index:Above"),
        "ignoreChanges": ["x"],
        "inputDependencies": {"of": {}, "secret": {}, "size": {}},
        "inputs": sent,
        "name": "room",
        "organization": "organization",
        "parent": urn_of("above", "x:index:Above"),
        "project": "test",
        "protect": False,
        "retainOnDelete": True,
        "stack": "dev",
        "type": ROOM,
    }
    assert {key: told[key] for key in told if key != "parallel"} == genuine


def test_a_component_is_given_the_providers_and_the_protection_of_its_parent(
    stack: Stack, provider: RecordingProvider
) -> None:
    def program(script: Script) -> None:
        given = script.register("given", type_="pulumi:providers:fake")
        above = script.component("above", protect=True, providers={"fake": given.reference})
        room(script, parent=above.urn)

    stack.up(program)
    assert stack.resource("room-chair").provider_urn == stack.resource("given").urn
    assert [stack.resource(each).protect for each in ("room", "room-chair")] == [True, True]
    assert not any(each.name == "default" for each in provider.calls)


def test_a_component_that_was_declared_by_a_program_goes_on_as_one_that_is_constructed(stack: Stack) -> None:
    def local(script: Script) -> None:
        room = script.register("room", {"size": 3}, type_=ROOM, custom=False)
        script.register("room-chair", {"size": 3}, parent=room.urn)

    stack.up(local)
    changed = stack.up(room)
    assert {op for op, _ in changed.steps} == {"same"}


def test_what_is_unknown_in_a_preview_is_unknown_to_the_component(
    stack: Stack, provider: RecordingProvider
) -> None:
    preview = stack.preview(lambda script: room(script, {"size": UNKNOWN}))
    assert preview.code == 0
    (told,) = (each for each in provider.calls if each.method == "Construct")
    assert told.message.dryRun
    assert told.properties("inputs") == {"size": UNKNOWN}


def test_without_a_provider_that_constructs_the_component_is_refused(
    stack: Stack, provider: RecordingProvider
) -> None:
    provider.build = None
    up = stack.up(room)
    assert up.failed_with("it constructs nothing")
    assert "room" not in stack.names


def packaged(stack: Stack, runtime: str = "") -> None:
    """Give the project a package from its source."""
    folder = stack.directory / "rooms"
    shutil.copytree(ROOMS, folder)
    runtime = runtime or f"{{name: python, options: {{toolchain: pip, virtualenv: {sys.prefix}}}}}"
    (folder / "PulumiPlugin.yaml").write_text(f"runtime: {runtime}\n")
    with (stack.directory / "Pulumi.yaml").open("a") as project:
        project.write("packages:\n  rooms: ./rooms\n")


def built(script: Script, name: str, size: int) -> resource_pb2.RegisterResourceResponse:
    inputs: Properties = {"size": size, "colour": Secret("red")}
    request = script.request(name, inputs, type_="rooms:index:Room", custom=False, remote=True)
    return script.monitor.RegisterResource(request)


def test_a_package_is_served_from_its_source_by_the_genuine_sdk(stack: Stack) -> None:
    packaged(stack)
    answers: list[resource_pb2.RegisterResourceResponse] = []
    up = stack.up(lambda script: answers.append(built(script, "room", 3)))
    assert up.code == 0, up.errors
    assert wire.decode(answers[0].object) == {"colour": Secret("red"), "size": 3}
    assert set(stack.names) == {"test-dev", "default", "room", "room-chair"}
    assert stack.resource("room-chair").inputs == {"colour": Secret("red")}

    for size, said in ((0, "property size: it is no room"), (1000, "the room fell down")):
        failed = stack.up(lambda script, size=size: built(script, "other", size))
        assert failed.errors == [said]


@pytest.mark.parametrize(
    ("runtime", "named"),
    [
        ("nodejs", "runtime 'nodejs'"),
        ("{name: python, options: {toolchain: uv}}", "toolchain 'uv'"),
        ("{name: python, options: {typechecker: mypy}}", "runtime option `typechecker`"),
        ("{name: python, options: [virtualenv]}", "PulumiPlugin.yaml:1:25: runtime.options is not a map"),
        ("{name: python, options: {virtualenv: [a]}}", "runtime.options.virtualenv is not a text"),
        ("{name: python, options: {virtualenv: 7}}", "runtime.options.virtualenv is not a text"),
        ("[python]", "runtime is not a text"),
        ("{name: [python]}", "runtime.name is not a text"),
    ],
)
def test_a_package_that_only_the_genuine_cli_starts_is_refused_by_name(
    stack: Stack, runtime: str, named: str
) -> None:
    packaged(stack, runtime)
    assert stack.up(lambda script: built(script, "room", 3)).failed_with(named)
