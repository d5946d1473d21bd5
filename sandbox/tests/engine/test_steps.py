"""The kinds of steps, when each is taken and what it leaves behind (sandbox/docs/engine-facts.md, steps)."""

import pytest
from google.protobuf import struct_pb2
from pulumi_sandbox.engine.show import phrases
from pulumi_sandbox.protocol import signatures
from pulumi_sandbox.protocol.stubs import alias_pb2
from pulumi_sandbox.protocol.values import UNKNOWN, Secret

from sandbox.tests.support.engine_stack import Stack, urn_of
from sandbox.tests.support.recording_provider import RecordingProvider
from sandbox.tests.support.scripted_program import Program, Script, nothing


def one(inputs: dict[str, object] | None = None, **options: object) -> Program:
    """Return a program with one resource `a`."""
    return lambda program: program.register("a", inputs, **options)  # pyright: ignore[reportArgumentType] - any property, any option


def test_a_new_resource_is_created_and_recorded(stack: Stack, provider: RecordingProvider):
    up = stack.up(one({"colour": "blue"}))
    assert up.code == 0, up.messages
    assert up.steps == [("create", "test-dev"), ("create", "default"), ("create", "a")]
    assert provider.methods("a") == ["Check", "Create"]
    assert stack.resource("a").outputs == provider.thing("a").outputs
    assert provider.of("Check", "a")[0].properties("olds") == {}


def test_an_unchanged_resource_stays_and_the_state_is_not_written(stack: Stack):
    stack.up(one({"colour": "blue"}))
    before = stack.state_text
    up = stack.up(one({"colour": "blue"}))
    assert up.ops("a") == ["same"]
    assert up.result.summary.changes == {"same": 2}
    assert stack.state_text == before


def test_check_gets_the_old_inputs_even_when_nothing_changed(stack: Stack, provider: RecordingProvider):
    stack.up(one())
    stack.up(one())
    checks = provider.of("Check", "a")
    assert checks[1].properties("olds") == {"name": stack.resource("a").inputs["name"]}


def test_diff_is_asked_even_when_the_inputs_are_equal(stack: Stack, provider: RecordingProvider):
    stack.up(one({"colour": "blue"}))
    stack.up(one({"colour": "blue"}))
    (diff,) = provider.of("Diff", "a")
    assert diff.properties("olds") == provider.thing("a").outputs
    assert diff.properties("old_inputs") == diff.properties("news")


def test_a_changed_resource_is_updated_in_place(stack: Stack, provider: RecordingProvider):
    stack.up(one({"colour": "blue"}))
    id_ = stack.resource("a").id
    up = stack.up(one({"colour": "red"}))
    assert up.ops("a") == ["update"]
    assert stack.resource("a").id == id_
    assert stack.resource("a").outputs["colour"] == "red"
    (update,) = provider.of("Update", "a")
    assert update.properties("old_inputs")["colour"] == "blue"
    assert update.properties("olds") == {**provider.thing("a").outputs, "colour": "blue"}


def test_same_keeps_old_outputs_and_stores_new_inputs(stack: Stack, provider: RecordingProvider):
    stack.up(one({"diff": "unknown", "secret": "word"}))
    up = stack.up(one({"diff": "unknown", "secret": Secret("word")}))
    assert up.ops("a") == ["same"]
    assert stack.resource("a").inputs["secret"] == Secret("word")
    assert "Update" not in provider.methods("a")


def test_an_unknown_diff_compares_inputs_with_secrets_unwrapped(stack: Stack):
    stack.up(one({"diff": "unknown", "word": Secret("hush"), "colour": "blue"}))
    assert stack.up(one({"diff": "unknown", "word": "hush", "colour": "blue"})).ops("a") == ["same"]
    assert stack.up(one({"diff": "unknown", "word": "hush", "colour": "red"})).ops("a") == ["update"]


def test_a_replacement_creates_first_and_deletes_at_the_end(stack: Stack, provider: RecordingProvider):
    def program(script: Script, colour: str) -> None:
        script.register("a", {"fixed": colour})
        script.register("b", {"colour": colour})

    up = stack.repainted(program)
    assert up.ops("a") == ["create-replacement", "replace", "delete-replaced"]
    assert up.steps[-1] == ("delete-replaced", "a")
    assert up.result.summary.changes == {"same": 1, "replace": 1, "update": 1}
    assert provider.names() == ["a", "b"]
    assert provider.thing("a").inputs["fixed"] == "red"


