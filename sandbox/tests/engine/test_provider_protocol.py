"""What a provider is asked, in which order, and what it is told and spared."""

from __future__ import annotations

import threading

import grpc
import pytest
from pulumi_sandbox.protocol.stubs import resource_pb2
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, ResourceReference, Secret, Value

from sandbox.tests.support.engine_stack import Stack
from sandbox.tests.support.recording_provider import RecordingProvider
from sandbox.tests.support.scripted_program import Registered, Script, nothing


def explicit(script: Script, inputs: Properties | None = None) -> Registered:
    """Register an explicit provider of the package `fake`."""
    return script.register("mine", inputs or {}, type_="pulumi:providers:fake")


def test_a_provider_is_greeted_checked_and_configured_in_this_order(
    stack: Stack, provider: RecordingProvider
):
    stack.up(lambda program: program.register("a"))
    assert [call.method for call in provider.calls][:4] == ["Handshake", "CheckConfig", "Configure", "Check"]
    stack.up(lambda program: program.register("a"))
    methods = [call.method for call in provider.calls[provider.calls.index(provider.of("Handshake")[1]) :]]
    assert methods[:4] == ["Handshake", "CheckConfig", "DiffConfig", "Configure"]


def test_a_provider_from_before_the_handshake_is_asked_when_configured(
    stack: Stack, provider: RecordingProvider
):
    provider.shakes_hands = False
    provider.accepts_secrets = True
    stack.up(lambda program: program.register("a", {"word": Secret("hush")}))
    (create,) = provider.of("Create", "a")
    assert create.properties("properties")["word"] == Secret("hush")


@pytest.mark.parametrize("accepts", [True, False])
def test_secrets_reach_only_a_provider_that_accepts_them(
    stack: Stack, provider: RecordingProvider, accepts: bool
):
    provider.accepts_secrets = accepts
    word = Secret("hush") if accepts else "hush"
    stack.up(
        lambda program: program.register("a", {"word": Secret("hush"), "deep": {"word": Secret("hush")}})
    )
    (create,) = provider.of("Create", "a")
    sent = create.properties("properties")
    assert (sent["word"], sent["deep"]) == (word, {"word": word})
    record = stack.resource("a")
    assert record.inputs["deep"] == record.outputs["deep"] == {"word": Secret("hush")}


def test_resource_references_are_kept_for_a_provider_that_accepts_them(
    stack: Stack, provider: RecordingProvider
):
    reference = ResourceReference("urn:pulumi:dev::test::fake:index:Thing::x", "id-x")
    stack.up(lambda program: program.register("a", {"to": reference}))
    assert provider.of("Create", "a")[0].properties("properties")["to"] == reference


def test_unknowns_are_kept_in_previews_and_never_sent_to_delete_or_read(
    stack: Stack, provider: RecordingProvider
):
    stack.preview(lambda program: program.register("a", {"later": UNKNOWN}))
    assert provider.of("Check", "a")[0].properties("news")["later"] == UNKNOWN
    (create,) = provider.of("Create", "a")
    assert create.message.preview
    assert create.properties("properties")["later"] == UNKNOWN


def test_a_provider_without_preview_is_not_called_and_its_outputs_are_the_inputs(
    stack: Stack, provider: RecordingProvider
):
    provider.shakes_hands = False
    provider.supports_preview = False
    seen: list[Properties] = []
    stack.preview(lambda program: seen.append(program.register("a", {"colour": "blue", "name": "n"}).outputs))
    assert not provider.of("Create")
    assert seen == [{"colour": "blue", "name": "n"}]


def test_what_a_check_adds_is_known_in_a_preview_of_a_provider_without_one(
    stack: Stack, provider: RecordingProvider
):
    provider.shakes_hands = False
    provider.supports_preview = False
    seen: list[Properties] = []
    stack.preview(lambda program: seen.append(program.register("a").outputs))
    assert seen == [{"name": "auto-1"}]


def test_an_unchanged_resource_takes_over_what_its_check_says_and_keeps_the_outputs_it_has(
    stack: Stack, provider: RecordingProvider
):
    stack.up(lambda program: program.register("a", {"quietly": "before"}))
    made = stack.resource("a")
    seen: list[Properties] = []
    stack.up(lambda program: seen.append(program.register("a", {"quietly": "after"}).outputs))
    assert provider.of("Update") == []
    assert stack.resource("a").inputs["quietly"] == "after"
    assert seen == [stack.resource("a").outputs] == [made.outputs]


