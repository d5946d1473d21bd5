"""Operations on some resources only; most outcomes were seen of the genuine CLI with the same program.

Not seen there: those of children and explicit providers, and what a program learns of what is not made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pulumi_sandbox.engine.deploy.targets import Selection, Targets
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties

from sandbox.tests.support.engine_stack import Outcome, Stack, urn_of
from sandbox.tests.support.recording_provider import RecordingProvider
from sandbox.tests.support.scripted_program import Program, Script

A, B, C, D = map(urn_of, "abcd")
ZZ = urn_of("zz")


def chain(generation: int) -> Program:
    """Register `a`, `b` that needs it, `c` that needs `b`, and `d`, which needs nothing."""

    def program(script: Script) -> None:
        v: Properties = {"v": generation}
        a = script.register("a", v)
        b = script.register("b", {**v, "w": a.outputs.get("made")}, depends_on={"w": [a.urn]})
        script.register("c", v, depends_on={"": [b.urn]})
        script.register("d", v)

    return program


def targets(*urns: str) -> Selection:
    return Selection(targets=urns)


def excludes(*urns: str) -> Selection:
    return Selection(excludes=urns)


def with_dependents(selection: Selection) -> Selection:
    return Selection(selection.targets, selection.excludes, dependents=True)


def versions(stack: Stack) -> dict[str, object]:
    """Return the input `v` of every thing in the state, by name."""
    found = (each for each in stack.snapshot.resources if each.type == "fake:index:Thing")
    return {each.urn.rpartition("::")[2]: each.inputs["v"] for each in found}


@pytest.mark.parametrize(
    ("selection", "updated"),
    [
        (targets(B), "b"),
        (targets(A, D), "ad"),
        (with_dependents(targets(A)), "abc"),
        (with_dependents(targets(B)), "bc"),
        (targets("urn:*:dev::test::*:*:Thing::?"), ""),
        (targets("urn:*:dev::test::*:*:Thing::d"), "d"),
        (targets("urn:*::d"), ""),
        (targets("**::d", C), "cd"),
        (excludes(B), "acd"),
        (excludes("**::[ab]"), "abcd"),
        (with_dependents(excludes(B)), "ad"),
        (with_dependents(excludes(A)), "d"),
    ],
)
def test_an_update_changes_what_is_meant_and_keeps_the_rest_as_the_state_has_it(
    stack: Stack, selection: Selection, updated: str
):
    stack.up(chain(0))
    before = stack.snapshot.resources
    up = stack.up(chain(1), selection=selection)
    assert up.code == 0
    assert versions(stack) == {name: int(name in updated) for name in "abcd"}
    assert {
        each.urn: each for each in before if each.inputs.get("v") == 0 and each.urn[-1] not in updated
    } == {each.urn: each for each in stack.snapshot.resources if each.inputs.get("v") == 0}
    assert stack.up(chain(1)).code == 0


@pytest.mark.parametrize(
    ("selection", "made"),
    [(targets(D), "d"), (targets(A, B), "ab"), (with_dependents(targets(A)), "abc"), (excludes(C, D), "ab")],
)
def test_what_is_not_meant_is_not_made(
    stack: Stack, provider: RecordingProvider, selection: Selection, made: str
):
    assert stack.up(chain(0), selection=selection).code == 0
    assert provider.names() == [*made]
    assert {*versions(stack)} == {*made}


@pytest.mark.parametrize("selection", [targets(B), excludes(A)])
def test_what_needs_something_that_is_not_made_fails(
    stack: Stack, provider: RecordingProvider, selection: Selection
):
    assert stack.preview(chain(0), selection=selection).failed_with(f"it depends on {A}, which was not")
    assert stack.up(chain(0), selection=selection).failed_with(f"it depends on {A}, which was not")
    assert "b" not in provider.names()


def test_what_is_looked_up_stands_behind_what_it_depends_on_or_fails_where_that_is_not_made(
    stack: Stack, provider: RecordingProvider
):
    def program(script: Script) -> None:
        script.register("d", {"v": version})
        a = script.register("a", {"v": version})
        b = script.register("b", {"v": version})
        script.read("lookup", b.id, {"v": version}, dependencies=[a.urn])

    version = 0
    refused = stack.up(program, selection=targets(B))
    assert refused.failed_with(f"it depends on {A}, which was not")
    assert stack.up(program).code == 0
    version = 1
    assert stack.up(program, selection=targets(B)).code == 0
    assert versions(stack) == {"a": 0, "b": 1, "d": 0, "lookup": 1}


def test_the_program_learns_that_something_is_not_made(stack: Stack):
    unknown: list[bool] = []

    def program(script: Script) -> None:
        unknown.append(script.monitor.RegisterResource(script.request("a", {})).unknown)

    stack.up(program, selection=targets(D))
    stack.up(program)
    assert unknown == [True, False]


@pytest.mark.parametrize(
    ("operation", "meant", "code"),
    [
        ("up", targets, 1),
        ("preview", targets, 1),
        ("refresh", targets, 1),
        ("refresh", excludes, 1),
        ("destroy", targets, 1),
        ("up", excludes, 0),
        ("destroy", excludes, 0),
    ],
)
def test_a_target_that_is_nowhere_is_an_error(
    stack: Stack, operation: str, meant: Callable[..., Selection], code: int
):
    stack.up(chain(0))
    programs = [chain(1)] if operation in ("up", "preview") else []
    outcome: Outcome = getattr(stack, operation)(*programs, selection=meant(ZZ))
    assert (outcome.code, outcome.errors) == (
        code,
        [f"Target '{ZZ}' could not be found in the stack. Did you forget to escape $ in your shell?"] * code,
    )


@pytest.mark.parametrize(
    ("selection", "left"),
    [
        (targets(D), "abc"),
        (targets(C), "abd"),
        (targets(B, C), "ad"),
        (with_dependents(targets(B)), "ad"),
        (excludes(B), "ab"),
        (excludes(D), "d"),
        (with_dependents(excludes(B)), "abcd"),
    ],
)
def test_a_destroy_takes_what_is_meant_and_keeps_what_that_needs(
    stack: Stack, provider: RecordingProvider, selection: Selection, left: str
):
    stack.up(chain(0))
    assert stack.destroy(selection=selection).code == 0
    assert provider.names() == [*left]
    assert {*versions(stack)} == {*left}


def test_nothing_is_destroyed_where_something_else_would_have_to_go_too(
    stack: Stack, provider: RecordingProvider
):
    stack.up(chain(0))
    destroy = stack.destroy(selection=targets(A, D))
    assert (destroy.code, len(destroy.errors)) == (1, 2)
    assert provider.names() == [*"abcd"]


@pytest.mark.parametrize(
    ("selection", "read"),
    [
        (targets(A), "a"),
        (with_dependents(targets(A)), "abc"),
        (excludes(B), "acd"),
        (with_dependents(excludes(B)), "ad"),
    ],
)
def test_a_refresh_reads_what_is_meant(
    stack: Stack, provider: RecordingProvider, selection: Selection, read: str
):
    stack.up(chain(0))
    stack.refresh(selection=selection)
    assert sorted(call.name for call in provider.of("Read")) == [*read]


def test_what_is_left_alone_keeps_what_it_needed_though_the_program_forgot_that(
    stack: Stack, provider: RecordingProvider
):
    def before(script: Script) -> None:
        x = script.register("x", {"v": 0})
        b = script.register("b", {"v": 0}, depends_on={"": [x.urn]})
        script.register("d", {"v": 0}, depends_on={"": [b.urn]})

    def after(script: Script) -> None:
        b = script.register("b", {"v": 1})
        script.register("d", {"v": 1}, depends_on={"": [b.urn]})

    stack.up(before)
    assert stack.up(after, selection=targets(D)).code == 0
    assert versions(stack) == {"x": 0, "b": 0, "d": 1}
    assert stack.up(after, selection=targets(urn_of("x"))).code == 0
    assert provider.names() == ["b", "d", "x"]
    assert stack.up(after).code == 0
    assert provider.names() == ["b", "d"]


def test_what_the_program_forgot_goes_only_where_it_is_meant(stack: Stack, provider: RecordingProvider):
    stack.up(chain(0))
    only_a = targets(D)
    assert stack.up(lambda script: script.register("a", {"v": 0}), selection=only_a).code == 0
    assert provider.names() == [*"abc"]
    assert stack.up(lambda script: script.register("a", {"v": 0}), selection=targets(B)).failed_with(
        "it will be destroyed but was not specified"
    )
    assert provider.names() == [*"abc"]


def test_children_and_providers_count_as_dependents(stack: Stack, provider: RecordingProvider):
    def program(generation: int) -> Program:
        def register(script: Script) -> None:
            v: Properties = {"v": str(generation)}
            room = script.component("room")
            script.register("child", v, parent=room.urn)
            script.outputs(room.urn, {"generation": generation})
            served = script.register("served-by", v, type_="pulumi:providers:fake")
            script.register("served", v, provider=served.reference)

        return register

    stack.up(program(0))
    room = urn_of("room", "test:index:Component")
    stack.up(program(1), selection=with_dependents(targets(room)))
    assert versions(stack) == {"child": "1", "served": "0"}
    stack.up(program(2), selection=with_dependents(targets(urn_of("served-by", "pulumi:providers:fake"))))
    assert versions(stack) == {"child": "1", "served": "2"}
    assert stack.resource("room").outputs == {"generation": 2}
    assert stack.destroy(selection=targets(room)).failed_with("it will be destroyed but was not specified")


def test_what_is_to_be_made_anew_has_to_be_there(stack: Stack):
    up = stack.up(chain(0), selection=Selection(replaces=(urn_of("nobody"),)))
    assert up.failed_with("could not be found in the stack")


def test_what_protected_resources_depend_on_is_left_alone_with_them(stack: Stack):
    def program(script: Script) -> None:
        below = script.register("below")
        script.register("kept", {"on": below.id}, depends_on={"on": [below.urn]}, protect=True)
        script.register("goes", {"on": below.id}, depends_on={"on": [below.urn]})

    stack.up(program)
    assert stack.destroy(selection=Selection(excludes_protected=True)).code == 0
    assert stack.names == ["test-dev", "default", "below", "kept"]


@pytest.mark.parametrize(
    "given",
    [
        {"targets": (A,), "excludes": (B,)},
        {"targets": (A,), "excludes_protected": True},
        {"dependents": True},
    ],
)
def test_what_is_meant_has_to_be_said_in_one_way(given: dict[str, Any]):
    with pytest.raises(SandboxError, match="--target"):
        Selection(**given)


def test_without_a_selection_everything_is_meant(stack: Stack):
    stack.up(chain(0))
    everything = Targets(Selection(), stack.snapshot.resources)
    assert all(map(everything.includes, stack.snapshot.resources))
    assert not everything.spared()
