"""Where in its program a resource stands, in the state: as it is told, and when it alone changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pulumi_sandbox.engine.deploy.source_position import source_position
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.protocol.stubs import resource_pb2

from sandbox.tests.support.engine_stack import Stack
from sandbox.tests.support.recording_provider import RecordingProvider

PROGRAM = """\
import pulumi


class Thing(pulumi.CustomResource):
    def __init__(self, name, opts=None):
        super().__init__("fake:index:Thing", name, {"name": name}, opts)


class Shelf(pulumi.ComponentResource):
    def __init__(self, name):
        super().__init__("test:index:Shelf", name)
        Thing("inner", pulumi.ResourceOptions(parent=self))


Shelf("shelf")
Thing(
    "plain",
)
"""


def place(uri: str, line: int = 1, column: int = 0) -> Any:
    request = resource_pb2.RegisterResourceRequest()
    request.sourcePosition.uri, request.sourcePosition.line, request.sourcePosition.column = uri, line, column
    return request.sourcePosition


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (place("file:///work/p/__main__.py", 12), "project:///__main__.py#12"),
        (place("file:///work/p/a/b.ts", 1, 5), "project:///a/b.ts#1,5"),
        (place("file:///work/lib/x.py", 3), "project:///../lib/x.py#3"),
        (place("file:///work/p/a%20b%3F.py", 3), "project:///a%20b%3F.py#3"),
        (place("file:///work/p/x.py", -1), ""),
        (place("https://example.com/x.py"), ""),
        (place("file:x.py"), ""),
        (resource_pb2.RegisterResourceRequest().sourcePosition, ""),
    ],
    ids=["line", "column", "outside", "escaped", "no line", "no file", "relative", "nothing told"],
)
def test_a_place_is_told_relative_to_the_project(told: Any, said: str):
    assert source_position(told, Path("/work/p")) == said


def test_the_state_has_the_line_at_which_the_program_made_each_resource(
    tmp_path: Path, crypter: PassphraseCrypter, provider: RecordingProvider, stack: Stack
):
    source = tmp_path / "source"
    source.mkdir()
    (source / "__main__.py").write_text(PROGRAM)
    genuine = Stack.genuine(tmp_path / "genuine", crypter, provider, source)
    up = genuine.up()
    assert up.code == 0, up.errors
    found = {name: genuine.resource(name).source_position for name in ("shelf", "inner", "plain")}
    assert found == {
        "shelf": "project:///__main__.py#15",
        "inner": "project:///__main__.py#12",
        "plain": "project:///__main__.py#16",
    }
    assert genuine.resource("test-dev").source_position.startswith("project:///../")


def at(line: int) -> Any:
    return place("file:///p/__main__.py", line)


def test_a_place_that_alone_changed_is_no_change_but_recorded(stack: Stack):
    stack.up(lambda script: script.register("a", {"n": 1}))
    old = stack.resource("a")
    assert old.source_position == ""
    stack.change("a", other={"stackTrace": []})
    up = stack.up(lambda script: script.register("a", {"n": 1}, sourcePosition=at(7)), expect_no_changes=True)
    assert (up.code, up.ops("a")) == (0, ["same"])
    new = stack.resource("a")
    assert new.source_position.endswith("p/__main__.py#7")
    assert (new.modified, new.other) == (old.modified, {})
    text = stack.state_text
    stack.up(lambda script: script.register("a", {"n": 1}, sourcePosition=at(7)))
    assert stack.state_text == text


def test_what_is_read_has_its_place_as_well(stack: Stack):
    stack.up(lambda script: script.register("a", {"n": 1}))
    id_ = stack.resource("a").id
    stack.up(lambda script: script.read("b", id_, sourcePosition=at(9)))
    assert stack.resource("b").source_position.endswith("p/__main__.py#9")