def test_a_replacement_checks_again_without_old_inputs_for_a_new_automatic_name(
    stack: Stack, provider: RecordingProvider
):
    stack.up(one({"fixed": "blue"}))
    first = stack.resource("a").inputs["name"]
    stack.up(one({"fixed": "red"}))
    assert stack.resource("a").inputs["name"] != first
    assert [bool(call.properties("olds")) for call in provider.of("Check", "a")] == [False, True, False]


def test_the_provider_may_want_the_old_one_deleted_first(stack: Stack, provider: RecordingProvider):
    stack.up(one({"fixed": "blue", "exclusive": True}))
    up = stack.up(one({"fixed": "red", "exclusive": True}))
    assert up.ops("a") == ["delete-replaced", "replace", "create-replacement"]
    assert provider.methods("a")[-2:] == ["Delete", "Create"]


@pytest.mark.parametrize(
    ("option", "exclusive", "expected"),
    [
        pytest.param(True, False, "delete-replaced", id="option-true-beats-provider"),
        pytest.param(False, True, "create-replacement", id="option-false-beats-provider"),
    ],
)
def test_the_option_delete_before_replace_beats_the_provider(
    stack: Stack, option: bool, exclusive: bool, expected: str
):
    def program(script: Script, colour: str) -> None:
        script.register(
            "a",
            {"fixed": colour, "exclusive": exclusive},
            deleteBeforeReplace=option,
            deleteBeforeReplaceDefined=True,
        )

    assert stack.repainted(program).ops("a")[0] == expected


def test_delete_before_replace_drags_dependents_that_cannot_change_along(
    stack: Stack, provider: RecordingProvider
):
    def program(script: Script, colour: str) -> None:
        a = script.register("a", {"fixed": colour, "exclusive": True})
        falls = script.register("falls", {"fixed": a.id}, depends_on={"fixed": [a.urn]})
        script.register("falls-too", {"fixed": falls.id}, depends_on={"fixed": [falls.urn]})
        script.register("stays", {"soft": a.id}, depends_on={"soft": [a.urn]})
        script.register("merely-after", {}, depends_on={"": [a.urn]})

    up = stack.repainted(program)
    assert up.code == 0, up.messages
    deleted = [name for op, name in up.steps if op == "delete-replaced"]
    assert deleted == ["falls-too", "falls", "a"]
    assert up.ops("falls") == ["delete-replaced", "replace", "create-replacement"]
    assert up.ops("stays") == ["update"]
    assert up.ops("merely-after") == ["same"]
    assert provider.names() == ["a", "falls", "falls-too", "merely-after", "stays"]
    assert stack.resource("falls").inputs["fixed"] == stack.resource("a").id


def test_a_dependent_dragged_along_and_not_registered_again_is_forgotten(stack: Stack):
    def program(script: Script) -> None:
        a = script.register("a", {"fixed": colour, "exclusive": True})
        if colour == "blue":
            script.register("b", {"fixed": a.id}, depends_on={"fixed": [a.urn]})

    colour = "blue"
    stack.up(program)
    colour = "red"
    up = stack.up(program)
    assert up.ops("b") == ["delete-replaced", "remove-pending-replace"]
    assert stack.records("b") == []


def test_replace_on_changes_turns_a_covered_change_into_a_replacement(stack: Stack):
    stack.up(one({"colour": "blue", "size": 1}))
    up = stack.up(one({"colour": "blue", "size": 2}, replaceOnChanges=["colour"]))
    assert up.ops("a") == ["update"]
    up = stack.up(one({"colour": "red", "size": 2}, replaceOnChanges=["colour"]))
    assert up.ops("a")[0] == "create-replacement"


def test_ignore_changes_keeps_the_old_input_nested_ones_too(stack: Stack, provider: RecordingProvider):
    stack.up(one({"tags": {"owner": "x", "cost": 1}, "colour": "blue"}))
    up = stack.up(one({"tags": {"owner": "y", "cost": 2}, "colour": "red"}, ignoreChanges=["tags.owner"]))
    assert up.ops("a") == ["update"]
    assert provider.thing("a").inputs["tags"] == {"owner": "x", "cost": 2}
    assert provider.of("Check", "a")[1].properties("news")["tags"] == {"owner": "x", "cost": 2}


def test_ignore_changes_says_when_a_path_cannot_be_ignored(stack: Stack):
    stack.up(one({"list": ["a"]}))
    up = stack.up(one({"list": ["a", "b"]}, ignoreChanges=["list[1].deep"]))
    assert any("cannot ignore" in str(event) for event in up.events)


