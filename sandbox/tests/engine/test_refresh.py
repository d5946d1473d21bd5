"""Refresh and destroy, which run without the program (sandbox/docs/engine-facts.md, steps)."""

from dataclasses import replace

import pytest
from pulumi_sandbox.engine.model.events import StackStarted
from pulumi_sandbox.engine.model.resource import PendingOperation
from pulumi_sandbox.protocol.values import Secret

from sandbox.tests.support.engine_stack import Stack
from sandbox.tests.support.recording_provider import PartialFailureError, RecordingProvider
from sandbox.tests.support.scripted_program import Script, playing


def family(script: Script) -> None:
    """Register a parent, and resources that refer to `a` in all ways."""
    a = script.register("a", {"colour": "blue", "word": Secret("hush")})
    b = script.register("b", {"on": a.id}, depends_on={"on": [a.urn]})
    script.register("c", {}, depends_on={"": [a.urn, b.urn]}, deletedWith=a.urn)
    script.register("child", {}, parent=a.urn)


def test_refresh_of_an_unchanged_stack_changes_nothing(stack: Stack, provider: RecordingProvider):
    stack.up(family)
    before = stack.state_text
    refresh = stack.refresh()
    assert refresh.result.summary.changes == {"same": 5}
    assert {op for op, _ in refresh.steps} == {"same"}
    assert stack.state_text == before
    assert stack.refresh(expect_no_changes=True).code == 0


def test_refresh_reads_with_old_inputs_and_outputs(stack: Stack, provider: RecordingProvider):
    stack.up(lambda program: program.register("a", {"colour": "blue"}))
    stack.refresh()
    (read,) = provider.of("Read", "a")
    assert read.properties("inputs") == stack.resource("a").inputs
    assert read.properties("properties") == stack.resource("a").outputs


def test_refresh_learns_what_changed_outside_and_shows_it_the_right_way_round(
    stack: Stack, provider: RecordingProvider
):
    stack.up(family)
    before = stack.resource("a")
    provider.thing("a").inputs = {**before.inputs, "colour": "red", "extra": 1}
    provider.thing("a").outputs = {**before.outputs, "colour": "red", "extra": 1}
    refresh = stack.refresh()
    assert refresh.result.summary.changes == {"same": 4, "update": 1}
    assert refresh.ops("a") == ["update"]
    after = stack.resource("a")
    assert after.inputs["colour"] == after.outputs["colour"] == "red"
    assert after.modified != before.modified
    assert after.created == before.created
    assert stack.refresh(expect_no_changes=True).code == 0
    assert stack.up(family).ops("a") == ["update"]


def test_a_secret_output_stays_secret_through_a_refresh(stack: Stack, provider: RecordingProvider):
    provider.accepts_secrets = False
    stack.up(family)
    provider.thing("a").outputs = {**provider.thing("a").outputs, "word": "changed-outside"}
    stack.refresh()
    assert stack.resource("a").outputs["word"] == Secret("changed-outside")
    assert "changed-outside" not in stack.state_text


def test_what_vanished_is_dropped_with_every_reference_to_it(stack: Stack, provider: RecordingProvider):
    stack.up(family)
    del provider.things[stack.resource("a").id]
    refresh = stack.refresh()
    assert refresh.result.summary.changes == {"same": 4, "delete": 1}
    assert refresh.ops("a") == ["delete"]
    assert stack.records("a") == []
    assert stack.resource("b").dependencies == ()
    assert stack.resource("b").property_dependencies == {"on": ()}
    assert stack.resource("c").deleted_with == ""
    assert stack.resource("child").parent == ""
    assert stack.up(family).ops("a") == ["create"]


def test_an_unhealthy_resource_is_a_warning_that_the_next_update_mends(
    stack: Stack, provider: RecordingProvider
):
    def sick() -> None:
        raise PartialFailureError("it is not ready")

    stack.up(lambda program: program.register("a"))
    provider.on["Read", "a"] = sick
    refresh = stack.refresh()
    assert refresh.code == 0
    assert any("it is not ready" in message for message in refresh.messages)
    assert stack.resource("a").init_errors == ("it is not ready",)
    assert stack.up(lambda program: program.register("a")).ops("a") == ["update"]
    assert stack.resource("a").init_errors == ()