def test_the_provider_without_a_version_is_named_default_and_gets_its_namespace(
    stack: Stack, provider: RecordingProvider
):
    stack.configure("  fake:region: here\n  fake:list: [1, 2]\n  test:other: x\n")
    stack.up(lambda program: program.register("a"))
    record = stack.resource("default")
    assert record.type == "pulumi:providers:fake"
    assert record.inputs == record.outputs == {"region": "here", "list": "[1,2]"}
    assert stack.resource("a").provider == f"{record.urn}::{record.id}"
    (configure,) = provider.of("Configure")
    assert dict(configure.message.variables) == {"fake:config:region": "here", "fake:config:list": "[1,2]"}
    assert configure.properties("args") == record.outputs
    assert configure.message.id == record.id


def test_the_provider_of_a_version_is_named_after_it_and_keeps_engine_keys_to_itself(
    stack: Stack, provider: RecordingProvider
):
    stack.up(lambda program: program.register("a", version="4.34.2"))
    record = stack.resource("default_4_34_2")
    assert record.inputs == {"version": "4.34.2", "__internal": {}}
    assert record.outputs == {"version": "4.34.2"}
    (check,), (configure,) = provider.of("CheckConfig"), provider.of("Configure")
    assert check.properties("news") == {"version": "4.34.2"}
    assert dict(configure.message.variables) == {}
    assert configure.properties("args") == {"version": "4.34.2"}


def test_an_explicit_provider_has_its_version_among_its_inputs(stack: Stack):
    def program(script: Script) -> None:
        script.register("mine", {"x": 1}, type_="pulumi:providers:fake", version="4.34.2")

    stack.up(program)
    assert stack.resource("mine").inputs == {"x": 1, "version": "4.34.2", "__internal": {}}
    assert stack.resource("mine").outputs == {"x": 1, "version": "4.34.2"}


def test_check_config_never_gets_secrets_and_configure_always_does(stack: Stack, provider: RecordingProvider):
    stack.up(lambda program: explicit(program, {"token": Secret("hush")}))
    assert provider.of("CheckConfig")[0].properties("news") == {"token": "hush"}
    (configure,) = provider.of("Configure")
    assert configure.properties("args") == {"token": Secret("hush")}
    assert dict(configure.message.variables) == {"fake:config:token": "hush"}
    assert stack.resource("mine").inputs == {"token": Secret("hush")}


def test_a_changed_configuration_updates_the_provider_and_leaves_its_resources_alone(
    stack: Stack,
):
    def program(script: Script) -> None:
        mine = explicit(script, {"region": region})
        script.register("a", {"name": "n"}, provider=mine.reference)

    region = "here"
    stack.up(program)
    id_ = stack.resource("mine").id
    region = "there"
    up = stack.up(program)
    assert up.ops("mine") == ["update"]
    assert up.ops("a") == ["same"]
    assert stack.resource("mine").id == id_


def test_moving_to_another_provider_replaces_only_if_that_one_says_so(stack: Stack):
    def program(script: Script) -> None:
        first = script.register("first", {"fixed": "x"}, type_="pulumi:providers:fake")
        second = script.register("second", {"fixed": fixed}, type_="pulumi:providers:fake")
        script.register("a", {"name": "n"}, provider=(second if moved else first).reference)

    moved, fixed = False, "x"
    stack.up(program)
    moved = True
    assert stack.up(program).ops("a") == ["same"]
    assert "::second::" in stack.resource("a").provider
    moved = False
    stack.up(program)
    moved, fixed = True, "y"
    assert stack.preview(program).ops("a")[0] == "create-replacement"


def test_a_provider_whose_configuration_is_unknown_is_left_alone_in_previews(
    stack: Stack, provider: RecordingProvider
):
    def program(script: Script) -> None:
        mine = explicit(script, {"region": region})
        a = script.register("a", {"name": "n"}, provider=mine.reference)
        outputs.append(a.outputs)

    outputs: list[Properties] = []
    region: Value = "here"
    stack.up(program)
    provider.calls.clear()
    region = UNKNOWN
    preview = stack.preview(program)
    assert preview.code == 0, preview.messages
    assert not provider.of("Configure")
    assert provider.methods("a") == []
    assert preview.ops("a") == ["update"]
    assert any("not known during preview" in message for message in preview.messages)
    assert outputs[1] == {}


def test_an_explicit_provider_is_usable_in_a_preview_though_it_has_no_id_yet(stack: Stack):
    def program(script: Script) -> None:
        mine = explicit(script)
        ids.append(mine.id)
        script.register("a", {}, provider=mine.reference)

    ids: list[str] = []
    assert stack.preview(program).code == 0
    assert ids == [""]