def test_a_component_is_updated_when_its_inputs_differ_and_same_otherwise(stack: Stack):
    assert stack.up(lambda program: program.component("c", {"x": 1})).ops("c") == ["create"]
    assert stack.up(lambda program: program.component("c", {"x": 1})).ops("c") == ["same"]
    assert stack.up(lambda program: program.component("c", {"x": 2})).ops("c") == ["update"]
    assert stack.resource("c").id == ""


def test_a_resource_no_longer_registered_is_deleted(stack: Stack, provider: RecordingProvider):
    stack.up(one())
    up = stack.up(nothing)
    assert up.ops("a") == ["delete"]
    assert up.ops("default") == ["delete"]
    assert provider.names() == []
    assert stack.names == ["test-dev"]


def test_deletes_go_dependents_first_in_rings(stack: Stack, provider: RecordingProvider):
    def program(script: Script) -> None:
        a = script.register("a")
        b = script.register("b", {"on": a.id}, depends_on={"on": [a.urn]})
        script.register("c", {}, depends_on={"": [b.urn]})
        script.register("d", {}, depends_on={"": [a.urn]})
        parent = script.component("p")
        script.register("child", {}, parent=parent.urn)

    stack.up(program)
    up = stack.up(nothing)
    order = [name for op, name in up.steps if op == "delete"]
    assert order.index("c") < order.index("b") < order.index("a")
    assert order.index("d") < order.index("a")
    assert order.index("child") < order.index("p")
    assert order[-1] == "default"


def test_a_protected_resource_is_not_deleted_but_others_are(stack: Stack, provider: RecordingProvider):
    def program(script: Script) -> None:
        needed = script.register("needed")
        script.register("guarded", {}, depends_on={"": [needed.urn]}, protect=True)
        script.register("free")

    stack.up(program)
    up = stack.up(nothing)
    assert up.failed_with("protected")
    assert provider.names() == ["guarded", "needed"]
    preview = stack.preview(nothing)
    assert preview.failed_with("protected")


def test_a_protected_resource_is_not_replaced(stack: Stack, provider: RecordingProvider):
    stack.up(one({"fixed": "blue"}, protect=True))
    up = stack.up(one({"fixed": "red"}, protect=True))
    assert up.code == 1
    assert provider.thing("a").inputs["fixed"] == "blue"
    preview = stack.preview(one({"fixed": "red"}, protect=True))
    assert preview.code == 1
    assert "create-replacement" in preview.ops("a")


def test_unprotecting_and_replacing_may_happen_together(stack: Stack):
    stack.up(one({"fixed": "blue"}, protect=True))
    assert stack.up(one({"fixed": "red"}, protect=False)).code == 0


def test_retained_resources_leave_the_state_but_not_the_world(stack: Stack, provider: RecordingProvider):
    stack.up(one(retainOnDelete=True))
    up = stack.up(nothing)
    assert up.ops("a") == ["delete"]
    assert provider.names() == ["a"]
    assert stack.records("a") == []


def test_a_resource_deleted_with_another_is_not_deleted_by_a_call(stack: Stack, provider: RecordingProvider):
    def program(script: Script) -> None:
        cluster = script.register("cluster")
        script.register("inside", {}, deletedWith=cluster.urn)

    stack.up(program)
    up = stack.up(nothing)
    assert up.ops("inside") == ["delete"]
    assert not provider.of("Delete", "inside")
    assert provider.of("Delete", "cluster")


@pytest.mark.parametrize("option", ["deletedWith", "replace_with"])
def test_a_resource_tied_to_a_replaced_one_is_replaced_without_a_diff(
    stack: Stack, provider: RecordingProvider, option: str
):
    def program(script: Script, colour: str) -> None:
        target = script.register("target", {"fixed": colour})
        if option == "replace_with":
            script.register("tied", {}, replace_with=[target.urn])
        else:
            script.register("tied", {}, deletedWith=target.urn)

    up = stack.repainted(program)
    assert "create-replacement" in up.ops("tied")
    assert not provider.of("Diff", "tied")


def test_a_read_resource_is_looked_up_and_never_deleted(stack: Stack, provider: RecordingProvider):
    stack.up(one({"colour": "blue"}))
    id_ = stack.resource("a").id
    found: list[object] = []

    def program(script: Script) -> None:
        script.register("a", {"colour": "blue"})
        found.append(script.read("lookup", id_).outputs["colour"])

    assert stack.up(program).ops("lookup") == ["read"]
    assert stack.preview(program).ops("lookup") == ["read"]
    assert found == ["blue", "blue"]
    assert stack.resource("lookup").external
    up = stack.up(one({"colour": "blue"}))
    assert up.ops("lookup") == ["discard"]
    assert not provider.of("Delete", "lookup")