@pytest.mark.parametrize("method", ["Create", "Read"])
def test_a_reason_for_ill_health_keeps_no_secret_in_state_or_events(
    stack: Stack, provider: RecordingProvider, method: str
):
    def sick() -> None:
        raise PartialFailureError("hush-hush is refused")

    provider.on[method, "a"] = sick
    told = [stack.up(lambda program: program.register("a", {"word": Secret("hush-hush")})).text]
    if method == "Read":
        told.append(stack.refresh().text)
    assert stack.resource("a").init_errors == ("[secret] is refused",)
    assert "hush-hush" not in "".join((*told, stack.state_text))


@pytest.mark.parametrize(("options", "left"), [({}, ["creating"]), ({"clear_pending_creates": True}, [])])
def test_refresh_clears_pending_operations_but_for_creates_unless_it_is_to(
    stack: Stack, options: dict[str, bool], left: list[str]
):
    stack.up(lambda program: program.register("a"))
    record = stack.resource("a")
    other = replace(record, urn=record.urn + "-other", id="")
    pending = (PendingOperation(record, "updating"), PendingOperation(other, "creating"))
    stack.store.save(replace(stack.snapshot, pending=pending))
    stack.refresh(**options)
    assert [each.type for each in stack.snapshot.pending] == left


def test_refresh_leaves_components_providers_and_pending_replacements_alone(
    stack: Stack, provider: RecordingProvider
):
    def program(script: Script) -> None:
        script.component("c")
        script.register("a")

    stack.up(program)
    stack.change("a", pending_replacement=True)
    provider.things.clear()
    stack.refresh()
    assert not provider.of("Read")
    assert stack.names == ["test-dev", "c", "default", "a"]


def test_without_the_program_providers_are_configured_as_the_state_has_them(
    stack: Stack, provider: RecordingProvider
):
    stack.configure("  fake:region: here\n")
    stack.up(lambda program: program.register("a"))
    stack.configure("  fake:region: there\n")
    stack.refresh()
    assert provider.of("Configure")[-1].properties("args") == {"region": "here"}


def test_destroy_deletes_everything_in_order(stack: Stack, provider: RecordingProvider):
    stack.up(family)
    destroy = stack.destroy()
    assert destroy.code == 0
    assert provider.names() == ["c"]  # declared to vanish with `a`, so it was not deleted by itself
    assert stack.names == []
    order = [name for op, name in destroy.steps if op == "delete"]
    assert order.index("b") < order.index("a") < order.index("default")
    assert order[-2:] in (["default", "test-dev"], ["test-dev", "default"])
    assert destroy.result.summary.changes == {"delete": 5}


def test_destroy_reports_all_protected_resources_and_spares_their_needs(
    stack: Stack, provider: RecordingProvider
):
    def program(script: Script) -> None:
        needed = script.register("needed")
        script.register("one", {}, depends_on={"": [needed.urn]}, protect=True)
        script.register("two", {}, protect=True)
        script.register("free")

    stack.up(program)
    destroy = stack.destroy()
    assert destroy.code == 1
    assert len(destroy.errors) == 2
    assert provider.names() == ["needed", "one", "two"]
    assert stack.names == ["test-dev", "default", "needed", "one", "two"]


def test_refresh_and_destroy_begin_once(stack: Stack, provider: RecordingProvider):
    stack.up(family)
    for outcome in (stack.refresh(), stack.destroy()):
        assert [type(event) for event in outcome.events].count(StackStarted) == 1