def test_a_component_hands_its_providers_down_to_its_children(stack: Stack):
    def program(script: Script) -> None:
        mine = explicit(script)
        outer = script.component("outer", providers={"fake": mine.reference})
        inner = script.component("inner", parent=outer.urn)
        script.register("a", {}, parent=inner.urn)
        script.register("b")

    stack.up(program)
    assert "::mine::" in stack.resource("a").provider
    assert "::default::" in stack.resource("b").provider
    assert stack.resource("outer").provider == ""


def test_delete_gets_old_outputs_as_properties_and_old_inputs(stack: Stack, provider: RecordingProvider):
    stack.up(lambda program: program.register("a", {"colour": "blue"}))
    record = stack.resource("a")
    stack.up(nothing)
    (delete,) = provider.of("Delete", "a")
    assert delete.properties("properties") == record.outputs
    assert delete.properties("old_inputs") == record.inputs
    assert delete.message.id == record.id


def test_custom_timeouts_reach_the_provider_in_seconds(stack: Stack, provider: RecordingProvider):
    timeouts = resource_pb2.RegisterResourceRequest.CustomTimeouts(create="5m", delete="1h30m")
    stack.up(lambda program: program.register("a", {}, customTimeouts=timeouts))
    assert provider.of("Create", "a")[0].message.timeout == 300
    stack.up(nothing)
    assert provider.of("Delete", "a")[0].message.timeout == 5400


def test_functions_are_called_at_their_provider(stack: Stack, provider: RecordingProvider):
    answers: list[Properties] = []
    stack.up(lambda program: answers.append(program.invoke("fake:index:echo", {"x": 1})))
    assert answers == [{"x": 1}]
    assert stack.names == ["test-dev", "default"]


def test_results_of_a_function_called_with_secrets_are_secret(stack: Stack, provider: RecordingProvider):
    provider.accepts_secrets = False
    answers: list[Properties] = []
    stack.up(lambda program: answers.append(program.invoke("fake:index:echo", {"x": Secret("hush")})))
    assert answers == [{"x": Secret("hush")}]


def test_a_function_that_fails_is_the_programs_to_catch(stack: Stack):
    caught: list[grpc.RpcError] = []

    def program(script: Script) -> None:
        try:
            script.invoke("pulumi:pulumi:getResource", {"urn": "urn:pulumi:dev::test::a:b:C::nowhere"})
        except grpc.RpcError as error:
            caught.append(error)
        script.register("fallback")

    up = stack.up(program)
    assert (up.code, up.errors) == (0, [])
    assert "fallback" in stack.names
    assert [each.code() for each in caught] == [grpc.StatusCode.UNKNOWN]
    assert str(caught[0].details()).startswith("invocation of pulumi:pulumi:getResource returned an error: ")


def test_get_resource_is_served_by_the_engine(stack: Stack):
    answers: list[Properties] = []

    def program(script: Script) -> None:
        a = script.register("a", {"name": "n"})
        answers.append(script.invoke("pulumi:pulumi:getResource", {"urn": a.urn}))

    stack.up(program)
    record = stack.resource("a")
    assert answers == [{"urn": record.urn, "id": record.id, "state": record.outputs}]


def test_a_component_is_answered_without_outputs(stack: Stack):
    seen: list[Properties] = []

    def program(script: Script) -> None:
        component = script.component("c", {"x": 1})
        seen.append(component.outputs)
        script.outputs(component.urn, {"y": 2})

    stack.up(program)
    stack.up(program)
    assert seen == [{}, {}]
    assert stack.resource("c").outputs == {"y": 2}


def test_steps_run_side_by_side_up_to_the_limit(stack: Stack, provider: RecordingProvider):
    together = threading.Barrier(3)

    def meet() -> None:
        together.wait(5)

    for name in "abc":
        provider.on["Create", name] = meet
    up = stack.up(
        lambda program: program.together(*(lambda name=name: program.register(name) for name in "abc")),
        parallel=3,
    )
    assert up.code == 0, up.messages


def test_one_step_at_a_time_if_so_wanted(stack: Stack, provider: RecordingProvider):
    inside = threading.Semaphore(1)
    overlaps: list[str] = []

    def alone() -> None:
        if not inside.acquire(blocking=False):
            overlaps.append("overlap")
        else:
            inside.release()

    for name in "abc":
        provider.on["Create", name] = alone
    stack.up(
        lambda program: program.together(*(lambda name=name: program.register(name) for name in "abc")),
        parallel=1,
    )
    assert overlaps == []
