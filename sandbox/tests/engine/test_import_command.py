"""The command import: what it records, leaves alone, warns of and refuses, and the code that it prints."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pulumi_sandbox.engine import Import, Resource, Snapshot, StackAtRest, constructor_of, how_to_use
from pulumi_sandbox.engine.project.project_file import Project
from pulumi_sandbox.engine.project.stack_file import StackFile
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Asset, Properties, Secret

from sandbox.tests.support.engine_stack import Stack, urn_of
from sandbox.tests.support.recording_provider import RecordingProvider, Thing

BLUE: Properties = {"colour": "blue", "name": "ours"}
WANTED = Import("fake:index:Thing", "it", "one")
PARENT = urn_of("above", "test:index:Component")


@pytest.fixture(autouse=True)
def existing(provider: RecordingProvider) -> None:
    """Let there be a thing that nobody manages."""
    provider.things["one"] = Thing(urn_of("else"), BLUE, {**BLUE, "made": "one"})


def test_it_is_recorded_as_it_is_protected_and_the_program_takes_it_over_unchanged(
    stack: Stack, provider: RecordingProvider
):
    up = stack.import_(WANTED)
    assert (up.code, up.ops("it")) == (0, ["import"])
    record = stack.resource("it")
    assert (record.id, record.inputs, record.outputs["made"]) == ("one", BLUE, "one")
    assert (record.protect, record.import_id) == (True, "")
    assert record.parent == stack.resource("test-dev").urn
    assert record.provider == f"{stack.resource('default').urn}::{stack.resource('default').id}"
    assert record.created == record.modified != ""
    taken = stack.up(lambda script: script.register("it", BLUE, protect=True))
    assert (taken.code, taken.ops("it")) == (0, ["same"])
    assert provider.methods("it") == ["Read", "Check", "Check", "Diff"]


def test_without_protection_it_goes_when_the_program_does_not_declare_it(
    stack: Stack, provider: RecordingProvider
):
    stack.import_(replace(WANTED, protect=False))
    assert not stack.resource("it").protect
    stack.up(lambda _: None)
    assert provider.things == {}


def test_a_preview_of_it_reads_and_writes_nothing(stack: Stack, provider: RecordingProvider):
    preview = stack.import_(WANTED, preview_only=True)
    assert (preview.code, preview.ops("it")) == (0, ["import"])
    assert provider.methods("it") == ["Read", "Check"]
    assert not stack.store.path.exists()


def test_all_that_is_there_stays_as_it_is_and_the_program_does_not_run(
    stack: Stack, provider: RecordingProvider
):
    def program(script: Any) -> None:
        above = script.component("above")
        own = script.register("own", {}, type_="pulumi:providers:fake")
        script.register("a", {"n": 1}, parent=above.urn, provider=own.reference)

    stack.up(program)
    before = stack.snapshot
    stack.provider.calls.clear()
    own = stack.resource("own").urn
    up = stack.import_(replace(WANTED, parent=f"above={PARENT}", provider=f"own={own}"))
    assert up.code == 0
    assert [each for each, name in up.steps if name != "it"] == ["same"] * len(before.resources)
    after = stack.snapshot
    assert after.resources[:-1] == before.resources
    record = after.resources[-1]
    assert record.urn == "urn:pulumi:dev::test::test:index:Component$fake:index:Thing::it"
    assert (record.parent, record.provider) == (PARENT, f"{own}::{stack.resource('own').id}")
    assert provider.methods("it") == ["Read", "Check"]
    assert provider.methods("a") == []


def test_a_project_that_always_refreshes_does_not_before_an_import(stack: Stack, provider: RecordingProvider):
    stack.up(lambda script: script.register("a", {"n": 1}))
    with (stack.directory / "Pulumi.yaml").open("a") as project:
        project.write("options:\n  refresh: always\n")
    stack.provider.calls.clear()
    assert stack.import_(WANTED).code == 0
    assert provider.methods("a") == []


def test_what_is_recorded_under_that_id_stays_and_another_id_is_refused(
    stack: Stack, provider: RecordingProvider
):
    stack.import_(WANTED)
    text = stack.state_text
    assert (stack.import_(WANTED).ops("it"), stack.state_text) == (["same"], text)
    provider.things["two"] = Thing(urn_of("else"), BLUE, BLUE)
    assert stack.import_(replace(WANTED, id="two")).failed_with(f"resource '{urn_of('it')}' already exists")
    assert stack.state_text == text


def test_what_its_provider_finds_invalid_is_recorded_with_a_warning(
    stack: Stack, provider: RecordingProvider
):
    provider.things["one"].inputs = {"invalid": "no such colour"}
    up = stack.import_(WANTED)
    assert up.code == 0
    first, second = up.said("warning")
    assert "failed to validate" in first
    assert second == "its property invalid is invalid: no such colour"
    assert stack.resource("it").inputs == {"invalid": "no such colour"}


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        pytest.param(replace(WANTED, id="none"), "resource 'none' does not exist", id="object"),
        pytest.param(replace(WANTED, parent=f"p={PARENT}"), f"unknown parent '{PARENT}'", id="parent"),
        pytest.param(
            replace(WANTED, provider=urn_of("p", "pulumi:providers:fake")), "no such provider", id="provider"
        ),
        pytest.param(
            replace(WANTED, type="pulumi:providers:fake"), "may not be imported", id="a provider itself"
        ),
    ],
)
def test_what_is_not_there_cannot_be_imported(stack: Stack, wanted: Import, told: str):
    up = stack.import_(wanted)
    assert up.failed_with(told)
    assert not stack.records("it")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"type": "Thing"}, "'Thing' is no type"),
        ({"name": ""}, "a name and an id are needed"),
        ({"parent": "above"}, "'above' is no URN"),
        ({"parent": f"x={PARENT}", "provider": f"x={PARENT}"}, "both called x"),
    ],
    ids=["type", "name", "parent", "one variable for two"],
)
def test_what_names_nothing_is_refused_before_anything_starts(changed: dict[str, str], told: str):
    with pytest.raises(SandboxError, match=told):
        replace(WANTED, **changed)


# The code


def code(tmp_path: Path, imported: Import, inputs: Properties, runtime: str = "python") -> str:
    options = f"\n  options: {{virtualenv: {sys.prefix}}}" if runtime == "python" else ""
    (tmp_path / "Pulumi.yaml").write_text(f"name: test\nruntime:\n  name: {runtime}{options}\n")
    project = Project.load(tmp_path)
    stack_file = StackFile.load(tmp_path / "Pulumi.dev.yaml", "test")
    record = Resource(imported.urn("dev", "test"), imported.type, custom=True, id="x", inputs=inputs)
    return constructor_of(imported, StackAtRest(project, "dev", stack_file), Snapshot((record,)))


def test_the_code_is_that_of_the_installed_sdk_and_holds_no_secret(tmp_path: Path):
    wanted = Import("kubernetes:core/v1:Secret", "theKey", "apps/key", parent=f"above={PARENT}")
    inputs: Properties = {
        "apiVersion": "v1",
        "kind": "Secret",
        "immutable": True,
        "__defaults": ["apiVersion"],
        "stringData": {"user": 'quo"ted', "password": Secret("t0ken")},
        "data": Secret({"key": "dDBrZW4="}),
        "metadata": {
            "name": "key",
            "__defaults": [],
            "labels": {"app.io/x": "1"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}],
        },
    }
    written = code(tmp_path, wanted, inputs)
    assert (
        written
        == """\