def test_what_a_refresh_would_find_can_be_shown_without_a_write(stack: Stack, provider: RecordingProvider):
    stack.up(family)
    provider.things = {id_: each for id_, each in provider.things.items() if not each.urn.endswith("b")}
    before = stack.state_text
    shown = stack.refresh(preview_only=True)
    assert (shown.code, shown.ops("b"), shown.ops("a")) == (0, ["delete"], ["same"])
    assert stack.state_text == before
    assert stack.refresh(preview_only=True, expect_no_changes=True).code == 7


def test_what_a_destroy_would_take_can_be_shown_without_a_write(stack: Stack, provider: RecordingProvider):
    stack.up(family)
    before = stack.state_text
    shown = stack.destroy(preview_only=True)
    assert (shown.code, shown.ops("a")) == (0, ["delete"])
    assert stack.state_text == before
    assert not provider.of("Delete")


def test_an_update_can_read_first_what_is_there(stack: Stack, provider: RecordingProvider):
    stack.up(family)
    drifted = provider.thing("a")
    drifted.inputs = {**drifted.inputs, "colour": "red"}
    provider.things = {id_: each for id_, each in provider.things.items() if not each.urn.endswith("b")}
    before = stack.state_text
    preview = stack.preview(family, refresh=True)
    assert (preview.ops("a"), preview.ops("b")) == (["update", "update"], ["delete", "create"])
    assert stack.state_text == before
    up = stack.up(family, refresh=True)
    assert (up.ops("a"), up.ops("b")) == (["update", "update"], ["delete", "create"])
    assert up.result.summary.changes == {"same": 3, "update": 1, "create": 1}, "what the update did alone"
    assert provider.names() == ["a", "b", "c", "child"]
    assert stack.up(family).counts == stack.preview(family).counts


def test_a_project_can_ask_for_a_refresh_at_each_run(stack: Stack, provider: RecordingProvider):
    stack.up(family)
    assert not provider.of("Read")
    with (stack.directory / "Pulumi.yaml").open("a") as project:
        project.write("options:\n  refresh: always\n")
    assert stack.up(family).code == 0
    assert len(provider.of("Read")) == 4


def test_a_destroy_can_read_first_what_is_there(stack: Stack, provider: RecordingProvider):
    stack.up(family)
    provider.things = {id_: each for id_, each in provider.things.items() if not each.urn.endswith("b")}
    assert stack.destroy(refresh=True).code == 0
    assert sorted(call.name for call in provider.of("Delete")) == ["a", "child"]


def test_nothing_is_done_after_a_refresh_that_failed(stack: Stack, provider: RecordingProvider):
    stack.up(family)

    def broken() -> None:
        raise ValueError("broken")

    provider.on["Read", "a"] = broken
    up = stack.up(lambda script: script.register("a", {"colour": "green"}), refresh=True)
    assert (up.code, up.errors) == (1, ["broken"])
    assert not provider.of("Update")


def test_a_destroy_can_run_the_program_which_changes_nothing(stack: Stack, provider: RecordingProvider):
    def program(script: Script) -> None:
        served = script.register("served-by", {"zone": "z"}, type_="pulumi:providers:fake")
        room = script.component("room")
        a = script.register("a", {"colour": "blue"}, provider=served.reference, parent=room.urn)
        script.register("b", {}, depends_on={"": [a.urn]})
        script.outputs(room.urn, {"a": a.id})

    stack.up(program)

    def changed(script: Script) -> None:
        served = script.register("served-by", {"zone": "other"}, type_="pulumi:providers:fake")
        room = script.component("room")
        script.register("a", {"colour": "red"}, provider=served.reference, parent=room.urn)
        script.register("new", {})
        script.outputs(room.urn, {})
        script.exported["x"] = 1

    calls = len(provider.calls)
    with playing(changed, stack.virtualenv):
        destroy = stack.destroy(run_program=True)
    assert (destroy.code, destroy.errors) == (0, [])
    assert not stack.names
    assert not provider.things
    done = [(each.method, each.name) for each in provider.calls[calls:]]
    assert [each for each in done if each[0] in ("Create", "Update")] == []
    assert sorted(name for method, name in done if method == "Delete") == ["a", "b"]
    assert ("Configure", "served-by") in done
