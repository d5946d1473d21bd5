"""The package `pulumi`, which the engine serves: references to stacks of the same backend, and stashes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pulumi_sandbox.engine.model.resource import Resource, Snapshot
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.state.store import Store
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Properties, Secret

from sandbox.tests.support.engine_stack import Outcome, Stack
from sandbox.tests.support.scripted_program import Script

_REFERENCE = "pulumi:pulumi:StackReference"


def with_outputs(stack: Stack, project: str, name: str, crypter: PassphraseCrypter | None = None) -> None:
    """Leave the state of another stack in the backend, as its own update does."""
    urn = urns.make(name, project, "", urns.ROOT_STACK_TYPE, f"{project}-{name}")
    outputs: Properties = {"host": f"{project}.{name}", "key": Secret("hush"), "all": [{"deep": Secret("x")}]}
    root = Resource(urn, urns.ROOT_STACK_TYPE, custom=False, outputs=outputs)
    Store(stack.directory / "backend", project, name, crypter or stack.crypter).save(Snapshot((root,)))


def referring(stack: Stack, name: str, operate: Callable[..., Outcome] | None = None) -> Outcome:
    def program(script: Script) -> None:
        script.exported.update(script.read("it", name, {"name": name}, type_=_REFERENCE).outputs)

    return (operate or stack.up)(program)


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("prod", "test.prod"),
        ("organization/prod", "test.prod"),
        ("/prod", "test.prod"),
        ("organization/net/prod", "net.prod"),
    ],
)
def test_a_reference_has_the_outputs_of_the_stack_that_the_cli_would_take_the_name_for(
    stack: Stack, name: str, host: str
):
    with_outputs(stack, "test", "prod")
    with_outputs(stack, "net", "prod")
    assert referring(stack, name, stack.preview).code == 0
    up = referring(stack, name)
    assert (up.code, up.ops("it")) == (0, ["read"])
    assert up.result.outputs == {
        "name": name,
        "outputs": {"host": host, "key": Secret("hush"), "all": [{"deep": Secret("x")}]},
        "secretOutputNames": ["all", "key"],
    }
    assert stack.resource("it").external
    assert "hush" not in stack.state_text + up.text


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gone", 'unknown stack "gone"'),
        ("organization/net/prod", 'unknown stack "organization/net/prod"'),
        ("acme/net/prod", "organization name must be 'organization'"),
        ("organization/net/prod/more", "names have 1 to 100"),
        ("organization//prod", "names have 1 to 100"),
        ("../prod", "organization name must be 'organization'"),
        ("organization/../prod", "names have 1 to 100"),
        ("a b", "names have 1 to 100"),
    ],
)
def test_a_reference_to_no_stack_of_this_backend_fails(stack: Stack, name: str, told: str):
    assert referring(stack, name).failed_with(told)


def test_the_outputs_are_read_anew_each_time(stack: Stack):
    with_outputs(stack, "test", "prod")
    referring(stack, "prod")
    (stack.directory / "backend" / ".pulumi" / "stacks" / "test" / "prod.json").unlink()
    assert stack.refresh().failed_with('unknown stack "prod"')
    assert stack.destroy().code == 0


def test_a_stack_of_another_passphrase_is_refused_by_its_name(stack: Stack):
    with_outputs(stack, "test", "prod", PassphraseCrypter.new("another"))
    assert referring(stack, "prod").failed_with('stack "prod": PULUMI_CONFIG_PASSPHRASE')


@pytest.mark.parametrize(
    ("token", "name"),
    [
        ("pulumi:pulumi:readStackOutputs", "name"),
        ("pulumi:pulumi:readStackResourceOutputs", "stackName"),
    ],
)
def test_functions_tell_of_other_stacks_too(stack: Stack, token: str, name: str):
    with_outputs(stack, "net", "prod")

    def program(script: Script) -> None:
        script.exported["found"] = script.invoke(token, {name: "organization/net/prod"})

    found = str(stack.up(program).result.outputs["found"])
    assert "net.prod" in found
    assert ("urn:pulumi:prod::net" in found) == (name == "stackName")


def test_a_stash_keeps_what_it_was_given_first(stack: Stack):
    def stashing(value: str) -> Outcome:
        return stack.up(lambda script: script.register("it", {"input": value}, type_="pulumi:index:Stash"))

    assert stashing("first").ops("it") == ["create"]
    assert stashing("first").ops("it") == ["same"]
    assert stashing("second").ops("it") == ["update"]
    assert stack.resource("it").outputs == {"input": "second", "output": "first"}
    assert stack.refresh(expect_no_changes=True).code == 0


def test_a_stash_takes_its_input_only(stack: Stack):
    up = stack.up(lambda script: script.register("it", {"put": 1}, type_="pulumi:index:Stash"))
    assert up.code == 1
    assert len(up.errors) == 2
