"""The planner's rules as tables (sandbox/docs/engine-facts.md, steps)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pulumi_sandbox.engine.deploy.decide import force_replacements, forced_by, ignore_changes, plan, settle
from pulumi_sandbox.engine.deploy.order import deletion_rings, dependents, depends_on
from pulumi_sandbox.engine.deploy.refresh import without_dangling_references
from pulumi_sandbox.engine.model.diff import Diff, PropertyDiff
from pulumi_sandbox.engine.model.resource import Resource, with_secret_outputs
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Secret, Value

CHANGED = Diff("some", changed=("size",))
UPDATE_REPLACE = Diff("some", detailed={"size": PropertyDiff("update-replace")})


def resource(name: str, *needed: str, **fields: object) -> Resource:
    return Resource(urn=name, type="t", custom=True, id=name, dependencies=needed, **fields)  # pyright: ignore[reportArgumentType] - any field of a record


@pytest.mark.parametrize(
    ("diff", "fields", "verdict"),
    [
        pytest.param(Diff("none"), {}, "same", id="none is same"),
        pytest.param(CHANGED, {}, "update", id="some without replaces is update"),
        pytest.param(Diff("some", replaces=("size",)), {}, "replace", id="replaces is replace"),
        pytest.param(UPDATE_REPLACE, {}, "replace", id="detailed replace is replace"),
        pytest.param(Diff("none", replaces=("size",)), {}, "same", id="none beats replaces"),
        pytest.param(Diff("none"), {"init_errors": ("x",)}, "update", id="init errors are awaited"),
        pytest.param(Diff("none"), {"pending_replacement": True}, "replace", id="deleted is replaced"),
    ],
)
def test_the_verdict_follows_the_providers_answer(diff: Diff, fields: dict[str, object], verdict: str):
    old = resource("a", **fields)
    assert plan(old, diff, replace_on_changes=(), delete_first=None).verdict == verdict


@pytest.mark.parametrize("provider", [True, False])
@pytest.mark.parametrize("option", [True, False, None])
def test_the_option_decides_what_goes_first_and_else_the_provider(provider: bool, option: bool | None):
    diff = Diff("some", replaces=("size",), delete_before_replace=provider)
    decided = plan(resource("a"), diff, replace_on_changes=(), delete_first=option)
    assert decided.delete_first == (provider if option is None else option)


@pytest.mark.parametrize(
    ("pattern", "path", "covered"),
    [
        ("size", "size", True),
        ("spec", "spec.replicas", True),
        ("spec.replicas", "spec", False),
        ("*", "anything.at.all", True),
        ("list[*].name", "list[3].name", True),
        ("list[0]", "list[1]", False),
    ],
)
def test_replace_on_changes_covers_paths_below_the_pattern(pattern: str, path: str, covered: bool):
    diff = Diff("some", detailed={path: PropertyDiff("update")})
    assert force_replacements(diff, [pattern]).demands_replacement == covered


def test_replace_on_changes_without_changes_changes_nothing():
    assert force_replacements(Diff("none", changed=("size",)), ["size"]) == Diff("none", changed=("size",))


def test_an_already_replacing_path_stays_one():
    assert force_replacements(UPDATE_REPLACE, ["size"]) == UPDATE_REPLACE


@pytest.mark.parametrize(
    ("old", "new", "ignored", "changes"),
    [
        pytest.param({"a": 1}, {"a": 1}, (), "none", id="equal"),
        pytest.param({"a": Secret(1)}, {"a": 1}, (), "none", id="a-secret-is-what-it-holds"),
        pytest.param({"a": 1}, {"a": 2}, (), "some", id="different"),
        pytest.param({"a": 1}, {"a": 2}, ("a",), "none", id="ignored"),
        pytest.param({"a": 1}, {}, (), "some", id="removed"),
    ],
)
def test_an_unknown_diff_is_settled_by_comparing_inputs(
    old: Properties, new: Properties, ignored: tuple[str, ...], changes: str
):
    assert settle(Diff("unknown"), old, new, ignored).changes == changes


def test_a_known_diff_is_not_second_guessed():
    assert settle(Diff("none"), {"a": 1}, {"a": 2}, ()) == Diff("none")


def test_ignored_paths_take_the_old_value_or_say_they_cannot():
    old: Properties = {"tags": {"a": 1}, "list": [1]}
    new: Properties = {"tags": {"a": 2, "b": 3}, "list": [1, 2]}
    assert ignore_changes(old, new, ["tags.a"]) == ({"tags": {"a": 1, "b": 3}, "list": [1, 2]}, ())
    assert ignore_changes(old, new, ["list[1]"]) == (new, ("list[1]",))


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        ({"replace_with": ("x", "gone")}, ("replaceWith",)),
        ({"deleted_with": "gone"}, ("deletedWith",)),
        ({"deleted_with": "stays", "replace_with": ("stays",)}, None),
    ],
)
def test_a_tie_to_a_replaced_resource_forces_replacement(
    fields: dict[str, object], keys: tuple[str, ...] | None
):
    forced = forced_by(resource("a"), resource("a", **fields), {"gone"})
    assert (forced and forced.replaces) == keys


@pytest.mark.parametrize(
    ("old", "new", "replaces"),
    [
        pytest.param(1, 2, True, id="another one"),
        pytest.param([1], [1], False, id="the same"),
        pytest.param(1, Secret(1), False, id="the same, secret now"),
        pytest.param(None, 1, False, id="there was none"),
        pytest.param(1, None, False, id="there is none any more"),
        pytest.param(1, [UNKNOWN], True, id="nobody knows it"),
    ],
)
def test_a_trigger_that_changed_forces_replacement(old: Value, new: Value, replaces: bool):
    before, after = (resource("a", replacement_trigger=each) for each in (old, new))
    assert (forced_by(before, after, ()) is not None) == replaces


def test_secret_inputs_and_additional_names_conceal_outputs_but_never_the_id():
    record = Resource(
        urn="a",
        type="t",
        custom=True,
        inputs={"word": Secret("x"), "open": "y"},
        outputs={"word": "x", "open": "y", "made": "z", "id": "i"},
        additional_secret_outputs=("made", "id", "absent"),
    )
    assert with_secret_outputs(record).outputs == {
        "word": Secret("x"),
        "open": "y",
        "made": Secret("z"),
        "id": "i",
    }


def test_a_record_with_nothing_to_conceal_stays_the_same_object():
    record = resource("a")
    assert with_secret_outputs(record) is record


def test_a_resource_depends_on_everything_it_names():
    record = Resource(
        urn="a",
        type="t",
        custom=True,
        parent="parent",
        provider="provider::id",
        dependencies=("dependency",),
        property_dependencies={"x": ("property",)},
        deleted_with="with",
        replace_with=("replaced",),
    )
    assert depends_on(record) == {"parent", "provider", "dependency", "property", "with", "replaced"}


def test_dependents_are_found_through_others_and_in_order():
    state = [resource("a"), resource("b", "a"), resource("other"), resource("c", "b"), resource("d", "other")]
    assert [each.urn for each in dependents("a", state)] == ["b", "c"]


def test_rings_delete_side_by_side_what_nothing_depends_on():
    state = [resource("a"), resource("b", "a"), resource("c", "a"), resource("d", "b"), resource("e")]
    rings = [{each.urn for each in ring} for ring in deletion_rings(state)]
    assert rings == [{"d"}, {"b", "c"}, {"a", "e"}]


@st.composite
def states(draw: st.DrawFn) -> list[Resource]:
    """Draw resources that depend on earlier ones only, as the state has them; some are old halves."""
    state: list[Resource] = []
    for index in range(draw(st.integers(0, 12))):
        names = sorted({each.urn for each in state})
        name = draw(st.sampled_from([f"r{index}", *names]))
        refers = draw(st.lists(st.sampled_from(names), unique=True)) if names else []
        state.append(resource(name, *(each for each in refers if each != name), delete=name in names))
    return state


@given(states())
@example([resource("a"), resource("b", "a"), resource("own"), resource("a", "own", delete=True)])
def test_no_ring_deletes_what_stands_before_something_left_that_refers_to_it(state: list[Resource]):
    rings = deletion_rings(state)
    assert sorted(id(each) for ring in rings for each in ring) == sorted(map(id, state))
    ring_of = {id(each): number for number, ring in enumerate(rings) for each in ring}
    for index, each in enumerate(state):
        for below in state[:index]:
            if below.urn in depends_on(each):
                assert ring_of[id(each)] < ring_of[id(below)]


@given(states(), st.data())
def test_after_a_refresh_nothing_refers_to_what_is_gone(state: list[Resource], data: st.DataObject):
    root = Resource(urn="root", type="pulumi:pulumi:Stack", custom=False)
    gone = data.draw(st.sets(st.sampled_from([each.urn for each in state]))) if state else set[str]()
    remaining = [root, *(each for each in state if each.urn not in gone)]
    repaired = without_dangling_references(remaining)
    assert [each.urn for each in repaired] == [each.urn for each in remaining]
    known = {each.urn for each in repaired}
    for before, after in zip(remaining, repaired, strict=True):
        assert known.issuperset(after.references)
        assert set(before.dependencies) - set(after.dependencies) <= gone