def test_reading_what_does_not_exist_fails_by_name(stack: Stack):
    up = stack.up(lambda program: program.read("lookup", "nowhere"))
    assert (up.code, up.errors) == (1, ["resource 'nowhere' does not exist"])


def test_taking_over_a_resource_that_was_only_read_creates_one(stack: Stack, provider: RecordingProvider):
    stack.up(one())
    id_ = stack.resource("a").id

    def reading(script: Script) -> None:
        script.register("a")
        script.read("b", id_)

    def owning(script: Script) -> None:
        script.register("a")
        script.register("b")

    stack.up(reading)
    up = stack.up(owning)
    assert up.ops("b") == ["create-replacement", "replace", "discard-replaced"]
    assert not stack.resource("b").external
    assert provider.names() == ["a", "b"]


def test_handing_an_owned_resource_to_a_read_deletes_the_owned_one(stack: Stack, provider: RecordingProvider):
    def owning(script: Script) -> None:
        script.register("a")
        script.register("b")

    def reading(script: Script) -> None:
        a = script.register("a")
        script.read("b", a.id)

    stack.up(owning)
    up = stack.up(reading)
    assert up.ops("b") == ["read-replacement", "replace", "delete-replaced"]
    assert provider.names() == ["a"]


@pytest.mark.parametrize(
    "alias",
    [
        pytest.param(alias_pb2.Alias(urn=urn_of("old")), id="urn"),
        pytest.param(alias_pb2.Alias(spec=alias_pb2.Alias.Spec(name="old")), id="name"),
    ],
)
def test_a_renamed_resource_is_found_by_its_alias(
    stack: Stack, provider: RecordingProvider, alias: alias_pb2.Alias
):
    def before(script: Script) -> None:
        old = script.register("old", {"colour": "blue", "name": "n"})
        script.register("user", {"on": old.id}, depends_on={"on": [old.urn]})

    def after(script: Script) -> None:
        new = script.register("new", {"colour": "blue", "name": "n"}, aliases=[alias])
        script.register("user", {"on": new.id}, depends_on={"on": [new.urn]})

    stack.up(before)
    up = stack.up(after)
    assert up.ops("new") == ["same"]
    assert up.ops("user") == ["same"]
    assert stack.names == ["test-dev", "default", "new", "user"]
    assert stack.resource("new").aliases == ()
    assert stack.resource("user").dependencies == (urn_of("new"),)
    assert not provider.of("Delete")


def test_children_follow_their_renamed_parent(stack: Stack):
    def program(script: Script) -> None:
        alias = alias_pb2.Alias(spec=alias_pb2.Alias.Spec(name="old"))
        parent = script.component(name, aliases=[alias])
        script.register(f"{name}-child", {"name": "n"}, parent=parent.urn)

    name = "old"
    stack.up(program)
    name = "new"
    up = stack.up(program)
    assert up.ops("new-child") == ["same"]
    assert stack.names == ["test-dev", "new", "default", "new-child"]


def test_a_resource_moved_into_a_component_is_found_by_an_alias_without_parent(stack: Stack):
    def inside(script: Script) -> None:
        parent = script.component("p")
        alias = alias_pb2.Alias(spec=alias_pb2.Alias.Spec(noParent=True))
        script.register("a", {"name": "n"}, parent=parent.urn, aliases=[alias])

    stack.up(one({"name": "n"}))
    assert stack.up(inside).ops("a") == ["same"]


def test_two_resources_cannot_claim_one_old_record(stack: Stack):
    def program(script: Script) -> None:
        alias = alias_pb2.Alias(urn=urn_of("a"))
        script.register("b", {"name": "n"}, aliases=[alias])
        script.register("c", {"name": "n"}, aliases=[alias])

    stack.up(one({"name": "n"}))
    up = stack.up(program)
    assert up.failed_with("only one can have it")


def test_an_old_urn_claimed_by_an_alias_cannot_be_registered_itself(stack: Stack):
    def program(script: Script) -> None:
        script.register("b", {"name": "n"}, aliases=[alias_pb2.Alias(urn=urn_of("a"))])
        script.register("a", {"name": "n"})

    stack.up(one({"name": "n"}))
    up = stack.up(program)
    assert up.failed_with("only one can have it")


def test_two_resources_of_one_name_are_an_error(stack: Stack):
    def program(script: Script) -> None:
        script.register("a")
        script.register("a")

    up = stack.up(program)
    assert up.failed_with("duplicate resource")