import pulumi
import pulumi_kubernetes as kubernetes

the_key = kubernetes.core.v1.Secret("theKey",
    api_version="v1",
    data=pulumi.Config().require_secret_object("theKey-data"),
    immutable=True,
    kind="Secret",
    metadata={
        "labels": {
            "app.io/x": "1",
        },
        "name": "key",
        "owner_references": [
            {
                "api_version": "v1",
                "kind": "K",
                "name": "n",
                "uid": "u",
            },
        ],
    },
    string_data={
        "password": pulumi.Config().require_secret("theKey-stringData-password"),
        "user": "quo\\"ted",
    },
    opts = pulumi.ResourceOptions(parent=above,
        protect=True))
"""
    )
    compile(written, "__main__.py", "exec")


def test_what_is_not_protected_has_no_options_and_is_told_so(tmp_path: Path):
    root = urns.make("dev", "test", "", urns.ROOT_STACK_TYPE, "test-dev")
    wanted = Import("kubernetes:core/v1:Namespace", "it", "mine", parent=root, protect=False)
    written = code(tmp_path, wanted, {"metadata": {"name": "mine"}})
    assert "ResourceOptions" not in written
    assert "protect" in how_to_use(replace(wanted, protect=True))
    assert "protect" not in how_to_use(wanted)


@pytest.mark.parametrize(
    ("type_", "inputs", "runtime", "told"),
    [
        ("fake:index:Thing", {}, "python", "no package pulumi_fake"),
        ("kubernetes:core/v1:Nothing", {}, "python", "has no class for kubernetes:core/v1:Nothing"),
        ("kubernetes:core/v1:Secret", {"data": Secret([Asset(text="t0ken")])}, "python", "an asset"),
        ("kubernetes:core/v1:Secret", {}, "nodejs", "not in nodejs"),
    ],
    ids=["package", "type", "asset", "language"],
)
def test_where_no_code_can_be_written_that_is_said(
    tmp_path: Path, type_: str, inputs: Properties, runtime: str, told: str
):
    with pytest.raises(SandboxError, match=told) as caught:
        code(tmp_path, Import(type_, "it", "x"), inputs, runtime)
    assert caught.value.code == "code-unavailable"
    assert "t0ken" not in str(caught.value)
