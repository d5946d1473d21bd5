"""What of each update is kept for `pulumi stack history`, and the state that it left."""

from __future__ import annotations

import json
from typing import Any

from pulumi_sandbox.engine import Import
from pulumi_sandbox.protocol.values import Properties

from sandbox.tests.support.engine_stack import Stack, urn_of
from sandbox.tests.support.recording_provider import RecordingProvider, Thing


def kept(stack: Stack, kind: str = "history") -> list[dict[str, Any]]:
    """Return what was kept of all updates, the first one first."""
    folder = stack.directory / "backend" / ".pulumi" / "history" / "test" / "dev"
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f"dev-*.{kind}.json"))]


def test_an_update_is_kept_as_the_cli_writes_it_secrets_encrypted(stack: Stack):
    secure = stack.crypter.encrypt("t0ken")
    stack.configure(f"  test:colour: blue\n  test:many: [1, {{x: true}}]\n  test:key: {{secure: {secure}}}\n")
    stack.up(lambda script: script.register("a"))
    (update,) = kept(stack)
    started, ended = update.pop("startTime"), update.pop("endTime")
    assert isinstance(started, int)
    assert started <= ended
    assert update == {
        "kind": "update",
        "message": "",
        "environment": {"exec.kind": "cli", "exec.agent": "pulumi-sandbox"},
        "config": {"test:colour": "blue", "test:many": [1, {"x": True}], "test:key": {"secure": secure}},
        "version": 0,
        "result": "succeeded",
        "resourceChanges": {"create": 2},
    }


def test_each_kind_of_update_is_kept_under_the_name_that_the_cli_gives_it(
    stack: Stack, provider: RecordingProvider
):
    stack.up(lambda script: script.register("a"))
    stack.refresh()
    provider.things["one"] = Thing(urn_of("else"), {"name": "x"}, {"name": "x"})
    stack.import_(Import("fake:index:Thing", "it", "one", protect=False))
    stack.destroy()
    assert [each["kind"] for each in kept(stack)] == ["update", "refresh", "resource-import", "destroy"]


def test_what_failed_is_kept_as_failed_with_the_state_that_it_left(stack: Stack, provider: RecordingProvider):
    def fail() -> None:
        raise ValueError("refused")

    provider.on["Create", "b"] = fail

    def program(script: Any) -> None:
        script.register("a")
        script.register("b")

    assert stack.up(program).code == 1
    assert [each["result"] for each in kept(stack)] == ["failed"]
    (checkpoint,) = kept(stack, "checkpoint")
    assert checkpoint == json.loads(stack.state_text)


def test_what_only_shows_is_not_kept(stack: Stack):
    stack.preview(lambda script: script.register("a"))
    stack.refresh(preview_only=True)
    stack.destroy(preview_only=True)
    assert kept(stack) == []


def test_the_state_of_each_update_stays_as_it_was_left(stack: Stack):
    left: list[Any] = []
    for colour in ("blue", "red", "red"):
        inputs: Properties = {"colour": colour}
        stack.up(lambda script, inputs=inputs: script.register("a", inputs))
        left.append(json.loads(stack.state_text))
    with stack.store.path.open("w") as edited:  # in place, as `cp` does
        edited.write("{}")
    assert kept(stack, "checkpoint") == left
    assert left[0] != left[1]


def test_an_update_of_a_stack_that_never_had_a_state_is_kept_without_one(stack: Stack):
    assert stack.destroy().code == 0
    assert [each["kind"] for each in kept(stack)] == ["destroy"]
    assert kept(stack, "checkpoint") == []