def test_children_inherit_protect_and_retain_from_their_parent(stack: Stack):
    def program(script: Script) -> None:
        target = script.register("target")
        parent = script.component("p", protect=True, retainOnDelete=True, deletedWith=target.urn)
        script.register("inherits", {}, parent=parent.urn)
        script.register("differs", {}, parent=parent.urn, protect=False)

    stack.up(program)
    assert stack.resource("inherits").protect
    assert stack.resource("inherits").retain_on_delete
    assert stack.resource("inherits").deleted_with == stack.resource("target").urn
    assert not stack.resource("differs").protect


def test_a_tainted_resource_is_replaced(stack: Stack):
    stack.up(one())
    stack.change("a", taint=True)
    assert "create-replacement" in stack.up(one()).ops("a")
    assert stack.up(one()).ops("a") == ["same"]


def test_what_nobody_knows_triggers_a_replacement_in_a_preview_and_fails_an_update(
    stack: Stack, provider: RecordingProvider
):
    stack.up(one(replacement_trigger=struct_pb2.Value(string_value="one")))
    unknown = one(replacement_trigger=struct_pb2.Value(string_value=signatures.UNKNOWN))
    assert "replace" in stack.preview(unknown).ops("a")
    assert stack.up(unknown).failed_with("its replacement_trigger is not known")
    assert not provider.of("Delete")


def test_what_the_program_hides_is_told_to_differ_and_no_more(stack: Stack):
    def seen(stack: Stack) -> Program:
        return lambda script: script.register("a", {"colour": len(stack.names)}, hideDiffs=["colour"])

    stack.up(seen(stack))
    (told,) = (each for each in stack.preview(seen(stack)).result.steps if each.step.name == "a")
    assert [(each.path, each.old, each.new) for each in told.step.changes] == [
        ("colour", "[hidden]", "[hidden]")
    ]
    assert any("[hidden] → [hidden]" in line for line in phrases.changes(told.step))


def test_outputs_named_like_secret_inputs_become_secret_on_every_step(
    stack: Stack, provider: RecordingProvider
):
    provider.accepts_secrets = False
    stack.up(one({"word": Secret("hush-hush"), "colour": "blue"}))
    assert stack.resource("a").outputs["word"] == Secret("hush-hush")
    stack.change("a", outputs={**stack.resource("a").outputs, "word": "hush-hush"})
    assert stack.up(one({"word": Secret("hush-hush"), "colour": "blue"})).ops("a") == ["same"]
    assert stack.resource("a").outputs["word"] == Secret("hush-hush")
    assert "hush-hush" not in stack.state_text


def test_additional_secret_outputs_become_secret(stack: Stack):
    stack.up(one(additionalSecretOutputs=["made"]))
    assert isinstance(stack.resource("a").outputs["made"], Secret)


def test_a_preview_writes_nothing_and_tells_unknowns(stack: Stack, provider: RecordingProvider):
    seen: list[object] = []

    def program(script: Script) -> None:
        a = script.register("a", {"colour": "blue"})
        seen.append((a.id, a.outputs["made"], a.outputs["colour"]))

    preview = stack.preview(program)
    assert preview.ops("a") == ["create"]
    assert seen == [("", UNKNOWN, "blue")]
    assert provider.names() == []
    assert not stack.store.path.exists()


def test_a_preview_shows_deletes_and_replacements_without_making_them(
    stack: Stack, provider: RecordingProvider
):
    def program(script: Script) -> None:
        a = script.register("a", {"fixed": colour, "exclusive": True})
        script.register("b", {"fixed": a.id or UNKNOWN}, depends_on={"fixed": [a.urn]})
        if colour == "blue":
            script.register("gone")

    colour = "blue"
    stack.up(program)
    before, text = dict(provider.things), stack.state_text
    colour = "red"
    preview = stack.preview(program)
    assert preview.ops("a") == ["delete-replaced", "replace", "create-replacement"]
    assert preview.ops("b") == ["delete-replaced", "replace", "create-replacement"]
    assert preview.ops("gone") == ["delete"]
    assert provider.things == before
    assert stack.state_text == text


def test_preview_and_up_announce_the_same_steps(stack: Stack):
    def program(script: Script) -> None:
        script.register("a", {"fixed": colour})
        script.register("b", {"colour": colour})
        script.register(f"c-{colour}")

    colour = "blue"
    assert stack.preview(program).counts == stack.up(program).counts
    colour = "red"
    assert stack.preview(program).counts == stack.up(program).counts


def test_changes_where_none_are_expected_give_exit_code_7(stack: Stack):
    assert stack.preview(one(), expect_no_changes=True).code == 7
    stack.up(one())
    assert stack.preview(one(), expect_no_changes=True).code == 0
